// Measures typed rANS on the device: batches of items of one size, encoded and decoded as the library does it. Without
// a file the values are of a normal distribution. What was decoded is compared with the input byte for byte.
#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/driver/context.hpp"
#include "runtime/library/batch_launches.hpp"
#include "runtime/library/device_batches.hpp"
#include "support/result.hpp"
#include "tools/ptx-bench/input.hpp"
#include "tools/ptx-bench/session.hpp"
#include "tools/ptx-bench/verb.hpp"

namespace ptxkit::bench {
namespace {

using driver::Stream;
using library::Coding;

constexpr float kDeviation = 0.02f;                   // of weights
constexpr size_t kGeneratedValues = size_t{8} << 20;  // then they repeat

// The bits of a float of eight bits that is nearest to `value`.
uint32_t to_fp8(float value, int exponent_bits, int significand_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint32_t sign = std::signbit(value) ? 0x80 : 0;
  value = std::fabs(value);
  if (value == 0) return sign;
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  const auto significand = static_cast<uint32_t>(std::nearbyint(std::ldexp(value, significand_bits - exponent)));
  // A significand without its leading one is of a denormal; one that was rounded up carries into the exponent.
  return sign | ((static_cast<uint32_t>(exponent + bias - 1) << significand_bits) + significand);
}

uint32_t to_float16(float value) { return std::bit_cast<uint16_t>(static_cast<_Float16>(value)); }
uint32_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}
uint32_t to_int8(float value) {
  return static_cast<uint8_t>(std::clamp(std::nearbyint(value / kDeviation * 32), -127.0f, 127.0f));
}

struct Kind {
  std::string_view name;
  Coding coding;
  size_t element_bytes;
  uint32_t (*bits_of)(float);  // null: only for files
};
constexpr Kind kKinds[] = {
    {"bfloat16", Coding::bfloat16, 2, to_bfloat16},
    {"float16", Coding::float16, 2, to_float16},
    {"float32", Coding::float32, 4, [](float value) { return std::bit_cast<uint32_t>(value); }},
    {"e4m3", Coding::bytes, 1, [](float value) { return to_fp8(32 * value, 4, 3); }},
    {"e5m2", Coding::bytes, 1, [](float value) { return to_fp8(value, 5, 2); }},
    {"int8", Coding::bytes, 1, to_int8},
    {"stride2", Coding::stride2, 2, nullptr},
    {"stride4", Coding::stride4, 4, nullptr},
    {"stride8", Coding::stride8, 8, nullptr},
};

Input generate(const Kind& kind, size_t size_bytes) {
  Input input{.name = "normal(0, 0.02)", .raw = std::vector<uint8_t>(size_bytes)};
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, kDeviation);
  const size_t made = std::min(size_bytes, kGeneratedValues * kind.element_bytes);
  for (size_t at = 0; at + kind.element_bytes <= made; at += kind.element_bytes) {
    const uint32_t bits = kind.bits_of(normal(random));
    for (size_t b = 0; b < kind.element_bytes; ++b) input.raw[at + b] = static_cast<uint8_t>(bits >> 8 * b);
  }
  for (size_t at = made; at < size_bytes; ++at) input.raw[at] = input.raw[at - made];
  return input;
}

// The kernels of a batch, loaded.
struct Program {
  std::vector<driver::Kernel> kernels;
  std::vector<library::BatchLaunch> launches;

  static Result<Program> load(const driver::ContextPointer& context,
                              Result<std::vector<library::BatchLaunch>> launches) {
    if (!launches) return tl::unexpected(launches.error());
    Program program;
    for (const library::BatchLaunch& launch : *launches) {
      auto kernel = load_kernel(context, launch.kernel);
      if (!kernel) return tl::unexpected(kernel.error());
      program.kernels.push_back(std::move(*kernel));
    }
    program.launches = std::move(*launches);
    return program;
  }
  Result<Timing> median(Session& session, const Repetition& repetition) const {
    return median_seconds(repetition, [&] {
      return session.time([&](const Stream& stream) -> Result<void> {
        for (size_t i = 0; i < launches.size(); ++i) {
          const library::BatchLaunch& launch = launches[i];
          auto done = kernels[i].launch(stream, launch.grid_blocks, launch.shape.block_threads, launch.arguments);
          if (!done) return done;
        }
        return {};
      });
    });
  }
};

Result<void> expect_ok(Session& session, size_t statuses, size_t count, const std::string& what) {
  const auto found = session.download<int32_t>(statuses, count);
  if (!session.outcome()) return session.outcome();
  const auto bad = std::ranges::find_if(found, [](int32_t status) { return status != 0; });
  if (bad == found.end()) return {};
  return fail(fmt::format("{}, item {}: status {}", what, bad - found.begin(), *bad));
}

