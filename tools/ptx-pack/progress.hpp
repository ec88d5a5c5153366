// A progress line on standard error: share done, speed, ratio, and remaining time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace ptxkit::pack {

// The text after `seconds` of work. `compressing`: the input is the raw side, otherwise the stored side.
std::string progress_text(const std::string& name, std::optional<uint64_t> input_bytes, bool compressing,
                          uint64_t raw_bytes, uint64_t stored_bytes, double seconds);

class ProgressLine {
 public:
  ProgressLine(bool enabled, std::string name, std::optional<uint64_t> input_bytes, bool compressing);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Rewrites the line, at most ten times a second.
  void update(uint64_t raw_bytes, uint64_t stored_bytes);

 private:
  using Clock = std::chrono::steady_clock;

  const bool enabled_;
  const std::string name_;
  const std::optional<uint64_t> input_bytes_;
  const bool compressing_;
  bool shown_ = false;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = begin_;
};

}  // namespace ptxkit::pack
