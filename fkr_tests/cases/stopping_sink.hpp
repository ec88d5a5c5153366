// A sink that stores its input and asks to stop once it has enough.
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "runtime/codec/format/byte_stream.hpp"

namespace ptxkit::testing {

class StoppingSink final : public format::ByteSink {
 public:
  explicit StoppingSink(size_t enough_bytes) : enough_bytes_(enough_bytes) {}
  Result<void> write(format::Bytes bytes) override {
    written.insert(written.end(), bytes.begin(), bytes.end());
    if (written.size() >= enough_bytes_) stop.request_stop();
    return {};
  }
  std::vector<uint8_t> written;
  std::stop_source stop;

 private:
  size_t enough_bytes_;
};

}  // namespace ptxkit::testing
