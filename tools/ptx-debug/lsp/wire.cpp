#include "tools/ptx-debug/lsp/wire.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "support/printable.hpp"

namespace ptxkit::lsp {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr std::string_view kLineEnd = "\r\n", kHeaderEnd = "\r\n\r\n";

// The value of a header line called `name`, in any case; nothing for other lines.
std::optional<std::string_view> value_of(std::string_view line, std::string_view name) {
  const size_t colon = line.find(':');
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  if (colon == line.npos || !std::ranges::equal(line.substr(0, colon), name, same)) return std::nullopt;
  line.remove_prefix(colon + 1);
  while (line.starts_with(' ')) line.remove_prefix(1);
  while (line.ends_with(' ')) line.remove_suffix(1);
  return line;
}

// Nothing where the header has no length, or one that is no number.
std::optional<uint64_t> length_in(std::string_view header) {
  std::optional<uint64_t> length;
  while (!header.empty()) {
    const std::string_view line = header.substr(0, header.find(kLineEnd));
    header.remove_prefix(std::min(header.size(), line.size() + kLineEnd.size()));
    const auto text = value_of(line, "content-length");
    if (!text) continue;
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error == std::errc::result_out_of_range) value = ~uint64_t{0};
    if (error == std::errc::invalid_argument || end != text->data() + text->size()) return std::nullopt;
    length = value;
  }
  return length;
}

}  // namespace

Wire::State Wire::refuse(std::string what) {
  fault_ = std::move(what);
  return State::broken;
}

Wire::State Wire::take(std::string& content) {
  if (!fault_.empty()) return State::broken;
  const std::string_view rest = std::string_view(buffer_).substr(at_);
  const size_t header_bytes = rest.substr(0, kMaxHeaderBytes).find(kHeaderEnd);
  if (header_bytes == rest.npos) {
    if (rest.size() >= kMaxHeaderBytes) return refuse("expected the header of a message, found no end of it");
    return State::incomplete;
  }
  const std::string_view header = rest.substr(0, header_bytes);
  const auto length = length_in(header);
  if (!length) {
    return refuse(fmt::format("expected 'Content-Length: N' in the header of a message, found '{}'",
                              printable(header.substr(0, 80))));
  }
  if (*length > kMaxMessageBytes)
    return refuse(fmt::format("a message has {} bytes, at most {} are read", *length, kMaxMessageBytes));
  const size_t begin = header_bytes + kHeaderEnd.size();
  if (rest.size() - begin < *length) return State::incomplete;
  content.assign(rest.substr(begin, *length));
  at_ += begin + *length;
  if (at_ == buffer_.size() || at_ > kMaxMessageBytes) {
    buffer_.erase(0, at_);
    at_ = 0;
  }
  return State::message;
}

void Wire::read() {
  const size_t size = buffer_.size();
  buffer_.resize(size + kReadBytes);
  ssize_t count = -1;
  do {
    count = ::read(in_, buffer_.data() + size, kReadBytes);
  } while (count < 0 && errno == EINTR);
  buffer_.resize(size + static_cast<size_t>(std::max<ssize_t>(count, 0)));
  has_ended_ = count <= 0;
}

bool Wire::send(std::string_view content) {
  std::string text = fmt::format("Content-Length: {}{}", content.size(), kHeaderEnd);
  text += content;
  for (size_t at = 0; at < text.size();) {
    const ssize_t count = ::write(out_, text.data() + at, text.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += static_cast<size_t>(count);
  }
  return true;
}

}  // namespace ptxkit::lsp
