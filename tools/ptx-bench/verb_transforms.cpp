// Measures the entropy coders and the LZ77 decoder: each encoder on the device, each decoder on its output, and the CPU
// code of both on the first part of the same chunks. A decoder's output is compared with the input byte for byte.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/entropy/fse_reference.hpp"
#include "kernels/entropy/huffman_reference.hpp"
#include "kernels/entropy/lane_format.hpp"
#include "kernels/entropy/rans_chunked_reference.hpp"
#include "kernels/entropy/rans_format.hpp"
#include "kernels/entropy/rans_warp_reference.hpp"
#include "kernels/lz77/abi.hpp"
#include "kernels/transform_abi.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/coders/coders.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/driver/context.hpp"
#include "runtime/driver/launch_contract.hpp"
#include "support/result.hpp"
#include "tools/ptx-bench/input.hpp"
#include "tools/ptx-bench/instructions.hpp"
#include "tools/ptx-bench/session.hpp"
#include "tools/ptx-bench/verb.hpp"

namespace ptxkit::bench {
namespace {

using driver::LaunchArgument;
using driver::Stream;
using kernels::StreamStatus;
using kernels::TransformOutcome;

// Bytes that the CPU codes; also what the device decodes if no single kernel encodes.
constexpr size_t kCpuBytes = size_t{32} << 20;

struct Transform {
  std::string label;
  std::string_view encoder, decoder;  // kernel names; encoder is empty if encoding takes several kernels
  std::vector<uint32_t> options;
  std::function<TransformOutcome(codec::Bytes, codec::MutableBytes)> encode, decode;
  std::function<size_t(size_t)> bound;
};

std::vector<Transform> all_transforms() {
  using namespace kernels;
  std::vector<Transform> all;
  for (const RansWarpOptions options : {RansWarpOptions{}, RansWarpOptions{11, 13}, RansWarpOptions{11, 12}}) {
    all.push_back({fmt::format("rans_warp {} bits, {} KiB", options.scale_bits, (1u << options.chunk_bits) / 1024),
                   kRansWarpEncode,
                   kRansWarpDecode,
                   {options.scale_bits, options.chunk_bits},
                   [=](auto raw, auto coded) { return cpu::rans_warp_encode(raw, coded, options); },
                   cpu::rans_warp_decode,
                   [=](size_t size) { return rans_warp_bound(size, options); }});
  }
  for (const RansChunkedOptions options :
       {RansChunkedOptions{}, RansChunkedOptions{12, 8, 4096}, RansChunkedOptions{12, 4, 1024}}) {
    all.push_back({fmt::format("rans_chunked {} lanes, {} KiB", options.lanes, options.chunk_bytes / 1024),
                   kRansChunkedEncode,
                   kRansChunkedDecode,
                   {options.scale_bits, options.lanes, options.chunk_bytes},
                   [=](auto raw, auto coded) { return cpu::rans_chunked_encode(raw, coded, options); },
                   cpu::rans_chunked_decode,
                   [=](size_t size) { return rans_chunked_bound(size, options); }});
  }
  all.push_back(
      {"huffman", kHuffmanEncode, kHuffmanDecode, {}, cpu::huffman_encode, cpu::huffman_decode, huffman_bound});
  const FseOptions fse;
  all.push_back({fmt::format("fse {} bits", fse.accuracy_bits),
                 kFseEncode,
                 kFseDecode,
                 {fse.accuracy_bits},
                 [=](auto raw, auto coded) { return cpu::fse_encode(raw, coded, fse); },
                 cpu::fse_decode,
                 fse_bound});
  all.push_back({"lz77", {}, kLz77Decode, {}, cpu::lz77_encode, cpu::lz77_decode, lz_block_bound});
  return all;
}

// The first part of the input, coded by the CPU.
struct CodedFront {
  std::vector<std::vector<uint8_t>> streams;  // one for each chunk
  double encode_seconds = 0, decode_seconds = 0;
  uint64_t raw_bytes = 0, coded_bytes = 0;
};

template <class Work>
double wall_seconds(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Result<CodedFront> code_front(const Transform& transform, const Input& input, codec::Executor& executor) {
  CodedFront front;
  front.streams.resize(std::min(input.chunk_count(), kCpuBytes / input.chunk_bytes));
  std::vector<std::vector<uint8_t>> decoded(front.streams.size());
  for (size_t i = 0; i < decoded.size(); ++i) {
    front.streams[i].resize(transform.bound(input.chunk(i).size()));
    decoded[i].resize(input.chunk(i).size());
    front.raw_bytes += decoded[i].size();
  }
  front.encode_seconds = wall_seconds([&] {
    executor.for_each(front.streams.size(), [&](size_t i, unsigned) {
      front.streams[i].resize(transform.encode(input.chunk(i), front.streams[i]).size_bytes);
    });
  });
  std::atomic<bool> good{true};
  front.decode_seconds = wall_seconds([&] {
    executor.for_each(front.streams.size(), [&](size_t i, unsigned) {
      if (transform.decode(front.streams[i], decoded[i]).status != StreamStatus::ok) good = false;
    });
  });
  for (size_t i = 0; i < decoded.size(); ++i) {
    front.coded_bytes += front.streams[i].size();
    if (!std::ranges::equal(decoded[i], input.chunk(i))) good = false;
  }
  if (!good) return fail(transform.label + ": the CPU does not decode what it coded", input.name);
  return front;
}

// A launch over items at fixed strides in device memory.
struct Launch {
  Session& session;
  uint32_t item_count;

  Result<double> median(const driver::Kernel& kernel, std::span<const size_t> buffers,
                        std::span<const uint32_t> options, const Repetition& repetition) {
    std::vector<LaunchArgument> arguments;
    for (const size_t buffer : buffers) arguments.push_back(session.argument(buffer));
    arguments.push_back(LaunchArgument::of(item_count));
    for (const uint32_t option : options) arguments.push_back(LaunchArgument::of(option));
    return median_seconds(repetition, [&] {
      return session.time([&](const Stream& stream) {
        return kernel.launch(stream, item_count, kernel.contract().block_threads, arguments);
      });
    });
  }

  Result<void> expect_ok(size_t statuses, const std::string& what) {
    const auto found = session.download<uint32_t>(statuses, item_count);
    if (!session.outcome()) return session.outcome();
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i] != 0) {
        return fail(fmt::format("{}, item {}: {}", what, i, status_text(static_cast<StreamStatus>(found[i]))));
      }
    }
    return {};
  }
};

