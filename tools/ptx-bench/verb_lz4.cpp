// Measures, for each input and chunk size, the compressor, and the decompressor on its blocks and on liblz4's; and in
// the same run liblz4 and zstd on all host threads.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <malloc.h>
#include <zstd.h>

#include "kernels/abi.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/driver/context.hpp"
#include "support/result.hpp"
#include "tools/ptx-bench/gpu_lz4.hpp"
#include "tools/ptx-bench/input.hpp"
#include "tools/ptx-bench/instructions.hpp"
#include "tools/ptx-bench/session.hpp"
#include "tools/ptx-bench/verb.hpp"

namespace ptxkit::bench {
namespace {

// Measures batch calls of the cpu backend in wall time, and checks their outputs.
class CpuRows {
 public:
  CpuRows(codec::Executor& executor, const Repetition& repetition)
      : executor_(executor), backend_(codec::make_cpu_backend(executor)), repetition_(repetition) {}
  std::string description() const { return backend_->description(); }

  // Measures liblz4 through the cpu backend, then zstd -1.
  Result<void> measure(const Input& input, const EncodedChunks& encoded, std::vector<Row>& rows) {
    if (auto done = measure_lz4(input, encoded, rows); !done) return done;
    return measure_zstd(input, rows);
  }

 private:
  Result<void> measure_lz4(const Input& input, const EncodedChunks& encoded, std::vector<Row>& rows) {
    const size_t count = input.chunk_count();
    std::vector<uint8_t> output(input.raw.size());
    const auto room = [&](size_t i) {
      return codec::MutableBytes(output).subspan(i * input.chunk_bytes, input.chunk(i).size());
    };
    std::vector<codec::CompressItem> compress(count);
    std::vector<codec::DecompressItem> decompress(count);
    for (size_t i = 0; i < count; ++i) {
      compress[i].raw = input.chunk(i);
      decompress[i].block = encoded.blocks[i];
      compress[i].output = decompress[i].output = room(i);
    }
    const auto compress_seconds =
        median_wall_seconds(repetition_, [&] { return backend_->compress(compress, codec::Encoder::fast); });
    if (!compress_seconds) return tl::unexpected(compress_seconds.error());
    uint64_t stored_bytes = 0;
    for (const auto& item : compress) stored_bytes += item.compressed_bytes;
    const auto decompress_seconds = median_wall_seconds(repetition_, [&] { return backend_->decompress(decompress); });
    if (!decompress_seconds) return tl::unexpected(decompress_seconds.error());
    if (output != input.raw) return fail("the cpu decompressor's output is wrong", input.name);
    const double raw = static_cast<double>(input.raw.size());
    rows.push_back({input.name, "cpu compress", input.chunk_bytes, input.raw.size(),
                    raw / static_cast<double>(stored_bytes), *compress_seconds});
    rows.push_back({input.name, "cpu decompress", input.chunk_bytes, input.raw.size(),
                    raw / static_cast<double>(encoded.stored_bytes), *decompress_seconds});
    return {};
  }

  Result<void> measure_zstd(const Input& input, std::vector<Row>& rows) {
    std::vector<std::vector<uint8_t>> blocks(input.chunk_count());
    std::vector<uint8_t> output(input.raw.size());
    std::atomic<bool> failed{false};
    std::vector<ZstdContexts> contexts(executor_.thread_count());
    const auto compress_seconds = median_wall_seconds(repetition_, [&]() -> Result<void> {
      executor_.for_each(blocks.size(), [&](size_t i, unsigned worker) {
        const codec::Bytes raw = input.chunk(i);
        blocks[i].resize(ZSTD_compressBound(raw.size()));
        const size_t size = ZSTD_compressCCtx(contexts[worker].compress.get(), blocks[i].data(), blocks[i].size(),
                                              raw.data(), raw.size(), 1);
        if (ZSTD_isError(size)) failed = true;
        if (!ZSTD_isError(size)) blocks[i].resize(size);
      });
      return failed ? fail("zstd does not compress", input.name) : Result<void>();
    });
    if (!compress_seconds) return tl::unexpected(compress_seconds.error());
    uint64_t stored_bytes = 0;
    for (size_t i = 0; i < blocks.size(); ++i) stored_bytes += std::min(blocks[i].size(), input.chunk(i).size());
    const auto decompress_seconds = median_wall_seconds(repetition_, [&]() -> Result<void> {
      executor_.for_each(blocks.size(), [&](size_t i, unsigned worker) {
        const size_t size = input.chunk(i).size();
        const size_t found = ZSTD_decompressDCtx(contexts[worker].decompress.get(), &output[i * input.chunk_bytes],
                                                 size, blocks[i].data(), blocks[i].size());
        if (found != size) failed = true;
      });
      return failed ? fail("zstd does not decompress", input.name) : Result<void>();
    });
    if (!decompress_seconds) return tl::unexpected(decompress_seconds.error());
    if (output != input.raw) return fail("zstd's output is wrong", input.name);
    const double ratio = static_cast<double>(input.raw.size()) / static_cast<double>(stored_bytes);
    rows.push_back({input.name, "cpu zstd -1 compress", input.chunk_bytes, input.raw.size(), ratio, *compress_seconds});
    rows.push_back(
        {input.name, "cpu zstd -1 decompress", input.chunk_bytes, input.raw.size(), ratio, *decompress_seconds});
    return {};
  }

  struct ZstdContexts {
    std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> compress{ZSTD_createCCtx(), &ZSTD_freeCCtx};
    std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> decompress{ZSTD_createDCtx(), &ZSTD_freeDCtx};
  };

