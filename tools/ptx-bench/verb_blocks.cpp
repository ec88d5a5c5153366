// Measures blocks of `.ptz` with every codec that has kernels, coded by the GPU and by all CPU threads. Host memory to
// host memory, wall time. The GPU's blocks must equal the CPU's, and both must decode to the input.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/images.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/codecs.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "support/result.hpp"
#include "tools/ptx-bench/input.hpp"
#include "tools/ptx-bench/verb.hpp"

namespace ptxkit::bench {
namespace {

using codec::BlockCoder;
using codec::BlockToDecode;
using codec::BlockToEncode;
using format::PtzCoding;

using codec::MatchSearch;

struct Codec {
  std::string label;  // "lzr", "lzr -1"
  PtzCoding codec;
  MatchSearch search;
};

// Every codec; those with a choice of match search also with the fast one, those of numbers with every kind of them.
std::vector<Codec> all_codecs() {
  std::vector<Codec> all;
  for (const format::PtzCodecRow& row : format::ptz_codecs()) {
    for (const PtzCoding& coding :
         row.has_elements() ? format::ptz_codings(row.codec) : std::vector{PtzCoding(row.codec)})
      all.push_back({format::name_of(coding), coding, MatchSearch::chains});
    if (row.has_match_search()) all.push_back({fmt::format("{} -1", row.name), row.codec, MatchSearch::tables});
  }
  return all;
}

Result<std::unique_ptr<BlockCoder>> open_kernels(const Settings& settings, codec::Executor& executor) {
  codec::BackendRequest request;
  request.name = "cuda";
  request.devices = {settings.device};
  request.find_image = kernels::find_kernel_image;
  if (settings.queue_count != 0) request.limits.queue_count = settings.queue_count;
  return codec::select_block_coder(request, executor);
}

// Measures one codec on one input and appends to `rows`.
class Run {
 public:
  Run(const Codec& codec, const Input& input, const Settings& settings, codec::Executor& executor,
      std::vector<Row>& rows)
      : name_(codec.label),
        codec_(codec.codec),
        search_(codec.search),
        input_(input),
        settings_(settings),
        executor_(executor),
        rows_(rows),
        coded_(input.chunk_count()),
        decoded_(input.raw.size()) {}

  Result<void> on_the_cpu() {
    auto done = measure("cpu", "compress", [&]() -> Result<void> {
      executor_.for_each(coded_.size(), [&](size_t i, unsigned) {
        coded_[i] = codec::encode_block(codec_, input_.chunk(i), search_);
      });
      return {};
    });
    if (!done) return done;
    std::atomic<bool> good{true};
    std::fill(decoded_.begin(), decoded_.end(), uint8_t{0});
    done = measure("cpu", "decompress", [&]() -> Result<void> {
      executor_.for_each(coded_.size(), [&](size_t i, unsigned) {
        if (!coded_[i].empty() && !codec::decode_block(codec_, coded_[i], room(i))) good = false;
      });
      return {};
    });
    if (!done) return done;
    return good ? expect_input("cpu") : fail(fmt::format("cpu {}: a block is damaged", name_), input_.name);
  }

  // Call after on_the_cpu().
  Result<void> on_the_gpu(BlockCoder& kernels) {
    std::vector<BlockToEncode> blocks;
    for (size_t i = 0; i < coded_.size(); ++i) blocks.push_back({input_.chunk(i)});
    auto done = measure("gpu", "compress", [&] { return kernels.encode(codec_, blocks, search_); });
    if (!done) return done;
    for (size_t i = 0; i < coded_.size(); ++i) {
      if (blocks[i].coded != coded_[i]) {
        return fail(fmt::format("gpu {}: block {} differs from the CPU's", name_, i), input_.name);
      }
    }
    std::vector<BlockToDecode> to_decode;
    for (size_t i = 0; i < coded_.size(); ++i) {
      if (!coded_[i].empty()) to_decode.push_back({coded_[i], room(i)});
    }
    std::fill(decoded_.begin(), decoded_.end(), uint8_t{0});
    done = measure("gpu", "decompress", [&] { return kernels.decode(codec_, to_decode); });
    if (!done) return done;
    return expect_input("gpu");
  }

 private:
  codec::MutableBytes room(size_t i) {
    return codec::MutableBytes(decoded_).subspan(i * input_.chunk_bytes, input_.chunk(i).size());
  }

  template <class Work>
  Result<void> measure(const char* where, const char* what, Work work) {
    const auto seconds = median_wall_seconds(settings_.repetition, work);
    if (!seconds) return tl::unexpected(seconds.error());
    rows_.push_back({input_.name, fmt::format("{} {} {}", where, name_, what), input_.chunk_bytes, input_.raw.size(),
                     stored_ratio(input_, coded_), *seconds});
    return {};
  }

  // Blocks that are stored raw were not decoded.
  Result<void> expect_input(const char* where) {
    for (size_t i = 0; i < coded_.size(); ++i) {
      if (!coded_[i].empty() && !std::ranges::equal(room(i), input_.chunk(i))) {
        return fail(fmt::format("{} {}: block {} is decoded to other bytes", where, name_, i), input_.name);
      }
    }
    return {};
  }

  std::string_view name_;
  PtzCoding codec_;
  MatchSearch search_;
  const Input& input_;
  const Settings& settings_;
  codec::Executor& executor_;
  std::vector<Row>& rows_;
  std::vector<std::vector<uint8_t>> coded_;  // encoded by the CPU
  std::vector<uint8_t> decoded_;
};

}  // namespace

Result<Measurements> run_blocks(const Settings& settings) {
  codec::Executor executor;
  Measurements all;
  all.cpu = fmt::format("{} threads", executor.thread_count());
  std::unique_ptr<BlockCoder> kernels;
  if (!settings.cpu_only) {
    auto opened = open_kernels(settings, executor);
    if (!opened) return tl::unexpected(opened.error());
    kernels = std::move(*opened);
    all.device = kernels->description();
  }
  for (const auto& paths : settings.inputs()) {
    auto input = load_input(paths, settings.size_bytes);
    if (!input) return tl::unexpected(input.error());
    for (const Codec& codec : all_codecs()) {
      if (!settings.only.empty() && !codec.label.starts_with(settings.only)) continue;
      input->chunk_bytes = size_t{1} << format::row_of(codec.codec).block_bits;
      Run run(codec, *input, settings, executor, all.rows);
      auto done = run.on_the_cpu();
      if (done && kernels) done = run.on_the_gpu(*kernels);
      if (!done) return tl::unexpected(done.error());
    }
  }
  return all;
}

}  // namespace ptxkit::bench
