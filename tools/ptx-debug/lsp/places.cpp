#include "tools/ptx-debug/lsp/places.hpp"

#include <algorithm>

#include "support/printable.hpp"

namespace ptxkit::lsp {

Places::Places(std::string_view text, CodeUnits units) : text_(text), units_(units), starts_{0} {
  for (size_t at = 0; at < text.size(); ++at) {
    const bool is_pair = text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n';
    if (text[at] == '\n' || (text[at] == '\r' && !is_pair)) starts_.push_back(at + 1);
  }
}

size_t Places::line_end(uint32_t line) const {
  if (line + size_t{1} >= starts_.size()) return text_.size();
  size_t end = starts_[line + 1] - 1;
  if (end > starts_[line] && text_[end] == '\n' && text_[end - 1] == '\r') --end;
  return end;
}

uint32_t Places::line_of(size_t offset) const {
  const auto next = std::ranges::upper_bound(starts_, std::min(offset, text_.size()));
  return static_cast<uint32_t>(next - starts_.begin() - 1);
}

size_t Places::offset(Place place) const {
  if (place.line >= starts_.size()) return text_.size();
  size_t at = starts_[place.line];
  const size_t end = line_end(place.line);
  if (units_ == CodeUnits::utf8) return at + std::min<size_t>(place.character, end - at);
  for (uint32_t left = place.character; left > 0 && at < end;) {
    const Utf8Character character = utf8_character(text_.substr(at, end - at));
    const uint32_t units = character.is_valid && character.code > 0xffff ? 2 : 1;
    if (units > left) break;  // in the middle of a pair
    left -= units;
    at += character.byte_count;
  }
  return at;
}

Place Places::place(size_t offset) const {
  offset = std::min(offset, text_.size());
  const uint32_t line = line_of(offset);
  if (units_ == CodeUnits::utf8) return {line, static_cast<uint32_t>(offset - starts_[line])};
  Place result{line, 0};
  for (size_t at = starts_[line]; at < offset;) {
    const Utf8Character character = utf8_character(text_.substr(at));
    result.character += character.is_valid && character.code > 0xffff ? 2 : 1;
    at += character.byte_count;
  }
  return result;
}

}  // namespace ptxkit::lsp
