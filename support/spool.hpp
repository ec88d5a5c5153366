// Text that may be too long for memory: what exceeds a few megabytes is kept in an unnamed file, which the system
// removes with the process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/result.hpp"

namespace ptxkit {

class Spool {
 public:
  // The file is created in the directory of `neighbour`. If that fails, everything stays in memory.
  explicit Spool(std::string neighbour) : neighbour_(std::move(neighbour)) {}
  ~Spool();
  Spool(Spool&& other) noexcept;
  Spool& operator=(Spool&&) = delete;

  void append(std::string_view text);
  uint64_t size() const { return stored_bytes_ + unstored_.size(); }

  // Passes the bytes [from, from + bytes) to take(text) in pieces. False if the file cannot be read or was not written
  // completely.
  template <class Take>
  bool read(uint64_t from, uint64_t bytes, Take&& take) {
    std::string piece;
    for (const uint64_t end = from + bytes; from < end; from += piece.size()) {
      if (!piece_at(from, end - from, piece)) return false;
      take(std::string_view(piece));
    }
    return true;
  }

  // Replaces the file at `path` by the whole text, as write_file does.
  Result<void> save(const std::string& path);

 private:
  static constexpr size_t kMaxUnstoredBytes = 4 << 20, kPieceBytes = 1 << 20;

  void store();
  bool piece_at(uint64_t from, uint64_t most_bytes, std::string& piece);
  bool write_to(int descriptor);

  std::string neighbour_;
  std::string unstored_;       // the text after the stored part
  uint64_t stored_bytes_ = 0;  // bytes in the file
  int descriptor_ = -1;
  bool has_no_file_ = false;  // creating the file failed
  bool is_broken_ = false;    // a write failed
};

}  // namespace ptxkit
