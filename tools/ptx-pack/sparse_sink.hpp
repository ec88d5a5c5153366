// Writes to a regular file and leaves holes in place of pages of zeros, as `lz4 --sparse` does.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/codec/format/byte_stream.hpp"

namespace ptxkit::pack {

class SparseSink final : public format::ByteSink {
 public:
  // Whether `descriptor` allows holes: a regular file that is not open for appending.
  static bool fits(int descriptor);

  SparseSink(int descriptor, std::string name);
  Result<void> write(format::Bytes bytes) override;
  // Sets the file's length, which a hole at the end does not do, and the file offset.
  Result<void> finish();

 private:
  Result<void> write_at(uint64_t at, format::Bytes bytes) const;

  int descriptor_;
  std::string name_;
  uint64_t at_ = 0;         // offset of the next byte
  uint64_t old_bytes_ = 0;  // the file's original length: a hole below it would expose old content
  uint64_t end_ = 0;        // end of the last piece written, holes excluded
};

}  // namespace ptxkit::pack
