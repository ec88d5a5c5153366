#include "runtime/codec/device/cuda_machine.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/device/locked_memory.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "runtime/codec/threads/reclaimer.hpp"
#include "runtime/driver/graph.hpp"
#include "support/check.hpp"

namespace ptxkit::codec {
namespace {

using driver::DeviceMemory;
using driver::Event;
using driver::Graph;
using driver::Kernel;
using driver::PinnedMemory;
using driver::Stream;

constexpr size_t kRegionAlignment = 256;
constexpr uint64_t kLeastQueueBytes = 256u << 10;
constexpr size_t kFirstTimedCalls = 64;
// Left for modules, local memory and other processes; at most a quarter of the free memory.
constexpr uint64_t kReserveBytes = 256u << 20;

enum class CallKind : uint8_t { copy_up, kernels, copy_down };
constexpr std::array kSpans = {scheduler::kCopyUpSpan, scheduler::kKernelsSpan, scheduler::kCopyDownSpan};
constexpr std::array<double DeviceTimes::*, 3> kTimes = {&DeviceTimes::h2d, &DeviceTimes::kernel, &DeviceTimes::d2h};

class CudaMachine final : public Machine {
 public:
  struct TimedCall {
    Event begin, end;
    CallKind kind = CallKind::copy_up;
    scheduler::Trace::LineNumber line = 0;  // of its stream
  };
  struct Queue {
    Stream kernels;
    Event last;                           // recorded after the last call on the queue
    const Stream* last_stream = nullptr;  // the stream of that call
    scheduler::Reservation permit = {};
    std::optional<DeviceMemory> device = {};
    std::optional<PinnedMemory> staging = {};
    struct Placed {
      size_t offset_bytes, size_bytes;
      uint8_t* host;
      std::optional<uint64_t> on_host;  // the address by which the device reaches `host`
    };
    std::vector<Placed> placed = {};
    bool is_chaining = false;
    std::vector<const Kernel*> chained = {};        // launches of the current chain
    std::optional<Graph> chain = {};                // graph of the last chain
    std::vector<const Kernel*> chain_kernels = {};  // its launches
    std::vector<TimedCall> timed = {}, spare = {};  // calls that are not complete; free events
    size_t most_timed = 0;                          // calls between two reads of their times
    DeviceTimes times = {};
  };

  CudaMachine(driver::ContextPointer context, FindImage find_image, Stream up, Stream down, std::vector<Queue> queues,
              uint64_t budget_bytes, size_t slice_bytes, std::optional<Event> time_zero, scheduler::Trace* trace,
              std::shared_ptr<LockedRanges> page_locked)
      : context_(std::move(context)),
        find_image_(std::move(find_image)),
        memory_("device memory", budget_bytes),
        slice_bytes_(slice_bytes),
        up_(std::move(up)),
        down_(std::move(down)),
        queues_(std::move(queues)),
        time_zero_(std::move(time_zero)),
        trace_(trace),
        page_locked_(std::move(page_locked)) {
    if (trace_ == nullptr) return;
    trace_zero_ = trace_->now();
    const std::string process = description();
    lines_[0] = trace_->line(process, "copies up");
    for (size_t queue = 0; queue < queues_.size(); ++queue) {
      kernel_lines_.push_back(trace_->line(process, fmt::format("kernels, queue {}", queue)));
    }
    lines_[2] = trace_->line(process, "copies down");
  }
  // The reclaimer may still hold arenas, whose reservations belong to our ledger.
  ~CudaMachine() override { reclaimer_->drain(); }

  std::string_view name() const override { return "cuda"; }
  std::string description() const override {
    return fmt::format("cuda, device {}, {}", context_->info().ordinal, context_->description());
  }
  unsigned queue_count() const override { return static_cast<unsigned>(queues_.size()); }
  // Halved, because a slice needs about as much memory for its output as for its input.
  size_t slice_bytes() const override { return std::min(slice_bytes_, queue_memory_bytes() / 2); }
  size_t queue_memory_bytes() const override { return memory_.budget_bytes() / queues_.size(); }

