#include "tools/ptx-pack/progress.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "support/printable.hpp"
#include "support/program.hpp"

namespace ptxkit::pack {

std::string progress_text(const std::string& name, std::optional<uint64_t> input_bytes, bool compressing,
                          uint64_t raw_bytes, uint64_t stored_bytes, double seconds) {
  const uint64_t done_bytes = compressing ? raw_bytes : stored_bytes;
  const double raw = static_cast<double>(raw_bytes), done = static_cast<double>(done_bytes);
  std::string line = fmt::format("{}: ", printable(name));
  if (input_bytes && *input_bytes != 0) {
    const double all = static_cast<double>(*input_bytes);
    line += fmt::format("{:.0f} % of {:.1f} MB", 100 * done / all, all / 1e6);
  } else {
    line += fmt::format("{:.1f} MB", done / 1e6);
  }
  line += fmt::format(", {:.0f} MB/s, ratio {:.2f}", raw / seconds / 1e6, raw / static_cast<double>(stored_bytes));
  if (input_bytes && done_bytes < *input_bytes) {
    const auto left = std::lround(static_cast<double>(*input_bytes - done_bytes) * seconds / done);
    line += fmt::format(", {}:{:02} left", left / 60, left % 60);
  }
  return line;
}

ProgressLine::ProgressLine(bool enabled, std::string name, std::optional<uint64_t> input_bytes, bool compressing)
    : enabled_(enabled), name_(std::move(name)), input_bytes_(input_bytes), compressing_(compressing) {}

ProgressLine::~ProgressLine() {
  if (shown_) tell("\r\x1b[K");
}

void ProgressLine::update(uint64_t raw_bytes, uint64_t stored_bytes) {
  const auto now = Clock::now();
  const bool has_done = (compressing_ ? raw_bytes : stored_bytes) != 0;
  if (!enabled_ || !has_done || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  tell(fmt::format("\r{}\x1b[K", progress_text(name_, input_bytes_, compressing_, raw_bytes, stored_bytes, seconds)));
}

}  // namespace ptxkit::pack
