// Blocks of 256 KiB from raw bytes to what `.ptz` stores with codec lzr, two ways: match finder, demux and rANS one
// after another on the GPU (runtime/backend/kernels/block_kernels.hpp), and match finder and demux there, rANS on all
// CPU threads. Host memory to host memory, wall time; both must give the bytes of the CPU's encoder.
#include <cstring>

#include <fmt/format.h>

#include "kernels/images.hpp"
#include "kernels/lz77/abi.hpp"
#include "runtime/backend/cpu/coders/coders.hpp"
#include "runtime/backend/cuda/cuda_machine.hpp"
#include "runtime/backend/kernels/block_kernels.hpp"
#include "runtime/codec/block_codec.hpp"
#include "runtime/codec/coded_stream.hpp"
#include "tools/ptx-bench/gpu_lz4.hpp"
#include "tools/ptx-bench/verb.hpp"

namespace ptxkit::bench {
namespace {

using codec::BlockToEncode;
using codec::Bytes;
using codec::Machine;
using driver::LaunchArgument;
using format::PtzCodec;

constexpr unsigned kSplitQueues = 32;  // a block each: what the chain takes in groups

Result<std::unique_ptr<Machine>> make_machine(const Settings& settings, unsigned queue_count) {
  auto context = open_device(settings.device);
  if (!context) return tl::unexpected(context.error());
  codec::CudaLimits limits;
  if (queue_count != 0) limits.queue_count = queue_count;
  return codec::make_cuda_machine(*context, kernels::find_kernel_image, limits);
}

// LZ blocks from the GPU, streams of theirs from the CPU.
class SplitEncoder {
 public:
  SplitEncoder(std::unique_ptr<Machine> machine, codec::Executor& executor)
      : machine_(std::move(machine)), executor_(executor) {}

  Result<void> encode(std::span<BlockToEncode> blocks) {
    for (std::size_t begin = 0; begin < blocks.size(); begin += machine_->queue_count()) {
      const auto group = blocks.subspan(begin, std::min<std::size_t>(machine_->queue_count(), blocks.size() - begin));
      for (unsigned queue = 0; queue < group.size(); ++queue) {
        if (auto done = submit(queue, group[queue].raw); !done) return done;
      }
      for (unsigned queue = 0; queue < group.size(); ++queue) {
        if (auto done = machine_->wait(queue); !done) return done;
      }
      executor_.for_each(group.size(), [&](std::size_t i, unsigned) { code(static_cast<unsigned>(i), group[i]); });
    }
    return {};
  }

 private:
  enum Regions : std::size_t { kRaw, kRawSize, kMatches, kResolved, kCounts, kLz, kStreamAt, kStreamSizes };

  Result<void> submit(unsigned queue, Bytes raw) {
    using namespace kernels;
    const auto size = static_cast<std::uint32_t>(raw.size());
    const std::uint32_t room = (size + 15) / 16 * 16, segments = (size + kLzSegmentBytes - 1) / kLzSegmentBytes;
    const std::uint32_t position_blocks = (size + kLzBlockThreads - 1) / kLzBlockThreads;
    const codec::Region regions[] = {{"raw", room},
                                     {"raw size", 4},
                                     {"matches", size * sizeof(LzMatch), nullptr, true},
                                     {"resolved matches", size * sizeof(LzMatch), nullptr, true},
                                     {"counts", std::size_t{16} * segments, nullptr, true},
                                     {"lz block", lz_block_bound(size)},
                                     {"stream offsets", 8 * kLzStreams, nullptr, true},
                                     {"stream sizes", 4 * kLzStreams, nullptr, true}};
    if (auto arranged = machine_->arrange(queue, regions); !arranged) return arranged;
    std::copy(raw.begin(), raw.end(), machine_->host(queue, kRaw).begin());
    std::memcpy(machine_->host(queue, kRawSize).data(), &size, sizeof size);
    const auto at = [&](std::size_t region) { return LaunchArgument::of_address(machine_->address(queue, region)); };
    const LaunchArgument sizes = at(kRawSize), item_bytes = LaunchArgument::of(room);
    struct Step {
      std::string_view kernel;
      std::uint32_t grid_blocks, block_threads;
      std::vector<LaunchArgument> arguments;
    };
    const Step steps[] = {
        {kLz77Link, kLzLinkBlocks, 32, {at(kRaw), sizes, at(kMatches), item_bytes}},
        {kLz77Hash, position_blocks, kLzBlockThreads, {at(kRaw), sizes, at(kMatches), item_bytes}},
        {kLz77Lazy, position_blocks, kLzBlockThreads, {at(kMatches), at(kResolved), sizes, item_bytes}},
        {kDemuxCount, segments, 32, {at(kResolved), sizes, at(kCounts), item_bytes}},
        {kDemuxScatter,
         segments,
         32,
         {at(kRaw), sizes, at(kResolved), at(kCounts), at(kLz), at(kStreamAt), at(kStreamSizes), item_bytes,
          LaunchArgument::of(std::uint32_t{0})}}};
    for (const std::size_t region : {kRaw, kRawSize}) {
      if (auto copied = machine_->upload(queue, region); !copied) return copied;
    }
    for (const Step& step : steps) {
      if (auto ready = machine_->prepare(step.kernel); !ready) return ready;
      auto launched = machine_->launch(queue, step.kernel, step.grid_blocks, step.block_threads, step.arguments);
      if (!launched) return launched;
    }
    return machine_->download(queue, kLz);
  }

  void code(unsigned queue, BlockToEncode& block) {
    const Bytes lz = machine_->host(queue, kLz);
    block.coded.assign(lz.begin(), lz.begin() + kernels::kLzBlockHeaderBytes);
    std::size_t at = kernels::kLzBlockHeaderBytes;
    for (const std::size_t size : codec::lz_stream_sizes(lz.data())) {
      codec::append_stream(block.coded, lz.subspan(at, size),
                           [](Bytes raw, codec::MutableBytes room) { return cpu::rans_warp_encode(raw, room, {}); });
      at += size;
    }
    if (block.coded.size() >= block.raw.size()) block.coded.clear();
  }

  std::unique_ptr<Machine> machine_;
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
    input->chunk_bytes = std::size_t{1} << codec::usual_block_bits(PtzCodec::lzr);
    std::vector<std::vector<std::uint8_t>> expected(input->chunk_count());
    executor.for_each(expected.size(), [&](std::size_t i, unsigned) {
      expected[i] = codec::encode_block(PtzCodec::lzr, input->chunk(i));
    });
    std::vector<BlockToEncode> blocks;
    for (std::size_t i = 0; i < expected.size(); ++i) blocks.push_back({input->chunk(i)});
    double seconds[2];
    const auto measure = [&](double& into, const auto& encode) -> Result<void> {
      const auto median = median_wall_seconds(settings.repetition, encode);
      if (!median) return tl::unexpected(median.error());
      into = *median;
      for (std::size_t i = 0; i < expected.size(); ++i) {
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