  Result<const kernels::KernelImage*> image(std::string_view kernel) const override {
    const auto& info = context_->info();
    const kernels::KernelImage* const found = find_image_(kernel, info.major, info.minor);
    if (found != nullptr) return found;
    return fail(fmt::format("there is no image of kernel {} for sm_{}{}", kernel, info.major, info.minor),
                description(), "use --backend cpu");
  }
  Result<void> prepare(std::string_view kernel) override {
    if (kernels_.contains(kernel)) return {};
    const auto found = image(kernel);
    if (!found) return tl::unexpected(found.error());
    auto loaded = Kernel::load(context_, **found);
    if (!loaded) return tl::unexpected(loaded.error());
    kernels_.emplace(std::string(kernel), std::move(*loaded));
    return {};
  }

  Result<void> arrange(unsigned queue_index, std::span<const Region> regions) override {
    Queue& queue = queues_[queue_index];
    size_t total = 0, staged = 0;
    for (const Region& region : regions) {
      total += room_of(region);
      if (is_staged(region)) staged += room_of(region);
    }
    if (auto ready = grow(queue, total, staged); !ready) return ready;
    if (time_zero_) {
      if (auto prepared = prepare_events(queue); !prepared) return prepared;
    }
    queue.placed.clear();
    size_t offset = 0;
    uint8_t* staging = queue.staging ? queue.staging->bytes().data() : nullptr;
    for (const Region& region : regions) {
      std::optional<uint64_t> on_host;
      if (region.lies_on_host) {
        const auto address = driver::device_address_of(*context_, region.host);
        if (!address) return tl::unexpected(address.error());
        on_host = *address;
      }
      queue.placed.push_back({offset, region.size_bytes, is_staged(region) ? staging : region.host, on_host});
      offset += room_of(region);
      if (is_staged(region)) staging += room_of(region);
    }
    return {};
  }

  MutableBytes host(unsigned queue, size_t region) override {
    const auto& placed = queues_[queue].placed[region];
    return {placed.host, placed.size_bytes};
  }
  uint64_t address(unsigned queue, size_t region) override {
    const auto& placed = queues_[queue].placed[region];
    return placed.on_host.value_or(queues_[queue].device->handle() + placed.offset_bytes);
  }
  Result<void> upload(unsigned queue, size_t region) override {
    return in_order(queues_[queue], up_, CallKind::copy_up, [&](Queue& at) {
      return at.device->upload(host(queue, region), up_, at.placed[region].offset_bytes);
    });
  }
  Result<void> download(unsigned queue, size_t region) override {
    const Stream& kernels = queues_[queue].kernels;
    return in_order(queues_[queue], kernels, CallKind::copy_down, [&](Queue& at) {
      return at.device->download(host(queue, region), kernels, at.placed[region].offset_bytes);
    });
  }
  Result<void> upload_parts(unsigned queue, std::span<const PartUp> parts) override {
    return in_order(queues_[queue], up_, CallKind::copy_up, [&](Queue& at) -> Result<void> {
      for (const PartUp& part : parts) {
        auto put = at.device->upload(part.from, up_, at.placed[part.region].offset_bytes + part.offset_bytes);
        if (!put) return put;
      }
      return {};
    });
  }
  Result<void> clear(unsigned queue, size_t region) override {
    return in_order(queues_[queue], up_, CallKind::copy_up, [&](Queue& at) {
      const auto& placed = at.placed[region];
      return at.device->fill(0, up_, placed.offset_bytes, placed.size_bytes);
    });
  }
  Result<void> download_parts(unsigned queue, std::span<const PartDown> parts) override {
    return in_order(queues_[queue], down_, CallKind::copy_down, [&](Queue& at) -> Result<void> {
      for (const PartDown& part : parts) {
        auto put = at.device->download(part.into, down_, at.placed[part.region].offset_bytes + part.offset_bytes);
        if (!put) return put;
      }
      return {};
    });
  }
  Result<void> upload_rows(unsigned queue, size_t region, std::span<const driver::Rows> rows) override {
    if (queues_[queue].placed[region].on_host) return {};
    return in_order(queues_[queue], up_, CallKind::copy_up, [&](Queue& at) -> Result<void> {
      for (const driver::Rows& some : rows) {
        auto put = at.device->upload_rows(host(queue, region), some, up_, at.placed[region].offset_bytes);
        if (!put) return put;
      }
      return {};
    });
  }
  Result<void> download_rows(unsigned queue, size_t region, std::span<const driver::Rows> rows) override {
    if (queues_[queue].placed[region].on_host) return {};
    return in_order(queues_[queue], down_, CallKind::copy_down, [&](Queue& at) -> Result<void> {
      for (const driver::Rows& some : rows) {
        auto put = at.device->download_rows(host(queue, region), some, down_, at.placed[region].offset_bytes);
        if (!put) return put;
      }
      return {};
    });
  }

