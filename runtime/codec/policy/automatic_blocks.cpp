#include "runtime/codec/policy/automatic_blocks.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/format/codecs.hpp"
#include "runtime/codec/policy/scheduled_blocks.hpp"
#include "support/guarded.hpp"
#include "support/result.hpp"
#include "support/thread.hpp"

namespace ptxkit::codec {
namespace {

using Clock = std::chrono::steady_clock;

// Assumptions about a device that has not been measured, and about the CPU.
constexpr double kUnmeasuredStartSeconds = 0.5, kUnmeasuredCpuThreadRate = 20e6;
// The rest must take the CPU as long as so many starts: one passes before the device codes anything.
constexpr double kStartsThatPay = 2;
constexpr double kLeastGain = 0.04;  // smaller differences are within the noise of measurements
// A device below this fraction of the CPU's rate gets no batch of the stream: waiting for its share would cost more
// than it could give.
constexpr double kLeastDeviceShare = 0.1;
constexpr double kOfLastBatch = 0.5;  // weight of the last batch in a rate
constexpr unsigned kThreadsPerCopyThread = 4;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

class AutomaticBlocks final : public BlockCoder {
 public:
  AutomaticBlocks(std::unique_ptr<BlockCoder> cpu, AutomaticDevice device)
      : cpu_(std::move(cpu)), how_(std::move(device)), kept_(kept_rates(how_)), work_(how_.notice) {}
  ~AutomaticBlocks() override {
    if (starter_) starter_->join();
    keep_rates();
  }

  std::string description() const override {
    if (!is_ready_ || work_.has_failed()) return cpu_->description();
    return fmt::format("{}; {}", cpu_->description(), device_->description());
  }
  size_t batch_blocks(const BlockCoding& codec, size_t raw_bytes) override {
    const size_t of_cpu = cpu_->batch_blocks(codec, raw_bytes);
    return is_known_as_slower(codec) ? of_cpu : std::max(of_cpu, how_.batch_bytes / raw_bytes);
  }
  size_t blocks_in_host_memory() const override { return cpu_->blocks_in_host_memory(); }
  bool may_use_device() const override { return true; }
  bool is_starting_device() const override { return starter_ && !is_settled_; }

  Result<void> encode(const BlockCoding& codec, std::span<BlockToEncode> blocks, MatchSearch search) override {
    size_t bytes = 0;
    for (const BlockToEncode& block : blocks) bytes += block.raw.size();
    const auto with = [=](BlockCoder& coder, std::span<BlockToEncode> part) {
      return coder.encode(codec, part, search);
    };
    return run(work_name(codec, search), codec, blocks, bytes, with,
               [&](size_t most_bytes) { return sample_of(blocks, most_bytes, with); });
  }
  Result<void> decode(const BlockCoding& codec, std::span<BlockToDecode> blocks) override {
    size_t bytes = 0;
    for (const BlockToDecode& block : blocks) bytes += block.raw.size();
    const auto with = [=](BlockCoder& coder, std::span<BlockToDecode> part) { return coder.decode(codec, part); };
    return run(work_name(codec), codec, blocks, bytes, with,
               [&](size_t most_bytes) { return sample_of(blocks, most_bytes, with); });
  }

 private:
  // Codes copies of some blocks of the stream; returns their raw bytes.
  using Sample = std::function<Result<size_t>(BlockCoder&)>;

  template <class With>
  static Sample sample_of(std::span<const BlockToEncode> blocks, size_t most_bytes, const With& with) {
    auto raws = std::make_shared<std::vector<std::vector<uint8_t>>>();
    size_t bytes = 0;
    for (const BlockToEncode& block : blocks) {
      if (!raws->empty() && bytes + block.raw.size() > most_bytes) break;
      raws->emplace_back(block.raw.begin(), block.raw.end());
      bytes += block.raw.size();
    }
    return [=](BlockCoder& coder) -> Result<size_t> {
      std::vector<BlockToEncode> copies;
      for (const auto& raw : *raws) copies.push_back({raw});
      return with(coder, std::span(copies)).map([&] { return bytes; });
    };
  }
  template <class With>
  static Sample sample_of(std::span<const BlockToDecode> blocks, size_t most_bytes, const With& with) {
    auto all = std::make_shared<std::vector<std::pair<std::vector<uint8_t>, std::vector<uint8_t>>>>();
    size_t bytes = 0;
    for (const BlockToDecode& block : blocks) {
      if (!all->empty() && bytes + block.raw.size() > most_bytes) break;
      all->emplace_back(std::vector(block.coded.begin(), block.coded.end()), std::vector<uint8_t>(block.raw.size()));
      bytes += block.raw.size();
    }
    return [=](BlockCoder& coder) -> Result<size_t> {
      std::vector<BlockToDecode> copies;
      for (auto& [coded, raw] : *all) copies.push_back({coded, raw});
      return with(coder, std::span(copies)).map([&] { return bytes; });
    };
  }

