// For each input and chunk size: the compressor, the decompressor on its own blocks and on liblz4's, and beside them,
// in the same run, liblz4 on all host threads.
#include <chrono>

#include <fmt/format.h>

#include "runtime/codec/executor.hpp"
#include "tools/ptx-bench/gpu_lz4.hpp"
#include "tools/ptx-bench/verb.hpp"

namespace ptxkit::bench {
namespace {

// Wall time of the cpu backend's batch calls; their outputs are checked.
class CpuRows {
 public:
  CpuRows(codec::Executor& executor, const Repetition& repetition)
      : backend_(codec::make_cpu_backend(executor)), repetition_(repetition) {}
  std::string description() const { return backend_->description(); }

  Result<void> measure(const Input& input, const EncodedChunks& encoded, std::vector<Row>& rows) {
    const std::size_t count = input.chunk_count();
    std::vector<std::uint8_t> output(input.raw.size());
    const auto room = [&](std::size_t i) {
      return codec::MutableBytes(output).subspan(i * input.chunk_bytes, input.chunk(i).size());
    };
    std::vector<codec::CompressItem> compress(count);
    std::vector<codec::DecompressItem> decompress(count);
    for (std::size_t i = 0; i < count; ++i) {
      compress[i].raw = input.chunk(i);
      decompress[i].block = encoded.blocks[i];
      compress[i].output = decompress[i].output = room(i);
    }
    const auto compress_seconds = timed([&] { return backend_->compress(compress, codec::Encoder::fast); });
    if (!compress_seconds) return tl::unexpected(compress_seconds.error());
    std::uint64_t stored_bytes = 0;
    for (const auto& item : compress) stored_bytes += item.compressed_bytes;
    const auto decompress_seconds = timed([&] { return backend_->decompress(decompress); });
    if (!decompress_seconds) return tl::unexpected(decompress_seconds.error());
    if (output != input.raw) return fail("the cpu decompressor's output is wrong", input.name);
    const double raw = static_cast<double>(input.raw.size());
    rows.push_back({input.name, "cpu compress", input.chunk_bytes, input.raw.size(),
                    raw / static_cast<double>(stored_bytes), *compress_seconds});
    rows.push_back({input.name, "cpu decompress", input.chunk_bytes, input.raw.size(),
                    raw / static_cast<double>(encoded.stored_bytes), *decompress_seconds});
    return {};
  }

 private:
  template <class Work>
  Result<double> timed(Work work) {
    return median_seconds(repetition_, [&]() -> Result<double> {
      const auto begin = std::chrono::steady_clock::now();
      if (Result<void> done = work(); !done) return tl::unexpected(done.error());
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    });
  }

  std::unique_ptr<codec::Backend> backend_;
  Repetition repetition_;
};

Result<void> measure_gpu(const driver::ContextPointer& context, const Input& input, const EncodedChunks& encoded,
                         codec::Executor& executor, const Repetition& repetition, std::vector<Row>& rows) {
  const double raw = static_cast<double>(input.raw.size());
  const auto compressed = measure_compression(context, input, executor, repetition);
  if (!compressed) return tl::unexpected(compressed.error());
  rows.push_back({input.name, compressed->kernel, input.chunk_bytes, input.raw.size(),
                  raw / static_cast<double>(compressed->stored_bytes), compressed->seconds});
  // A chunk that the compressor stored or dropped has no block of its own: liblz4's stands in.
  std::vector<codec::Bytes> own(input.chunk_count()), theirs(input.chunk_count());
  for (std::size_t i = 0; i < own.size(); ++i) {
    theirs[i] = encoded.blocks[i];
    own[i] = compressed->blocks[i].empty() ? theirs[i] : codec::Bytes(compressed->blocks[i]);
  }
  for (const auto& [blocks, name, stored] :
       {std::tuple(&own, "lz4_decompress, own blocks", compressed->stored_bytes),
        std::tuple(&theirs, "lz4_decompress, liblz4's blocks", encoded.stored_bytes)}) {
    const auto seconds = measure_decompression(context, input, *blocks, repetition);
    if (!seconds) return tl::unexpected(seconds.error());
    rows.push_back(
        {input.name, name, input.chunk_bytes, input.raw.size(), raw / static_cast<double>(stored), *seconds});
  }
  return {};
}

}  // namespace

Result<Measurements> run_lz4(const Settings& settings) {
  codec::Executor executor;
  CpuRows cpu(executor, {.warm_up = 1, .runs = 3});
  Measurements all;
  all.cpu = cpu.description();
  driver::ContextPointer context;
  if (!settings.cpu_only) {
    auto opened = open_device(settings.device);
    if (!opened) return tl::unexpected(opened.error());
    context = std::move(*opened);
    all.device = context->info().name;
  }
  for (const auto& paths : settings.inputs()) {
    auto input = load_input(paths, settings.size_bytes);
    if (!input) return tl::unexpected(input.error());
    for (const std::size_t chunk_bytes : settings.chunk_bytes) {
      input->chunk_bytes = chunk_bytes;
      const EncodedChunks encoded = encode_with_liblz4(*input, executor);
      if (context) {
        if (auto done = measure_gpu(context, *input, encoded, executor, settings.repetition, all.rows); !done) {
          return tl::unexpected(done.error());
        }
      }
      if (auto done = cpu.measure(*input, encoded, all.rows); !done) return tl::unexpected(done.error());
    }
  }
  return all;
}

}  // namespace ptxkit::bench
