// A bounded run of the readers' fuzz target in every test run: valid inputs of each reader, damaged by a seeded
// generator, and texts that would exhaust a careless reader. The same seeds give the same inputs everywhere. usage:
// readers_smoke [COUNT]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "analyzer/evidence/evidence.hpp"
#include "analyzer/instrument/instrument.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "fkr_tests/fuzz/ptx_damage.hpp"
#include "fkr_tests/fuzz/readers.hpp"
#include "support/file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using namespace ptxkit;
using testing::Reader;

struct Input {
  Reader reader;
  std::string text;
};

void run(const Input& input) {
  // A heap copy of the exact size, so that a sanitizer sees an access one byte too far.
  std::vector<uint8_t> bytes(1 + input.text.size());
  bytes[0] = static_cast<uint8_t>(input.reader);
  std::copy(input.text.begin(), input.text.end(), bytes.begin() + 1);
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

// A ring of four records, and the map that describes them.
std::string crash_of() {
  const auto made =
      instrument::instrument(ptx::parse(testing::crashed_kernel(), "k.ptx").module, {.kinds = ~0u, .records = 4});
  std::string ring(made->map.buffer_bytes(), '\0');
  const auto put = [&](size_t at, uint32_t value) {
    for (size_t i = 0; i < 4; ++i) ring[at + i] = static_cast<char>(value >> 8 * i);
  };
  put(0, 6);
  for (uint32_t number = 2; number < 6; ++number) {
    const size_t at = 16 * (1 + number % 4);
    put(at, 1 + number % static_cast<uint32_t>(made->map.markers.size()));
    put(at + 4, number % 2);
    put(at + 8, number);
  }
  return ring + instrument::to_json(made->map);
}

std::vector<Input> seeds() {
  return {
      {Reader::launch_file,
       R"({"entries": {"k": {"block": [128, 1], "grid": [4], "dynamic_shared_bytes": 1024, "parameters": [
          {"name": "src", "align": 16, "bytes": 4096, "access": "read"}, {"name": "n", "min": 1, "max": 64}]}}})"},
      {Reader::evidence, read_file("analyzer/evidence/h200-r580.json").value_or("")},
      {Reader::baseline, R"({"schema": "ptxkit-baseline-1", "findings": [{"fingerprint": "0123456789abcdef"}]})"},
      {Reader::crash, crash_of()},
      {Reader::argument, "u32:0xff"},
      {Reader::argument, "s8:-128"},
      {Reader::argument, "f64:1.5e300"},
      {Reader::argument, "out:4096:r"},
      {Reader::argument, "struct:u8:1,u64:2,f32:3,hex:00ff,bytes:0102"},
      {Reader::argument, "sampler:linear,wrap,normalised"},
      {Reader::tensor, "f16,64x64,box16x64,swizzle128"},
      {Reader::image, "a2d,8x8x4,f32x4,linear,clamp"},
      {Reader::cost,
       "// @pz_cost {\n//   threads_per_element: 0.03125,\n//   passes: 1,\n//   buffers: in=N, out=N*2+7, l=N/1024\n"
       "//   local_mem: 0\n//   note: \"one warp a page\"\n// }\n.version 8.0\n"},
  };
}

// Each of these crashes a reader that recurses, trusts a number, or reads a value as the wrong type.
std::vector<Input> hostile() {
  const std::string open(1'000'000, '['), close(1'000'000, ']');
  return {
      {Reader::launch_file, R"({"entries": )" + open + close + "}"},
      {Reader::launch_file, R"({"entries": {"k": {"block": )" + open + close + "}}}"},
      {Reader::launch_file, open},
      {Reader::evidence, R"({"device": "a", "target_family": "sm_90", "driver": "b", "date": "c", "method": "d",
          "result_by_offset": [)" +
                             open + close + R"(], "probes": {}})"},
      {Reader::baseline, R"({"schema": )" + open + close + "}"},
      {Reader::baseline, R"({"schema": 1})"},
      {Reader::launch_file, R"({"entries": 1e999})"},
      {Reader::evidence, R"({"device": 1e999})"},
      {Reader::baseline, R"({"schema": 1e999})"},
      {Reader::crash, std::string(80, '\xff') + R"({"schema": 1e999})"},
      {Reader::crash, std::string(80, '\xff') + R"({"schema": )" + open + close + "}"},
      {Reader::crash, std::string(80, '\xff')},
      {Reader::argument, "struct:" + std::string(1'000'000, ',')},
      {Reader::tensor, std::string(1'000'000, 'x')},
      {Reader::image, std::string(1'000'000, ',')},
      {Reader::cost, "// @pz_cost {\n// threads_per_element: 1e308\n// buffers: a=N\n// }\n"},
  };
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned count = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 20000;
  for (const Input& input : hostile()) run(input);
  const std::vector<Input> all = seeds();
  for (const Input& input : all) run(input);
  std::vector<std::string> texts;
  for (const Input& input : all) texts.push_back(input.text);
  for (unsigned seed = 0; seed < count; ++seed) {
    std::mt19937 random(seed);
    Input input = all[seed % all.size()];
    input.text = random() % 2 ? testing::damage_bytes(input.text, texts, random)
                              : testing::damage_words(input.text, input.text, random);
    run(input);
  }
  std::printf("%u damaged inputs of %zu seeds\n", count, all.size());
  return 0;
}
