// Measures the encoding of 256 KiB blocks with codec lzr in two ways: match finder, demultiplexer and rANS in one chain
// on the GPU (runtime/codec/device/block_kernels.hpp); or match finder and demultiplexer on the GPU and rANS on all CPU
// threads. Host memory to host memory, wall time. Both must give the bytes of the CPU's encoder.
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/images.hpp"
#include "kernels/lz77/abi.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/blocks/coded_stream.hpp"
#include "runtime/codec/coders/coders.hpp"
#include "runtime/codec/device/block_kernels.hpp"
#include "runtime/codec/device/cuda_machine.hpp"
#include "runtime/codec/device/declared_costs.hpp"
#include "runtime/codec/device/kernel_call.hpp"
#include "runtime/codec/device/lz_calls.hpp"
#include "runtime/codec/device/machine.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/codecs.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "support/result.hpp"
#include "tools/ptx-bench/gpu_lz4.hpp"
#include "tools/ptx-bench/input.hpp"
#include "tools/ptx-bench/verb.hpp"

namespace ptxkit::bench {
namespace {

using codec::BlockToEncode;
using codec::Bytes;
using codec::Machine;
using format::PtzCodec;

constexpr unsigned kSplitQueues = 32;  // a queue for each block, where the chain takes groups

Result<std::unique_ptr<Machine>> make_machine(const Settings& settings, unsigned queue_count) {
  auto context = open_device(settings.device);
  if (!context) return tl::unexpected(context.error());
  codec::CudaLimits limits;
  if (queue_count != 0) limits.queue_count = queue_count;
  return codec::make_cuda_machine(*context, kernels::find_kernel_image, limits);
}

// Makes LZ blocks on the GPU and codes their streams on the CPU.
class SplitEncoder {
 public:
  SplitEncoder(std::unique_ptr<Machine> machine, codec::Executor& executor)
      : machine_(std::move(machine)), executor_(executor) {}

  Result<void> encode(std::span<BlockToEncode> blocks) {
    for (size_t begin = 0; begin < blocks.size(); begin += machine_->queue_count()) {
      const auto group = blocks.subspan(begin, std::min<size_t>(machine_->queue_count(), blocks.size() - begin));
      for (unsigned queue = 0; queue < group.size(); ++queue) {
        if (auto done = submit(queue, group[queue].raw); !done) return done;
      }
      for (unsigned queue = 0; queue < group.size(); ++queue) {
        if (auto done = machine_->wait(queue); !done) return done;
      }
      executor_.for_each(group.size(), [&](size_t i, unsigned) { code(static_cast<unsigned>(i), group[i]); });
    }
    return {};
  }

 private:
  enum Regions : size_t { kRaw, kRawSize, kMatches, kResolved, kCounts, kLz, kStreamAt, kStreamSizes };
  static constexpr codec::RegionName kRegions[] = {
      {"raw"},          {"raw size"}, {"matches", true},        {"resolved matches", true},
      {"counts", true}, {"lz block"}, {"stream offsets", true}, {"stream sizes", true}};

  Result<void> submit(unsigned queue, Bytes raw) {
    using namespace kernels;
    const auto size = static_cast<uint32_t>(raw.size());
    const std::vector<codec::KernelCall> calls = codec::lz_block_calls(
        codec::MatchSearch::chains, {kRaw, kRawSize, kMatches, kResolved, kCounts, kLz, kStreamAt, kStreamSizes}, 1,
        (size + 15) / 16 * 16, 0);
    const auto regions = costs_.regions(kRegions, calls);
    if (!regions) return tl::unexpected(regions.error());
    if (auto arranged = machine_->arrange(queue, *regions); !arranged) return arranged;
    std::copy(raw.begin(), raw.end(), machine_->host(queue, kRaw).begin());
    std::memcpy(machine_->host(queue, kRawSize).data(), &size, sizeof size);
    for (const size_t region : {kRaw, kRawSize}) {
      if (auto copied = machine_->upload(queue, region); !copied) return copied;
    }
    for (const codec::KernelCall& call : calls) {
      if (auto ready = machine_->prepare(call.kernel); !ready) return ready;
      if (auto launched = codec::launch(*machine_, queue, call); !launched) return launched;
    }
    return machine_->download(queue, kLz);
  }

  void code(unsigned queue, BlockToEncode& block) {
    const Bytes lz = machine_->host(queue, kLz);
    block.coded.assign(lz.begin(), lz.begin() + kernels::kLzBlockHeaderBytes);
    size_t at = kernels::kLzBlockHeaderBytes;
    for (const size_t size : codec::lz_stream_sizes(lz.data())) {
      codec::append_stream(block.coded, lz.subspan(at, size),
                           [](Bytes raw, codec::MutableBytes room) { return cpu::rans_warp_encode(raw, room, {}); });
      at += size;
    }
    if (block.coded.size() >= block.raw.size()) block.coded.clear();
  }

  std::unique_ptr<Machine> machine_;
  codec::DeclaredCosts costs_{*machine_};
  codec::Executor& executor_;
};

}  // namespace

Result<Measurements> run_chain(const Settings& settings) {
  codec::Executor executor;
  Measurements all;
  all.cpu = fmt::format("{} threads", executor.thread_count());
  auto whole = make_machine(settings, settings.queue_count), half = make_machine(settings, kSplitQueues);
  if (!whole) return tl::unexpected(whole.error());
  if (!half) return tl::unexpected(half.error());
  all.device = (*whole)->description();
  codec::BlockKernels kernels(std::move(*whole), executor);
  SplitEncoder split(std::move(*half), executor);
  for (const auto& paths : settings.inputs()) {
    auto input = load_input(paths, settings.size_bytes);
    if (!input) return tl::unexpected(input.error());
    input->chunk_bytes = size_t{1} << format::row_of(PtzCodec::lzr).block_bits;
    std::vector<std::vector<uint8_t>> expected(input->chunk_count());
    executor.for_each(expected.size(),
                      [&](size_t i, unsigned) { expected[i] = codec::encode_block(PtzCodec::lzr, input->chunk(i)); });
    std::vector<BlockToEncode> blocks;
    for (size_t i = 0; i < expected.size(); ++i) blocks.push_back({input->chunk(i)});
    double seconds[2];
    const auto measure = [&](double& into, const auto& encode) -> Result<void> {
      const auto median = median_wall_seconds(settings.repetition, encode);
      if (!median) return tl::unexpected(median.error());
      into = *median;
      for (size_t i = 0; i < expected.size(); ++i) {
        if (blocks[i].coded != expected[i]) return fail(fmt::format("block {} differs from the CPU's", i), input->name);
      }
      return {};
    };
    auto done = measure(seconds[0], [&] { return kernels.encode(PtzCodec::lzr, blocks); });
    if (done) done = measure(seconds[1], [&] { return split.encode(blocks); });
    if (!done) return tl::unexpected(done.error());
    const double ratio = stored_ratio(*input, expected);
    const auto row = [&](const char* what, double of) {
      all.rows.push_back({input->name, what, input->chunk_bytes, input->raw.size(), ratio, of});
    };
    row("lz77, demux, rans on the GPU", seconds[0]);
    row("rans on the CPU", seconds[1]);
    all.notes.push_back(fmt::format("{}: the chain is {:.2f} times as fast", input->name, seconds[1] / seconds[0]));
  }
  return all;
}

}  // namespace ptxkit::bench