// Warp instructions of a transform's kernel for each raw byte, over the first chunks.
Result<double> counted(const driver::ContextPointer& context, const Transform& transform, const Input& input,
                       const CodedFront& front, bool encodes) {
  const auto image = find_image(context, encodes ? transform.encoder : transform.decoder);
  if (!image) return tl::unexpected(image.error());
  std::vector<TransformItem> items;
  uint64_t raw_bytes = 0;
  for (size_t i = 0; i < std::min<size_t>(sample_count(input), front.streams.size()); ++i) {
    const codec::Bytes raw = input.chunk(i);
    items.push_back(
        {encodes ? raw : codec::Bytes(front.streams[i]), encodes ? transform.bound(raw.size()) : raw.size()});
    raw_bytes += raw.size();
  }
  const std::span<const uint32_t> options =
      encodes ? std::span<const uint32_t>(transform.options) : std::span<const uint32_t>{};
  const auto instructions = transform_instructions(**image, 1, items, options);
  if (!instructions) return tl::unexpected(instructions.error());
  return static_cast<double>(*instructions) / static_cast<double>(raw_bytes);
}

Result<void> measure_on_device(const driver::ContextPointer& context, const Transform& transform, const Input& input,
                               const CodedFront& front, const Repetition& repetition, std::vector<Row>& rows) {
  auto session = Session::open(context);
  if (!session) return tl::unexpected(session.error());
  const size_t count = input.chunk_count(), stride = (transform.bound(input.chunk_bytes) + 15) / 16 * 16;
  std::vector<uint64_t> raw_offsets(count), coded_offsets(count);
  std::vector<uint32_t> raw_sizes(count), coded_room(count, static_cast<uint32_t>(stride));
  for (size_t i = 0; i < count; ++i) {
    raw_offsets[i] = i * input.chunk_bytes;
    coded_offsets[i] = i * stride;
    raw_sizes[i] = static_cast<uint32_t>(input.chunk(i).size());
  }
  const size_t raw_at = session->upload(raw_offsets), coded_at = session->upload(coded_offsets),
               sizes = session->upload(raw_sizes), room = session->upload(coded_room),
               statuses = session->allocate(count * 4), coded = session->allocate(count * stride);
  Launch launch{*session, static_cast<uint32_t>(count)};
  size_t coded_sizes;
  uint64_t coded_bytes = 0;
  const double raw_bytes = static_cast<double>(input.raw.size());
  if (!transform.encoder.empty()) {
    auto kernel = load_kernel(context, transform.encoder);
    if (!kernel) return tl::unexpected(kernel.error());
    coded_sizes = session->allocate(count * 4);
    const size_t raw = session->upload(input.raw);
    for (const size_t output : {statuses, coded, coded_sizes}) session->poison(output);
    const size_t buffers[] = {raw, raw_at, sizes, coded, coded_at, room, coded_sizes, statuses};
    const auto seconds = launch.median(*kernel, buffers, transform.options, repetition);
    if (!seconds) return tl::unexpected(seconds.error());
    if (auto good = launch.expect_ok(statuses, transform.label + " encode"); !good) return good;
    for (const uint32_t size : session->download<uint32_t>(coded_sizes, count)) coded_bytes += size;
    const auto instructions = counted(context, transform, input, front, true);
    if (!instructions) return tl::unexpected(instructions.error());
    rows.push_back({input.name, transform.label + " encode", input.chunk_bytes, input.raw.size(),
                    raw_bytes / static_cast<double>(coded_bytes), *seconds, *instructions});
  } else {
    // Repeats the streams of the CPU. All chunks of the first part are whole.
    std::vector<uint8_t> all(count * stride);
    std::vector<uint32_t> all_sizes(count);
    for (size_t i = 0; i < count; ++i) {
      const auto& stream = front.streams[i % front.streams.size()];
      std::copy(stream.begin(), stream.end(), all.begin() + static_cast<ptrdiff_t>(i * stride));
      coded_bytes += all_sizes[i] = static_cast<uint32_t>(stream.size());
    }
    if (auto sent = session->time([&](const Stream& stream) { return session->memory(coded).upload(all, stream); });
        !sent) {
      return tl::unexpected(sent.error());
    }
    coded_sizes = session->upload(all_sizes);
  }
  auto kernel = load_kernel(context, transform.decoder);
  if (!kernel) return tl::unexpected(kernel.error());
  const size_t decoded = session->allocate(input.raw.size()), decoded_sizes = session->allocate(count * 4);
  for (const size_t output : {statuses, decoded, decoded_sizes}) session->poison(output);
  const size_t buffers[] = {coded, coded_at, coded_sizes, decoded, raw_at, sizes, decoded_sizes, statuses};
  const auto seconds = launch.median(*kernel, buffers, {}, repetition);
  if (!seconds) return tl::unexpected(seconds.error());
  if (auto good = launch.expect_ok(statuses, transform.label + " decode"); !good) return good;
  const auto found = session->download<uint8_t>(decoded, input.raw.size());
  if (!session->outcome()) return session->outcome();
  for (size_t i = 0; i < count; ++i) {
    const auto expected = input.chunk(transform.encoder.empty() ? i % front.streams.size() : i);
    if (!std::ranges::equal(codec::Bytes(found).subspan(raw_offsets[i], raw_sizes[i]), expected)) {
      return fail(fmt::format("{}: chunk {} is decoded to other bytes", transform.label, i), input.name);
    }
  }
  const auto instructions = counted(context, transform, input, front, false);
  if (!instructions) return tl::unexpected(instructions.error());
  rows.push_back({input.name, transform.label + " decode", input.chunk_bytes, input.raw.size(),
                  raw_bytes / static_cast<double>(coded_bytes), *seconds, *instructions});
  return {};
}

}  // namespace

