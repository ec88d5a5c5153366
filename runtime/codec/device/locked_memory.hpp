// Page-locked memory handed out by a machine, which can be looked up by address. Freed memory is kept for later
// requests, because locking pages costs as much as compressing them. Memory may outlive the machine.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/threads/reclaimer.hpp"

namespace ptxkit::codec {

// The address ranges of page-locked memory. The devices of a process share it: memory page-locked for one is
// page-locked for all.
class LockedRanges {
 public:
  void add(const uint8_t* first, size_t size_bytes) {
    std::lock_guard lock(mutex_);
    end_of_[first] = first + size_bytes;
  }
  void remove(const uint8_t* first) {
    std::lock_guard lock(mutex_);
    end_of_.erase(first);
  }
  bool contain(Bytes memory) const {
    std::lock_guard lock(mutex_);
    auto next = end_of_.upper_bound(memory.data());
    return next != end_of_.begin() && memory.data() + memory.size() <= (--next)->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<const uint8_t*, const uint8_t*> end_of_;
};

class LockedMemory {
 public:
  using Allocate = std::function<Result<HostMemory>(size_t size_bytes)>;
  // `ranges` lists the memory in use. Surplus memory is destroyed on `reclaimer`, if it is not null.
  LockedMemory(Allocate allocate, std::shared_ptr<LockedRanges> ranges,
               std::shared_ptr<scheduler::Reclaimer> reclaimer = nullptr)
      : allocate_(std::move(allocate)), state_(std::make_shared<State>()) {
    state_->ranges = std::move(ranges);
    state_->reclaimer = std::move(reclaimer);
  }

  Result<HostMemory> allocate(size_t size_bytes) {
    auto memory = reuse(size_bytes);
    if (!memory) {
      auto fresh = allocate_(size_bytes);
      if (!fresh) return fresh;
      memory = std::move(*fresh);
    }
    uint8_t* const first = memory->bytes().data();
    {
      std::lock_guard lock(state_->mutex);
      state_->most_in_use = std::max(state_->most_in_use, ++state_->in_use);
    }
    state_->ranges->add(first, size_bytes);
    const auto give_back = [state = state_, memory = std::move(*memory)](uint8_t* at) {
      state->ranges->remove(at);
      HostMemory dropped;
      std::lock_guard lock(state->mutex);
      --state->in_use;
      state->spare.push_back(memory);
      if (state->spare.size() + state->in_use <= std::max(kMostSpare, state->most_in_use)) return;
      dropped = std::move(state->spare.front());
      state->spare.pop_front();
      if (state->reclaimer != nullptr) state->reclaimer->take(std::exchange(dropped, {}));
    };
    return HostMemory(std::shared_ptr<uint8_t>(first, give_back), size_bytes);
  }

  bool contains(Bytes memory) const { return state_->ranges->contain(memory); }

 private:
  // Both buffers of four batches; more if more were in use at a time, so that many streams find memory to reuse.
  static constexpr size_t kMostSpare = 8;

  struct State {
    std::mutex mutex;
    size_t in_use = 0, most_in_use = 0;  // now; the maximum so far
    std::deque<HostMemory> spare;        // most recent last
    std::shared_ptr<LockedRanges> ranges;
    std::shared_ptr<scheduler::Reclaimer> reclaimer;
  };

  // Takes the smallest spare block that is large enough; among equals the most recent. There is no upper limit: if
  // short streams locked memory of their own, it would push out what the next long stream needs.
  std::optional<HostMemory> reuse(size_t size_bytes) {
    std::lock_guard lock(state_->mutex);
    auto& spare = state_->spare;
    auto best = spare.end();
    for (auto at = spare.begin(); at != spare.end(); ++at) {
      const size_t found_bytes = at->bytes().size();
      if (found_bytes >= size_bytes && (best == spare.end() || found_bytes <= best->bytes().size())) best = at;
    }
    if (best == spare.end()) return std::nullopt;
    HostMemory memory = std::move(*best);
    spare.erase(best);
    return memory;
  }

  Allocate allocate_;
  std::shared_ptr<State> state_;
};

}  // namespace ptxkit::codec
