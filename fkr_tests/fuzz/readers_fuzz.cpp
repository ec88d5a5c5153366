// Fuzzes the readers of small files and of command-line words. The first byte selects the reader. It must return a
// result or an error with a message, and the result must be within the bounds that its users rely on. With clang:
// -fsanitize=fuzzer,address; with any compiler: readers_smoke.cpp runs it on seeded mutations.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "analyzer/analyze/suppression.hpp"
#include "analyzer/evidence/evidence.hpp"
#include "analyzer/instrument/crash.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/rules/engine/launch_file.hpp"
#include "fkr_tests/fuzz/readers.hpp"
#include "kernels/cost.hpp"
#include "tools/ptx-debug/argument_spec.hpp"

namespace ptxkit {
namespace {

constexpr size_t kLongestBufferSpec = 13;  // "zero:" and eight digits

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "readers_fuzz: %s\n", what);
  std::abort();
}

template <class T>
bool read(const Result<T>& result) {
  if (!result) require(!result.error().what.empty(), "an error without words");
  return result.has_value();
}

void read_launch_file(const std::string& text) {
  rules::LaunchSet launch;
  if (!read(rules::parse_launch_file(text, "launch.json", launch))) return;
  for (const auto& [name, facts] : launch) {
    for (const uint32_t count : {facts.block[0], facts.grid[0]}) require(count <= 0x7fffffff, "a launch's dimension");
    for (const auto& [parameter, known] : facts.parameters)
      require(!known.low || *known.low <= *known.high, "a range that ends before it begins");
  }
}

void read_argument(const std::string& text) {
  // Skips arguments that name files, which differ between machines, and buffers of gigabytes.
  for (const char* word : {"in:", "inout:", "tex:", "surf:", "tensor:"})
    if (text.find(word) != text.npos) return;
  for (const char* word : {"out:", "mapped:", "uninit:", "zero:"})
    if (text.find(word) != text.npos && text.size() > kLongestBufferSpec) return;
  const auto argument = tools::parse_argument_spec(text);
  if (!read(argument)) return;
  const auto bytes = tools::argument_bytes(*argument, [](const tools::ArgumentSpec& piece) {
    return Result<std::vector<std::byte>>(piece.is_buffer ? std::vector<std::byte>(8) : piece.bytes);
  });
  require(!bytes || !bytes->empty() || argument->bytes.empty(), "an argument of no bytes");
}

void read_cost(const std::string& text) {
  const auto cost = kernels::parse_kernel_cost(text);
  if (!read(cost)) return;
  for (const uint64_t input_bytes : {uint64_t{0}, uint64_t{1} << 20, ~uint64_t{0}}) {
    read(cost->memory_bytes({input_bytes}));
    read(cost->memory_bytes({input_bytes, 3, ~input_bytes}));
    const auto threads = cost->thread_count(input_bytes);
    require(!read(threads) || *threads % cost->passes == 0, "a pass with fewer threads than another");
  }
}

// The input is the ring, followed by the map.
void read_crash(const std::string& text) {
  const std::string kernel = testing::crashed_kernel();
  const auto made = instrument::instrument(ptx::parse(kernel, "k.ptx").module, {.kinds = ~0u, .records = 4});
  require(made.has_value(), "the kernel can be instrumented");
  const size_t ring_bytes = made->map.buffer_bytes();
  instrument::MarkerMap map = made->map;
  if (text.size() > ring_bytes) {
    auto other = instrument::parse_marker_map(text.substr(ring_bytes), "map.json");
    if (!read(other)) return;
    map = std::move(*other);
  }
  const auto bytes = std::as_bytes(std::span(text).first(std::min(text.size(), ring_bytes)));
  const auto buffer = instrument::read_debug_buffer(bytes, map, "ring.bin");
  if (!read(buffer)) return;
  require(buffer->records.size() + buffer->unwritten_count <= map.records, "more records than the ring has");
  const auto crash = instrument::locate(map, *buffer);
  (void)instrument::suspects(ptx::parse(kernel, "k.ptx").module, crash, {.error = 716});
}

}  // namespace
}  // namespace ptxkit

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ptxkit;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (static_cast<testing::Reader>(data[0] % testing::kReaderCount)) {
    case testing::Reader::launch_file:
      read_launch_file(text);
      break;
    case testing::Reader::evidence:
      if (const auto file = rules::parse_evidence(text, "evidence.json"); read(file))
        (void)rules::EvidenceSet{{*file}}.refuted_by("F081", 90);
      break;
    case testing::Reader::baseline:
      read(report::Baseline::read(text, "baseline.json"));
      break;
    case testing::Reader::crash:
      read_crash(text);
      break;
    case testing::Reader::argument:
      read_argument(text);
      break;
    case testing::Reader::tensor:
      read(parse_tensor_spec(text));
      break;
    case testing::Reader::image:
      for (const auto use : {emulator::ImageUse::texture, emulator::ImageUse::surface, emulator::ImageUse::sampler})
        read(parse_image_spec(use, text));
      break;
    case testing::Reader::cost:
      read_cost(text);
      break;
  }
  return 0;
}