Result<void> measure(const driver::ContextPointer& context, const Kind& kind, const Input& input,
                     const Repetition& repetition, std::vector<Row>& rows) {
  auto session = Session::open(context);
  if (!session) return tl::unexpected(session.error());
  const size_t count = input.chunk_count();
  const auto needed =
      library::DeviceBatches::requirements(input.chunk_bytes, count, library::Framing::raw, kind.coding);
  if (!needed) return tl::unexpected(needed.error());
  const size_t stride = (needed->output_bytes_bound + 255) / 256 * 256;
  const size_t raw = session->upload(input.raw), coded = session->allocate(count * stride),
               temp = session->allocate(needed->temp_bytes), decoded = session->allocate(input.raw.size()),
               coded_sizes = session->allocate(8 * count), decoded_sizes = session->allocate(8 * count),
               statuses = session->allocate(4 * count);
  if (!session->outcome()) return session->outcome();
  const auto address = [&](size_t buffer) { return session->memory(buffer).handle(); };
  std::vector<uint64_t> raw_at(count), coded_at(count), decoded_at(count), raw_sizes(count);
  for (size_t i = 0; i < count; ++i) {
    raw_at[i] = address(raw) + i * input.chunk_bytes;
    coded_at[i] = address(coded) + i * stride;
    decoded_at[i] = address(decoded) + i * input.chunk_bytes;
    raw_sizes[i] = input.chunk(i).size();
  }
  const size_t raws = session->upload(raw_at), codeds = session->upload(coded_at),
               decodeds = session->upload(decoded_at), sizes = session->upload(raw_sizes);
  for (const size_t output : {statuses, coded, coded_sizes, temp, decoded, decoded_sizes}) session->poison(output);
  session->wait();
  if (!session->outcome()) return session->outcome();

  library::BatchCompression there;
  there.inputs = address(raws);
  there.input_bytes = address(sizes);
  there.max_input_bytes = input.chunk_bytes;
  there.item_count = count;
  there.temp = address(temp);
  there.temp_bytes = needed->temp_bytes;
  there.outputs = address(codeds);
  there.output_bytes = address(coded_sizes);
  there.statuses = address(statuses);
  there.coding = kind.coding;
  const auto encoder = Program::load(context, library::launches_of(there));
  if (!encoder) return tl::unexpected(encoder.error());
  const auto encode_seconds = encoder->median(*session, repetition);
  if (!encode_seconds) return tl::unexpected(encode_seconds.error());
  if (auto good = expect_ok(*session, statuses, count, fmt::format("{} encode", kind.name)); !good) return good;
  uint64_t coded_bytes = 0;
  for (const uint64_t size : session->download<uint64_t>(coded_sizes, count)) coded_bytes += size;

  session->poison(statuses);
  library::BatchDecompression back;
  back.inputs = there.outputs;
  back.input_bytes = there.output_bytes;
  back.output_capacities = there.input_bytes;
  back.output_bytes = address(decoded_sizes);
  back.item_count = count;
  back.outputs = address(decodeds);
  back.statuses = address(statuses);
  back.coding = kind.coding;
  const auto decoder = Program::load(
      context, library::launches_of(back, library::kTypedBlocksAMultiprocessor * context->info().multiprocessor_count));
  if (!decoder) return tl::unexpected(decoder.error());
  const auto decode_seconds = decoder->median(*session, repetition);
  if (!decode_seconds) return tl::unexpected(decode_seconds.error());
  if (auto good = expect_ok(*session, statuses, count, fmt::format("{} decode", kind.name)); !good) return good;
  if (session->download<uint8_t>(decoded, input.raw.size()) != input.raw) {
    return fail(fmt::format("{}: other bytes are decoded than were encoded", kind.name), input.name);
  }
  const double ratio = static_cast<double>(input.raw.size()) / static_cast<double>(coded_bytes);
  rows.push_back({input.name, fmt::format("typed {} encode", kind.name), input.chunk_bytes, input.raw.size(), ratio,
                  *encode_seconds});
  rows.push_back({input.name, fmt::format("typed {} decode", kind.name), input.chunk_bytes, input.raw.size(), ratio,
                  *decode_seconds});
  return session->outcome();
}

}  // namespace

Result<Measurements> run_typed(const Settings& settings) {
  Measurements all;
  auto context = open_device(settings.device);
  if (!context) return tl::unexpected(context.error());
  if (auto measured = measure_ceilings(*context, settings, all); !measured) return tl::unexpected(measured.error());
  auto files = settings.inputs();
  if (files.empty()) files.emplace_back();
  for (const Kind& kind : kKinds) {
    if (!kind.name.starts_with(settings.only)) continue;
    for (const auto& paths : files) {
      if (paths.empty() && kind.bits_of == nullptr) continue;
      auto input =
          paths.empty() ? Result<Input>(generate(kind, settings.size_bytes)) : load_input(paths, settings.size_bytes);
      if (!input) return tl::unexpected(input.error());
      for (const size_t chunk_bytes : settings.chunk_bytes) {
        input->chunk_bytes = chunk_bytes;
        if (auto done = measure(*context, kind, *input, settings.repetition, all.rows); !done) {
          return tl::unexpected(done.error());
        }
      }
    }
  }
  return all;
}

}  // namespace ptxkit::bench