Result<Measurements> run_transforms(const Settings& settings) {
  codec::Executor executor;
  Measurements all;
  all.cpu = fmt::format("{} threads", executor.thread_count());
  driver::ContextPointer context;
  if (!settings.cpu_only) {
    auto opened = open_device(settings.device);
    if (!opened) return tl::unexpected(opened.error());
    context = std::move(*opened);
    if (auto measured = measure_ceilings(context, settings, all); !measured) return tl::unexpected(measured.error());
  }
  for (const auto& paths : settings.inputs()) {
    for (const size_t chunk_bytes : settings.chunk_bytes) {
      // Only whole chunks, so that the CPU's streams can be repeated.
      auto input = load_input(paths, std::max<size_t>(settings.size_bytes / chunk_bytes, 1) * chunk_bytes);
      if (!input) return tl::unexpected(input.error());
      input->chunk_bytes = chunk_bytes;
      for (const Transform& transform : all_transforms()) {
        if (!settings.only.empty() && !transform.label.starts_with(settings.only)) continue;
        const auto front = code_front(transform, *input, executor);
        if (!front) return tl::unexpected(front.error());
        if (context) {
          if (auto done = measure_on_device(context, transform, *input, *front, settings.repetition, all.rows); !done) {
            return tl::unexpected(done.error());
          }
        }
        const double ratio = static_cast<double>(front->raw_bytes) / static_cast<double>(front->coded_bytes);
        all.rows.push_back({input->name, "cpu " + transform.label + " encode", chunk_bytes, front->raw_bytes, ratio,
                            front->encode_seconds});
        all.rows.push_back({input->name, "cpu " + transform.label + " decode", chunk_bytes, front->raw_bytes, ratio,
                            front->decode_seconds});
      }
    }
  }
  return all;
}

}  // namespace ptxkit::bench
