// A bounded run of the PTX front end's fuzz target in every test run: the corpus that libFuzzer kept (corpus/, see
// docs/front-end.md), the repository's PTX damaged by a seeded generator, and texts that would exhaust a careless
// parser. The same seeds give the same inputs everywhere. usage: ptx_parser_smoke [COUNT [FILE]]; with FILE, its bytes
// are the only input.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fkr_tests/fuzz/ptx_damage.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void run(const std::string& text) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<std::string> seeds() {
  std::vector<std::string> all = ptxkit::testing::ptx_files("fkr_tests", 40000);
  all.push_back(
      ".version 9.0\n.target sm_90, debug\n.address_size 64\n.file 1 \"a.cu\"\n"
      ".global .align 4 .b8 t[4] = {1, 0xff, 2};\n.global .u64 q[2] = {generic(t)+1, 0xff00(t)};\n"
      ".const .f32 c[2][2] = {{1.5}, {0f40000000, (1+2)*3.0}};\n.extern .shared .align 16 .b8 s[];\n"
      ".func (.param .b32 r) f(.param .b32 a, .param .b8 v[8]) .noreturn { .reg .b32 %r<3>; st.param.b32 [r], %r1; "
      "ret; }\n"
      ".visible .entry k(.param .u64 .ptr .global .align 8 p) .reqntid 32, 1, 1 .minnctapersm 2 {\n"
      ".reg .b32 %r<9>; .reg .v2 .f32 w; .reg .b64 %rd<9>; .reg .pred %p<3>; .loc 1 2 3\n"
      ".loc 1 4 5, function_name $L0, inlined_at 1 2 3\nT: .branchtargets A, B;\n"
      "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n@%p1 bra A;\nbrx.idx %r1, T;\nA: { .reg .b32 %r1; "
      "mov.u32 %r1, %tid.x; setp.lt.and.s32 %p1|%p2, %r1, WARP_SZ, !%p1; }\nB: { .param .b32 x; .param .b32 y; "
      "call (x), %rd1, (y), P; }\ntex.2d.v4.f32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r1, %r2}];\n"
      "vadd.u32.u32.u32 %r1, %r2.b0, %r3.h1;\nld.param.u64 %rd1, [p].unified;\nret; }\n"
      ".section .debug_str { $L0: .b8 1,2 }\n");
  return all;
}

std::vector<std::string> corpus() {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator("fkr_tests/fuzz/corpus"))
    all.push_back(read(entry.path()));
  return all;
}

std::string repeat(const std::string& text, size_t count) {
  std::string result;
  for (size_t i = 0; i < count; ++i) result += text;
  return result;
}

// Each of these is cheap for a linear parser with limits, and fatal for any other.
std::vector<std::string> hostile() {
  const std::string head = ".version 9.0\n.target sm_90\n.address_size 64\n";
  const std::string body = head + ".entry k() {\n.reg .b32 %r<4000000000>;\n";
  constexpr size_t kMany = 200000;
  return {
      body + repeat("{", kMany),
      body + repeat("{ L: bra L; ", 300) + repeat("bra X;", 20000) + repeat("}", 301),
      body + "mov.u32 %r1, " + repeat("(", kMany) + ";}",
      body + "mov.u32 %r1, " + repeat("-", kMany) + "1;}",
      body + "mov.u32 %r1, " + repeat("1?", kMany) + "1;}",
      body + "mov.u32 %r1, " + repeat("1+", kMany) + "1;}",
      body + "mov.u32 %r1, " + repeat("{", kMany) + ";}",
      body + "call " + repeat("(", kMany) + ";}",
      body + "ld.u32 %r1, " + repeat("[%r1,", kMany) + ";}",
      body + "mov.u32 %r3999999999, %r1;" + repeat("mov.u32 %r77777777, 1;", 1000) + "}",
      body + repeat(".reg .b32 %x<4000000000>;", 5000) + "}",
      body + repeat(".reg .b32 x1; .reg .b32 x<3>;", 10000) + "}",
      body + "add" + repeat(".u32", kMany) + " %r1;}",
      body + repeat("a.b.c.d.e.f;", kMany / 10) + "}",
      head + ".global .b8 x[4000000000][4000000000][4000000000];\n",
      head + ".global .b8 x[4000000000] = {" + repeat("{1},", 1000) + "};\n",
      head + ".global .b8 x[1000000][1000] = {{1},{2},{3}};\n",
      head + ".global .b8 x[9]" + " = " + repeat("{", kMany) + ";\n",
      head + ".global .b8 x" + repeat("[1]", kMany) + ";\n",
      head + repeat(".func f();\n", 20000),
      head + ".section .debug {" + repeat("{\"", kMany),
      repeat("\x01", kMany) + repeat("\n", kMany),
      repeat("/*", kMany),
      repeat("\"\n", kMany / 10),
      repeat(".version 9.0 .target sm_90 ", 10000),
      std::string(1000, '\0'),
  };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2) {
    run(read(argv[2]));
    return 0;
  }
  const unsigned count = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 3000;
  for (const std::string& text : hostile()) run(text);
  const std::vector<std::string> kept = corpus();
  if (kept.empty()) {
    std::fprintf(stderr, "ptx_parser_smoke: fkr_tests/fuzz/corpus is empty\n");
    return 1;
  }
  for (const std::string& text : kept) run(text);
  const std::vector<std::string> all = seeds();
  for (const std::string& text : all) run(text);
  for (unsigned seed = 0; seed < count; ++seed) {
    std::mt19937 random(seed);
    run(ptxkit::testing::damage_bytes(all[random() % all.size()], all, random));
  }
  std::printf("%zu inputs of the corpus, %u damaged inputs of %zu seeds\n", kept.size(), count, all.size());
  return 0;
}
