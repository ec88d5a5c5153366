// Sections of the programs of memory_cases.hpp: PTX around one instruction of memory or synchronisation, by family.
// Registers of the prologue (memory_cases.cpp) have the addresses of the section's bytes in `in` and `out`:
//
//   %from, %to      row of the thread, kRowBytes, in `in` and `out`
//   %cfrom, %cto    rows of the CTA, as one piece: four quarters of threads * 64 bytes
//   %tfrom, %tto    64 bytes of the thread in the first of these quarters
//   %tile, %cell    shared memory: threads * 64 bytes, and the thread's 64 of them; %aim, %aimed another such
//   %bar            an mbarrier; %policy a cache policy; %thread, %rank, %other: of the thread, its CTA, the other CTA
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fkr_tests/device/spelled_form.hpp"

namespace ptxkit::testing {

inline constexpr unsigned kRowBytes = 256;

struct Section {
  std::string instruction;
  std::string text;
};

// ld, st, atom, red and similar: each thread has 64 bytes in the space that the instruction names, or in each space in
// turn that a generic address can address.
Section access_section(const SpelledForm& form);
// Addresses and hints: cvta, isspacep, mapa, getctarank, prefetch, createpolicy, alloca.
Section address_section(const SpelledForm& form);
// cp.async, cp.async.bulk, cp.reduce.async.bulk, st.async, red.async.
Section copy_section(const SpelledForm& form, unsigned threads);
Section mbarrier_section(const SpelledForm& form, unsigned threads);
// bar, barrier, fence, membar, and the instructions with which lanes of a warp wait for each other, run by half of
// them.
Section barrier_section(const SpelledForm& form, unsigned threads);
// ldmatrix, stmatrix.
Section matrix_section(const SpelledForm& form, unsigned threads);

// Copies 64 bytes from one address to another.
std::string copy_64(std::string_view from_space, std::string_view from, std::string_view to_space, std::string_view to);
inline constexpr std::string_view kClusterBarrier = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";

// The registers of an operand, one for each element.
struct Registers {
  std::string operand;       // "{%s0, %s1}"
  std::string declarations;  // .reg ...
  std::string loads, stores;
};
// The registers' bytes are adjacent in the row that starts at `row`, from `offset` on. Those of a destination are
// loaded too, so that bytes which an instruction leaves unchanged are visible. `wider` counts through the widths that
// the ISA allows.
Registers registers_of(const ptx::OperandSpec& spec, std::string_view name, std::string_view row, unsigned offset,
                       unsigned wider);

}  // namespace ptxkit::testing
