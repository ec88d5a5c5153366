// Parts of the programs of memory_cases.hpp: PTX around one instruction of memory or synchronisation, by family. A part
// begins where `in` and `out` have its bytes: registers of the prologue (memory_cases.cpp) say where.
//
//   %from, %to      row of the thread, kRowBytes, in `in` and `out`
//   %cfrom, %cto    rows of the CTA, as one piece: four quarters of threads * 64 bytes
//   %tfrom, %tto    64 bytes of the thread in the first of these quarters
//   %tile, %cell    shared memory: threads * 64 bytes, and the thread's 64 of them; %aim, %aimed another such
//   %bar            an mbarrier; %policy a cache policy; %thread, %rank, %other: of the thread, its CTA, the other CTA
#pragma once

#include <string>
#include <vector>

#include "fkr_tests/device/spelled_form.hpp"

namespace ptxkit::testing {

inline constexpr unsigned kRowBytes = 256;

struct Section {
  std::string instruction;
  std::string text;
};

// ld, st, atom, red and their like: each thread has 64 bytes in the space that the instruction names, or in each that a
// generic address can lie in by turns.
Section access_section(const SpelledForm& form);
// Addresses and hints: cvta, isspacep, mapa, getctarank, prefetch, createpolicy, alloca.
Section address_section(const SpelledForm& form);
// cp.async, cp.async.bulk, cp.reduce.async.bulk, st.async, red.async.
Section copy_section(const SpelledForm& form, unsigned threads);
Section mbarrier_section(const SpelledForm& form, unsigned threads);
// bar, barrier, fence, membar, and what makes the lanes of a warp wait for each other, with half of them.
Section barrier_section(const SpelledForm& form, unsigned threads);
// ldmatrix, stmatrix.
Section matrix_section(const SpelledForm& form, unsigned threads);

// 64 bytes from one address to another.
std::string copy_64(std::string_view from_space, std::string_view from, std::string_view to_space, std::string_view to);
inline constexpr std::string_view kClusterBarrier = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";

// Registers of an operand, each element in its own.
struct Registers {
  std::string operand;       // "{%s0, %s1}"
  std::string declarations;  // .reg ...
  std::string loads, stores;
};
// Their bytes lie side by side in the row that starts at `row`, from `offset` on; those of a destination are loaded
// too, so that what an instruction leaves alone is seen. `wider` counts through the widths that the ISA lets them have.
Registers registers_of(const ptx::OperandSpec& spec, std::string_view name, std::string_view row, unsigned offset,
                       unsigned wider);

}  // namespace ptxkit::testing