  Result<void> launch(unsigned queue, std::string_view kernel, uint32_t grid_blocks, uint32_t block_threads,
                      std::span<const driver::LaunchArgument> arguments) override {
    const auto found = kernels_.find(kernel);
    PTXKIT_CHECK(found != kernels_.end(), "a kernel is prepared before it is launched");
    const Stream& kernels = queues_[queue].kernels;
    const auto launch = [&](Queue&) { return found->second.launch(kernels, grid_blocks, block_threads, arguments); };
    if (!queues_[queue].is_chaining) return in_order(queues_[queue], kernels, CallKind::kernels, launch);
    queues_[queue].chained.push_back(&found->second);
    const Result<void> launched = launch(queues_[queue]);
    if (!launched) (void)take_chain(queues_[queue]);
    return launched;
  }

  Result<void> begin_chain(unsigned index) override {
    Queue& queue = queues_[index];
    if (!Graph::is_supported(*context_)) return {};
    // A capture must not contain the wait for earlier calls, so the stream waits before it begins.
    if (queue.last_stream != nullptr && queue.last_stream != &queue.kernels) {
      if (auto waiting = queue.kernels.wait_for(queue.last); !waiting) return waiting;
    }
    const Result<void> begun = Graph::begin(queue.kernels);
    queue.is_chaining = begun.has_value();
    return begun;
  }
  Result<void> end_chain(unsigned index) override {
    Queue& queue = queues_[index];
    if (!queue.is_chaining) return {};
    if (auto taken = take_chain(queue); !taken) return taken;
    queue.last_stream = &queue.kernels;
    return in_order(queue, queue.kernels, CallKind::kernels, [](Queue& at) { return at.chain->launch(at.kernels); });
  }

  Result<void> wait(unsigned index) override {
    Queue& queue = queues_[index];
    if (queue.last_stream == nullptr) return {};
    Result<void> waited = queue.last.wait();
    if (!waited) return waited;
    // Later calls need not wait for this event.
    queue.last_stream = nullptr;
    return read_times(index);
  }
  DeviceTimes take_times(unsigned queue) override { return std::exchange(queues_[queue].times, {}); }

  Result<HostMemory> host_memory(size_t size_bytes) override { return locked_.allocate(size_bytes); }
  bool is_page_locked(Bytes memory) const override { return locked_.contains(memory); }

 private:
  static bool is_staged(const Region& region) { return region.host == nullptr && !region.stays_on_device; }

  Result<void> take_chain(Queue& queue) {
    queue.is_chaining = false;
    // A graph is updated only for the same kernels: a driver refuses other updates and reports them as errors. The old
    // graph is destroyed only after the capture has ended.
    std::optional<Graph> last = std::exchange(queue.chain, std::nullopt);
    const bool is_same = queue.chained == queue.chain_kernels;
    queue.chain_kernels = std::exchange(queue.chained, {});
    auto graph = Graph::end(context_, queue.kernels, is_same ? std::exchange(last, std::nullopt) : std::nullopt);
    if (!graph) return tl::unexpected(graph.error());
    queue.chain = std::move(*graph);
    return {};
  }

  static size_t room_of(const Region& region) {
    if (region.lies_on_host) return 0;
    return (region.size_bytes + kRegionAlignment - 1) / kRegionAlignment * kRegionAlignment;
  }

