// Small PTX kernels for tests: a header, a body, and one launch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/emulator/emulator.hpp"

namespace ptxkit::emulator {

inline std::string module_text(std::string_view body) {
  return ".version 8.3\n.target sm_90\n.address_size 64\n" + std::string(body);
}

// An entry `k(out, in)` whose body may use %r0-31, %rd0-31, %rs0-15, %f0-15, %fd0-15, %p0-15. `out` is in %rd0, `in` in
// %rd1, %tid.x in %r0, and %rd2 is out + 4 * tid, %rd3 is in + 4 * tid.
inline std::string entry_text(std::string_view body, std::string_view before = "") {
  return module_text(std::string(before) + R"(
.visible .entry k(.param .u64 out, .param .u64 in)
{
  .reg .pred %p<16>;
  .reg .b16 %rs<16>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<32>;
  .reg .f32 %f<16>;
  .reg .f64 %fd<16>;
  ld.param.u64 %rd0, [out];
  ld.param.u64 %rd1, [in];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd31, %r0, 4;
  add.u64 %rd2, %rd0, %rd31;
  add.u64 %rd3, %rd1, %rd31;
)" + std::string(body) +
                     "\n  ret;\n}\n");
}

// `text` of entry_text for another target, in PTX 8.8, with `registers` additional registers %v.
inline std::string for_target(std::string text, std::string_view target, unsigned registers = 0) {
  text.replace(text.find("sm_90"), 5, target);
  text.replace(text.find("8.3"), 3, "8.8");
  if (registers) text.insert(text.find("%r<32>"), "%v<" + std::to_string(registers) + ">, ");
  return text;
}

struct Ran {
  std::vector<uint32_t> out;
  Outcome outcome;
};

// Runs entry_text's kernel with `out` of out_words uninitialised words and `in` as given.
inline Ran run_kernel(const std::string& text, const LaunchShape& shape, size_t out_words,
                      const std::vector<uint32_t>& in = {}, const LaunchOptions& options = {.max_steps = 1'000'000}) {
  Device device;
  Ran ran;
  auto program = Program::load_text(device, text, "test.ptx");
  if (!program) {
    ADD_FAILURE() << program.error().message();
    return ran;
  }
  Address out = *device.allocate(out_words * 4, "out"), input = *device.allocate(in.size() * 4, "in");
  (void)device.write(input, std::as_bytes(std::span(in)));
  const std::vector<Argument> arguments{Argument::of(out), Argument::of(input)};
  auto outcome = launch(*program, "k", shape, arguments, options);
  if (!outcome) {
    ADD_FAILURE() << outcome.error().message();
    return ran;
  }
  ran.outcome = std::move(*outcome);
  ran.out.resize(out_words);
  (void)device.read(out, std::as_writable_bytes(std::span(ran.out)));
  return ran;
}

}  // namespace ptxkit::emulator