  codec::Executor& executor_;
  std::unique_ptr<codec::Backend> backend_;
  Repetition repetition_;
};

constexpr size_t kCpuBytes = size_t{256} << 20;  // more than caches hold; 1 GiB would take minutes
constexpr size_t kSmallBatch = 10000;            // in chunks

Input first_bytes(const Input& input, size_t size_bytes) {
  const auto begin = input.raw.begin();
  return {
      input.name, {begin, begin + static_cast<ptrdiff_t>(std::min(size_bytes, input.raw.size()))}, input.chunk_bytes};
}

// The compressors for an input's chunks, the intended one first.
std::vector<std::string_view> compressors_of(const Input& input) {
  if (input.chunk_bytes > kernels::kMaxPageBytes) return {kernels::kLz4CompressChunk, kernels::kLz4CompressHigh};
  // A CTA for each page suits batches that do not fill the device.
  if (input.chunk_count() > kSmallBatch) return {kernels::kLz4CompressPage, kernels::kLz4CompressHigh};
  return {kernels::kLz4CompressPage, kernels::kLz4CompressChunk, kernels::kLz4CompressHigh};
}

Result<GpuEncoded> measure_compressor(const driver::ContextPointer& context, const Input& input, std::string_view name,
                                      codec::Executor& executor, const Repetition& repetition, std::vector<Row>& rows) {
  auto compressed = measure_compression(context, input, name, executor, repetition);
  if (!compressed) return compressed;
  const auto image = find_image(context, name);
  if (!image) return tl::unexpected(image.error());
  const auto instructions = compressor_instructions(**image, input);
  if (!instructions) return tl::unexpected(instructions.error());
  const double raw = static_cast<double>(input.raw.size());
  rows.push_back({input.name, std::string(name), input.chunk_bytes, input.raw.size(),
                  raw / static_cast<double>(compressed->stored_bytes), compressed->seconds, *instructions});
  return compressed;
}

Result<void> measure_gpu(const driver::ContextPointer& context, const Input& input, const EncodedChunks& encoded,
                         codec::Executor& executor, const Repetition& repetition, std::vector<Row>& rows) {
  const double raw = static_cast<double>(input.raw.size());
  const auto names = compressors_of(input);
  const auto compressed = measure_compressor(context, input, names[0], executor, repetition, rows);
  if (!compressed) return tl::unexpected(compressed.error());
  for (size_t i = 1; i < names.size(); ++i) {
    auto done = measure_compressor(context, input, names[i], executor, repetition, rows);
    if (!done) return tl::unexpected(done.error());
  }
  const auto decompressor = find_image(context, kernels::kLz4Decompress);
  if (!decompressor) return tl::unexpected(decompressor.error());
  // A chunk that the compressor stored raw or dropped has no block: use liblz4's.
  std::vector<codec::Bytes> own(input.chunk_count()), theirs(input.chunk_count());
  for (size_t i = 0; i < own.size(); ++i) {
    theirs[i] = encoded.blocks[i];
    own[i] = compressed->blocks[i].empty() ? theirs[i] : codec::Bytes(compressed->blocks[i]);
  }
  for (const auto& [blocks, name, stored] :
       {std::tuple(&own, "lz4_decompress, own blocks", compressed->stored_bytes),
        std::tuple(&theirs, "lz4_decompress, liblz4's blocks", encoded.stored_bytes)}) {
    const auto seconds = measure_decompression(context, input, *blocks, repetition);
    if (!seconds) return tl::unexpected(seconds.error());
    const auto decompressing = decompressor_instructions(**decompressor, input, *blocks);
    if (!decompressing) return tl::unexpected(decompressing.error());
    rows.push_back({input.name, name, input.chunk_bytes, input.raw.size(), raw / static_cast<double>(stored), *seconds,
                    *decompressing});
  }
  return {};
}

}  // namespace

Result<Measurements> run_lz4(const Settings& settings) {
  // Keeps freed memory in the process: the first touch of a page costs more than what is measured.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  codec::Executor executor;
  CpuRows cpu(executor, {.warm_up = 1, .runs = 3});
  Measurements all;
  all.cpu = cpu.description();
  driver::ContextPointer context;
  if (!settings.cpu_only) {
    auto opened = open_device(settings.device);
    if (!opened) return tl::unexpected(opened.error());
    context = std::move(*opened);
    if (auto measured = measure_ceilings(context, settings, all); !measured) return tl::unexpected(measured.error());
  }
  for (const auto& paths : settings.inputs()) {
    auto input = load_input(paths, settings.size_bytes);
    if (!input) return tl::unexpected(input.error());
    for (const size_t chunk_bytes : settings.chunk_bytes) {
      input->chunk_bytes = chunk_bytes;
      const EncodedChunks encoded = encode_with_liblz4(*input, executor);
      if (context) {
        if (auto done = measure_gpu(context, *input, encoded, executor, settings.repetition, all.rows); !done) {
          return tl::unexpected(done.error());
        }
      }
      if (settings.gpu_only) continue;
      const Input part = first_bytes(*input, kCpuBytes);
      if (auto done = cpu.measure(part, encode_with_liblz4(part, executor), all.rows); !done) {
        return tl::unexpected(done.error());
      }
    }
    input->chunk_bytes = *std::min_element(settings.chunk_bytes.begin(), settings.chunk_bytes.end());
    for (const size_t batch : settings.batches) {
      if (!context || batch > input->chunk_count()) continue;
      const Input part = first_bytes(*input, batch * input->chunk_bytes);
      if (auto done =
              measure_gpu(context, part, encode_with_liblz4(part, executor), executor, settings.repetition, all.rows);
          !done) {
        return tl::unexpected(done.error());
      }
    }
  }
  return all;
}

}  // namespace ptxkit::bench
