// Writes to a regular file and leaves holes where whole pages of zeros would stand, as `lz4 --sparse` does.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/codec/format/byte_stream.hpp"

namespace ptxkit::pack {

class SparseSink final : public format::ByteSink {
 public:
  // Whether holes can be left in what `descriptor` is: a regular file, and not one that is only appended to.
  static bool fits(int descriptor);

  SparseSink(int descriptor, std::string name);
  Result<void> write(format::Bytes bytes) override;
  // Makes the file as long as what was written: a hole at the end is no byte yet.
  Result<void> finish();

 private:
  Result<void> write_at(uint64_t at, format::Bytes bytes) const;

  int descriptor_;
  std::string name_;
  uint64_t at_ = 0;         // where the next byte belongs
  uint64_t old_bytes_ = 0;  // the file's length before: below it a hole would show what was there
  uint64_t end_ = 0;        // of what was written, holes left out
};

}  // namespace ptxkit::pack
