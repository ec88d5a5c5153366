// Instruction forms that compute on registers, as programs. Every register that an instruction names is loaded, the
// instruction runs, and every register is stored. A GPU must give the emulator's result bit for bit.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.hpp"

namespace ptxkit::testing {

inline constexpr uint32_t kFormThreads = 256;

struct FormCase {
  std::string instruction;             // "add.sat.s32 %w1, %w2, %w3;"
  std::vector<std::string> registers;  // registers that it names; each has a slot of 16 bytes in each thread
  bool approximate = false;            // the ISA guarantees an error bound, not the bits
};

// The reason why the emulator's bits differ permanently from an H200's; empty if they must be equal.
std::string_view form_exception(const FormCase& each);

// A hash of a case's bytes. forms_h200.txt records that of an H200's result for each case.
uint64_t form_hash(std::span<const uint8_t> bytes);

// The cases for compute capability 9.0: two variants of each form of the ISA table that addresses no memory, changes no
// control flow and depends on its registers only.
std::vector<FormCase> form_cases();

// A program with the entry `forms(in, out)` that runs all cases. The slots of the cases follow each other.
std::string form_program(std::span<const FormCase> cases);

// Boundary values of every type, and random bits. A case has the same inputs in every program.
std::vector<uint8_t> form_inputs(std::span<const FormCase> cases);

// A value of `bytes` bytes: half the time a boundary value of a type of that size, otherwise random bits.
uint64_t edge_value(std::mt19937_64& random, unsigned bytes);

// Bytes of a case's slots in all threads.
size_t form_bytes(const FormCase& each);

// The slots after a run on the emulator. Fails for a case that the emulator cannot run.
Result<std::vector<uint8_t>> emulate_forms(std::span<const FormCase> cases);

}  // namespace ptxkit::testing