  // Runs the calls of a queue in order although they use three streams: a call on another stream than the previous one
  // makes its stream wait for the queue's last event.
  template <class Put>
  Result<void> in_order(Queue& queue, const Stream& stream, CallKind kind, Put put) {
    if (queue.last_stream != nullptr && queue.last_stream != &stream) {
      if (auto waiting = stream.wait_for(queue.last); !waiting) return waiting;
    }
    // arrange() prepares events, since creating one here may wait. When they are used up, a call extends the time of
    // the one before it on the same stream, and is not timed after a call on another stream.
    const bool begins = time_zero_ && !queue.spare.empty();
    const bool extends = time_zero_ && !begins && queue.last_stream == &stream && !queue.timed.empty() &&
                         queue.timed.back().kind == kind;
    if (begins) {
      if (auto timed = begin_timed(queue, stream, kind); !timed) return timed;
    }
    // A call that failed may have submitted something, so the event is recorded anyway.
    Result<void> done = put(queue);
    if ((begins || extends) && done) done = queue.timed.back().end.record(stream);
    queue.last_stream = &stream;
    const Result<void> recorded = queue.last.record(stream);
    return done ? recorded : done;
  }

  // Events for as many calls as a queue has been seen to make between two looks at its times, and half as many again.
  Result<void> prepare_events(Queue& queue) {
    const size_t wanted = std::max(kFirstTimedCalls, queue.most_timed + queue.most_timed / 2);
    while (queue.spare.size() + queue.timed.size() < wanted) {
      auto begin = Event::create(context_), end = Event::create(context_);
      if (!begin) return tl::unexpected(begin.error());
      if (!end) return tl::unexpected(end.error());
      queue.spare.push_back({std::move(*begin), std::move(*end)});
    }
    return {};
  }

  Result<void> begin_timed(Queue& queue, const Stream& stream, CallKind kind) {
    queue.timed.push_back(std::move(queue.spare.back()));
    queue.spare.pop_back();
    queue.timed.back().kind = kind;
    if (trace_ != nullptr) {
      const auto index = static_cast<size_t>(&queue - queues_.data());
      queue.timed.back().line = &stream == &queue.kernels ? kernel_lines_[index] : lines_[static_cast<size_t>(kind)];
    }
    return queue.timed.back().begin.record(stream);
  }

  // Reads the times of calls that are complete.
  Result<void> read_times(unsigned index) {
    Queue& queue = queues_[index];
    queue.most_timed = std::max(queue.most_timed, queue.timed.size());
    for (TimedCall& call : queue.timed) {
      const auto begin = call.begin.seconds_since(*time_zero_), end = call.end.seconds_since(*time_zero_);
      if (!begin) return tl::unexpected(begin.error());
      if (!end) return tl::unexpected(end.error());
      const auto kind = static_cast<size_t>(call.kind);
      queue.times.*kTimes[kind] += *end - *begin;
      if (trace_ != nullptr) {
        trace_->add({call.line, kSpans[kind], trace_zero_ + *begin, trace_zero_ + *end});
      }
      queue.spare.push_back(std::move(call));
    }
    queue.timed.clear();
    return {};
  }

  // Members are destroyed in reverse order: the reservation is given back after the memory is freed.
  struct Arena {
    scheduler::Reservation permit;
    DeviceMemory memory;
  };

  Result<void> grow(Queue& queue, size_t total, size_t staged) {
    if (!queue.staging || queue.staging->bytes().size() < staged) {
      if (queue.staging) reclaimer_->take(*std::exchange(queue.staging, {}));
      auto staging = PinnedMemory::allocate(context_, std::max<size_t>(staged, 1));
      if (!staging) return tl::unexpected(staging.error());
      queue.staging = std::move(*staging);
    }
    if (queue.device && queue.device->size_bytes() >= total) return {};
    if (queue.device) {
      reclaimer_->take(Arena{std::exchange(queue.permit, {}), *std::exchange(queue.device, {})});
    }
    auto permit = memory_.try_reserve(total);
    if (!permit) {
      // The budget need not hold the old and the new arena at the same time.
      reclaimer_->drain();
      permit = memory_.try_reserve(total);
    }
    if (!permit) {
      return fail(fmt::format("{} bytes of device memory are needed, {} of {} are left", total,
                              memory_.budget_bytes() - memory_.reserved_bytes(), memory_.budget_bytes()),
                  description(), "raise the budget, or use --backend cpu");
    }
    queue.permit = std::move(*permit);
    auto device = DeviceMemory::allocate(context_, total);
    if (!device) return tl::unexpected(device.error());
    queue.device = std::move(*device);
    // Copies down may include bytes that no kernel wrote: they must not expose what another process left in this
    // memory.
    return in_order(queue, up_, CallKind::copy_up, [&](Queue& at) { return at.device->fill(0, up_); });
  }