  template <class Block, class With, class MakeSample>
  Result<void> run(const std::string& work, const BlockCoding& codec, std::span<Block> blocks, size_t bytes,
                   const With& with, const MakeSample& make_sample) {
    if (blocks.empty()) return {};
    const BlockSide side = side_for(work);
    const auto begin = Clock::now();
    Result<void> done = run_on(side, codec, blocks, with);
    if (!done) return done;
    const double seconds = std::max(seconds_since(begin), 1e-9);
    if (side == BlockSide::cpu || !work_.has_failed()) record(work, side, static_cast<double>(bytes) / seconds);
    done_bytes_ += bytes;
    if (is_worth_a_start(work)) start(work, make_sample(how_.sample_bytes));
    return done;
  }

  template <class Block, class With>
  Result<void> run_on(BlockSide side, const BlockCoding& codec, std::span<Block> blocks, const With& with) {
    const auto on_cpu = [&](std::span<Block> part) { return with(*cpu_, part); };
    if (side == BlockSide::cpu) return on_cpu(blocks);
    return work_.run(
        side == BlockSide::both ? Sharing::both : Sharing::device_only, blocks,
        shared_grain(*device_, *cpu_, codec, blocks.front().raw.size(), blocks.size()),
        [&](std::span<Block> part) { return with(*device_, part); }, on_cpu);
  }

  // The side with the highest rate. A side without a rate is tried first, if it can be worth it.
  BlockSide side_for(const std::string& work) {
    if (!is_ready_ || work_.has_failed()) return BlockSide::cpu;
    SideRates rates = rates_[work];
    // Rates of this device from an earlier run.
    if (is_device_of_kept_ && kept_->rates.contains(work)) {
      const SideRates& known = kept_->rates.at(work);
      for (const size_t side : {1, 2}) rates[side] = rates[side] == 0 ? known[side] : rates[side];
    }
    const auto rate = [&](BlockSide side) { return rates[static_cast<size_t>(side)]; };
    if (rate(BlockSide::cpu) == 0) return BlockSide::cpu;
    const bool is_tried = tried_.contains(work);
    const double of_device = rate(BlockSide::device) != 0 ? rate(BlockSide::device) : first_device_rate_;
    if (of_device < kLeastDeviceShare * rate(BlockSide::cpu)) return BlockSide::cpu;
    if (rate(BlockSide::both) == 0) return BlockSide::both;
    if (rate(BlockSide::device) == 0) return BlockSide::device;
    BlockSide best = BlockSide::cpu;
    for (const BlockSide side : {BlockSide::device, BlockSide::both}) {
      if ((1 - kLeastGain) * rate(side) > rate(best)) best = side;
    }
    if (!is_tried) {
      tried_.insert(work);
      tell(fmt::format("{} on {}: {:.0f} MB/s on the CPU, {:.0f} on the GPU, {:.0f} on both", work, name_of(best),
                       rate(BlockSide::cpu) / 1e6, rate(BlockSide::device) / 1e6, rate(BlockSide::both) / 1e6));
    }
    return best;
  }

  void record(const std::string& work, BlockSide side, double rate) {
    double& of = rates_[work][static_cast<size_t>(side)];
    of = of == 0 ? rate : (1 - kOfLastBatch) * of + kOfLastBatch * rate;
  }

  // Rates of as many threads; of which device is known when it is open.
  static std::optional<BlockRates> kept_rates(const AutomaticDevice& how) {
    auto kept = load_block_rates(how.rates_path);
    return kept && kept->cpu_threads == how.cpu_threads ? kept : std::nullopt;
  }

  // Whether every kept rate of the codec is against a device, so that no batch needs to be large.
  bool is_known_as_slower(const BlockCoding& codec) const {
    bool is_known = false, is_faster = false;
    for (const std::string& work :
         {work_name(codec, MatchSearch::chains), work_name(codec, MatchSearch::tables), work_name(codec)}) {
      if (!kept_ || !kept_->rates.contains(work)) continue;
      const SideRates& rates = kept_->rates.at(work);
      is_known = true;
      is_faster |= std::max(rates[1], rates[2]) > rates[0];
    }
    return is_known && !is_faster;
  }

