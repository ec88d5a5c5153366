// Undefined bits that a launch leaves in global memory: noted when they are stored, and reported at the end of the
// launch unless defined bits were stored over them.
//
// A plain copy includes the padding of structures. Compilers copy by words as wide as the alignment, in which padding
// always shares a word with a field. Undefined bits that were only moved are therefore reported if they fill the whole
// access of a thread. If they fill a part of it, they are reported only if another execution of the same store left
// other bytes undefined, or none: padding is always at the same place.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "analyzer/ptx/names.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::emulator {

struct Launch;
struct Origin;
struct Warp;

// One store of one thread to global memory, whose `shadow` is already up to date.
struct OutputStore {
  unsigned lane = 0;
  uint64_t offset = 0;  // of its first byte in global memory
  std::span<const uint8_t> shadow;
  const Origin* origin = nullptr;  // of the undefined bits; null if unknown
};

// The stores of one launch that left undefined bits.
class UndefinedOutputs {
 public:
  explicit UndefinedOutputs(size_t code_count) : defined_at_(code_count) {}

  // Notes a store at `pc` with only defined bits.
  void note_defined(uint32_t pc) { __atomic_store_n(&defined_at_[pc], uint8_t{1}, __ATOMIC_RELAXED); }
  void note(Warp& warp, const OutputStore& store);
  // The same for a copy between two ranges of memory, which has no access width: it is noted word by word.
  void note_copy(Warp& warp, const OutputStore& store);

  // Faults for the bits that are still undefined. Requires: no thread of the launch is running.
  std::vector<Fault> faults(const Launch& launch) const;

 private:
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr size_t kMaxCauses = 0xffff;

  // The instruction that stored undefined bits, and their origin.
  struct Cause {
    uint32_t pc = 0;
    uint64_t cta_turn = 0;
    uint32_t warp = 0, lane = 0;
    bool has_origin = false, computed = false, partial = false;
    bool varies = false;  // partial: other bytes in another execution
    uint64_t pattern = 0;
    uint32_t origin_pc = 0, origin_warp = 0, origin_lane = 0;
    ptx::Space space = ptx::Space::reg;
    std::string place;   // "register %r9", "'tile' + 4 of .shared"
    std::string object;  // the memory object, 'tile'
  };
  // One fault: the bits from one source object in one target object.
  struct Group {
    uint32_t object = 0;
    ptx::Space space = ptx::Space::reg;
    std::string from;
    bool computed = false;
    auto operator<=>(const Group&) const = default;
  };
  using Key = std::tuple<uint32_t, uint32_t, bool, bool>;  // pc, pc of the origin, computed, partial
  struct Range {
    uint64_t begin = 0, size_bytes = 0;  // in global memory
    uint16_t cause = 0;                  // of its first byte
  };

  uint16_t cause_of(Warp& warp, const OutputStore& store, bool partial);  // 0 if there are too many
  bool counts(const Cause& cause) const;
  Fault fault_of(const Launch& launch, uint32_t object, std::span<const Range> ranges, size_t store_count) const;

  std::mutex mutex_;
  std::vector<uint8_t> defined_at_;  // by pc
  std::vector<Cause> causes_;
  std::map<Key, uint16_t> number_of_;                                               // in causes_, plus 1
  std::map<uint64_t, std::unique_ptr<std::array<uint16_t, kPageBytes>>> cause_at_;  // by page, then byte
};

// Notes the bytes that one lane stored, if `shadow` is that of global memory and the launch checks for undefined
// output.
void note_output(Warp& warp, unsigned lane, const uint8_t* shadow, size_t size_bytes, const Origin* origin);

}  // namespace ptxkit::emulator
