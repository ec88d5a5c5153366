// Text that is longer than memory should hold: what does not fit into a few megabytes lies in a file without a name,
// which the system removes with the program.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/result.hpp"

namespace ptxkit {

class Spool {
 public:
  // The file lies beside `neighbour`. Where none can be made there, everything stays in memory.
  explicit Spool(std::string neighbour) : neighbour_(std::move(neighbour)) {}
  ~Spool();
  Spool(Spool&& other) noexcept;
  Spool& operator=(Spool&&) = delete;

  void append(std::string_view text);
  uint64_t size() const { return stored_bytes_ + held_.size(); }

  // Gives [from, from + bytes) to `take(text)` in pieces; false where the file cannot be read, or was not written
  // whole.
  template <class Take>
  bool read(uint64_t from, uint64_t bytes, Take&& take) {
    std::string piece;
    for (const uint64_t end = from + bytes; from < end; from += piece.size()) {
      if (!piece_at(from, end - from, piece)) return false;
      take(std::string_view(piece));
    }
    return true;
  }

  // Replaces the file at `path` by all of it, as write_file does.
  Result<void> save(const std::string& path);

 private:
  static constexpr size_t kHeldBytes = 4 << 20, kPieceBytes = 1 << 20;

  void store();
  bool piece_at(uint64_t from, uint64_t most_bytes, std::string& piece);
  bool write_to(int descriptor);

  std::string neighbour_;
  std::string held_;           // behind what is stored
  uint64_t stored_bytes_ = 0;  // in the file
  int descriptor_ = -1;
  bool has_no_file_ = false;  // none can be made
  bool is_broken_ = false;    // a write failed
};

}  // namespace ptxkit
