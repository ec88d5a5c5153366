// Instruction forms that compute on registers, as programs: every register that an instruction names is loaded, the
// instruction runs, every one of them is stored. What the emulator makes of it a GPU must make bit for bit.
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
  std::vector<std::string> registers;  // that it names, each a slot of 16 bytes a thread
  bool approximate = false;            // the ISA promises an error bound, no bits
};

// Why the emulator's bits differ from an H200's and stay so; empty where they may not.
std::string_view form_exception(const FormCase& each);

// Names the bytes of a case: what an H200 gave for each is recorded so in forms_h200.txt.
uint64_t form_hash(std::span<const uint8_t> bytes);

// The cases for a device of compute capability 9.0: two variants of each form of the ISA table that addresses no
// memory, moves no control and depends on nothing but its registers.
std::vector<FormCase> form_cases();

// One entry `forms(in, out)` that runs all of them; case i has its slots behind those of the cases before.
std::string form_program(std::span<const FormCase> cases);

// Values at the edges of every type, and random bits; the same for a case in whatever program it stands.
std::vector<uint8_t> form_inputs(std::span<const FormCase> cases);

// A value of so many bytes: half the time an edge of the types that have them, else random bits.
uint64_t edge_value(std::mt19937_64& random, unsigned bytes);

// Slots of a case: bytes of all threads.
size_t form_bytes(const FormCase& each);

// The slots after the emulator has run them. Error: a case that the emulator cannot run.
Result<std::vector<uint8_t>> emulate_forms(std::span<const FormCase> cases);

}  // namespace ptxkit::testing