  bool is_worth_a_start(const std::string& work) {
    if (starter_ || is_settled_ || done_bytes_ >= how_.expected_bytes) return false;
    const double cpu_rate = rates_[work][static_cast<size_t>(BlockSide::cpu)];
    const double left_seconds = static_cast<double>(how_.expected_bytes - done_bytes_) / cpu_rate;
    const double start_seconds = kept_ ? kept_->start_seconds : kUnmeasuredStartSeconds;
    if (left_seconds < kStartsThatPay * start_seconds) return false;
    if (!kept_) return true;
    const auto known = kept_->rates.find(work);
    if (known == kept_->rates.end()) return true;
    const double with_device = std::max(known->second[1], known->second[2]);
    return with_device == 0 || (1 - kLeastGain) * with_device > cpu_rate;
  }

  void start(const std::string& work, Sample sample) {
    tell(fmt::format("{}: starting the GPU beside the CPU", work));
    starter_ = try_thread([this, work, sample = std::move(sample)] {
      const Result<void> started = guarded([&] { return open_and_try(sample); });
      // Even if the notice of it finds no memory.
      (void)guarded([&]() -> Result<void> {
        if (!started) work_.device_failed(started.error());
        return {};
      });
      is_settled_ = true;
    });
    if (!starter_) is_settled_ = true;
  }

  // The start includes the first sample, which compiles kernels; the second sample gives the rate of the device.
  Result<void> open_and_try(const Sample& sample) {
    const auto begin = Clock::now();
    copies_.emplace(std::max(1u, how_.cpu_threads / kThreadsPerCopyThread));
    auto device = how_.open(*copies_);
    if (!device) return {};
    if (const auto coded = sample(*device); !coded) return tl::unexpected(coded.error());
    start_seconds_ = seconds_since(begin);
    const auto again = Clock::now();
    const auto bytes = sample(*device);
    if (!bytes) return tl::unexpected(bytes.error());
    first_device_rate_ = static_cast<double>(*bytes) / std::max(seconds_since(again), 1e-9);
    device_ = std::move(device);
    is_device_of_kept_ = kept_ && kept_->device == device_->description();
    is_ready_ = true;  // last: publishes what is written above
    return {};
  }

  void keep_rates() {
    if (!is_ready_ || work_.has_failed() || how_.rates_path.empty()) return;
    BlockRates all{device_->description(), how_.cpu_threads, start_seconds_, {}};
    if (is_device_of_kept_) all.rates = kept_->rates;
    for (const auto& [work, rates] : rates_) {
      for (size_t side = 0; side < kBlockSides; ++side) {
        if (rates[side] != 0) all.rates[work][side] = rates[side];
      }
      // A device that got no batch of the stream.
      double& of_device = all.rates[work][static_cast<size_t>(BlockSide::device)];
      if (of_device == 0) of_device = first_device_rate_;
    }
    if (auto saved = save_block_rates(all, how_.rates_path); !saved) {
      tell("rates are not kept: " + saved.error().message());
    }
  }

  void tell(const std::string& message) const {
    if (how_.notice) how_.notice(message, false);
  }

  std::unique_ptr<BlockCoder> cpu_;
  const AutomaticDevice how_;
  const std::optional<BlockRates> kept_;
  SharedWork work_;
  std::map<std::string, SideRates> rates_;  // measured in this run
  std::set<std::string> tried_;             // works whose choice was reported
  uint64_t done_bytes_ = 0;
  std::optional<std::jthread> starter_;
  // Written by the starter until is_ready_; is_settled_ means that it has ended. Copies to and from the device have an
  // executor of their own: copies and CPU blocks on one executor would wait for each other.
  std::optional<Executor> copies_;
  std::unique_ptr<BlockCoder> device_;
  double start_seconds_ = 0, first_device_rate_ = 0;
  bool is_device_of_kept_ = false;
  std::atomic<bool> is_ready_{false}, is_settled_{false};
};

}  // namespace

bool may_be_worth_a_device(const std::optional<BlockRates>& kept, unsigned cpu_threads, uint64_t bytes) {
  const double start_seconds = kept && kept->cpu_threads == cpu_threads ? kept->start_seconds : kUnmeasuredStartSeconds;
  return static_cast<double>(bytes) / (kUnmeasuredCpuThreadRate * cpu_threads) > kStartsThatPay * start_seconds;
}

std::unique_ptr<BlockCoder> automatic_blocks(std::unique_ptr<BlockCoder> cpu, AutomaticDevice device) {
  return std::make_unique<AutomaticBlocks>(std::move(cpu), std::move(device));
}

}  // namespace ptxkit::codec