  driver::ContextPointer context_;
  FindImage find_image_;
  std::map<std::string, Kernel, std::less<>> kernels_;
  scheduler::Ledger memory_;
  std::shared_ptr<scheduler::Reclaimer> reclaimer_ = std::make_shared<scheduler::Reclaimer>();
  size_t slice_bytes_;
  Stream up_, down_;  // large copies of all queues, up and down, in the order of the calls
  std::vector<Queue> queues_;
  std::optional<Event> time_zero_;  // on the device's clock; none: times are not measured
  scheduler::Trace* trace_;
  double trace_zero_ = 0;                                // the same moment on the trace's clock
  std::array<scheduler::Trace::LineNumber, 3> lines_{};  // of copies, by kind
  std::vector<scheduler::Trace::LineNumber> kernel_lines_;
  std::shared_ptr<LockedRanges> page_locked_;
  LockedMemory locked_{[context = context_](size_t size_bytes) -> Result<HostMemory> {
                         auto pinned = PinnedMemory::allocate(context, std::max<size_t>(size_bytes, 1));
                         if (!pinned) return tl::unexpected(pinned.error());
                         uint8_t* const first = pinned->bytes().data();
                         const auto owner = std::make_shared<PinnedMemory>(std::move(*pinned));
                         return HostMemory(std::shared_ptr<uint8_t>(owner, first), size_bytes);
                       },
                       page_locked_, reclaimer_};
};

}  // namespace

Result<std::unique_ptr<Machine>> make_cuda_machine(driver::ContextPointer context, FindImage find_image,
                                                   const CudaLimits& limits,
                                                   std::shared_ptr<LockedRanges> page_locked) {
  PTXKIT_CHECK(limits.queue_count != 0, "a machine has a queue");
  auto free_bytes = context->free_memory_bytes();
  if (!free_bytes) return tl::unexpected(free_bytes.error());
  uint64_t budget_bytes = *free_bytes - std::min<uint64_t>(kReserveBytes, *free_bytes / 4);
  if (limits.memory_bytes != 0) budget_bytes = std::min(budget_bytes, limits.memory_bytes);
  auto up = Stream::create(context), down = Stream::create(context);
  if (!up) return tl::unexpected(up.error());
  if (!down) return tl::unexpected(down.error());
  std::vector<CudaMachine::Queue> queues;
  // Prefer fewer queues to queues that cannot hold a block of the usual size.
  const auto queue_count = std::clamp<uint64_t>(budget_bytes / kLeastQueueBytes, 1, limits.queue_count);
  for (unsigned i = 0; i < queue_count; ++i) {
    auto stream = Stream::create(context);
    if (!stream) return tl::unexpected(stream.error());
    auto event = Event::create_untimed(context);
    if (!event) return tl::unexpected(event.error());
    queues.push_back({std::move(*stream), std::move(*event)});
  }
  std::optional<Event> time_zero;
  if (limits.measures_times || limits.trace != nullptr) {
    auto event = Event::create(context);
    if (!event) return tl::unexpected(event.error());
    time_zero = std::move(*event);
    const auto recorded = time_zero->record(*up).and_then([&] { return time_zero->wait(); });
    if (!recorded) return tl::unexpected(recorded.error());
  }
  return std::make_unique<CudaMachine>(
      std::move(context), std::move(find_image), std::move(*up), std::move(*down), std::move(queues), budget_bytes,
      limits.slice_bytes, std::move(time_zero), limits.trace,
      page_locked != nullptr ? std::move(page_locked) : std::make_shared<LockedRanges>());
}

}  // namespace ptxkit::codec
