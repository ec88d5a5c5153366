// See order.hpp.
#include "runtime/emulator/core/order.hpp"

#include <algorithm>
#include <new>

#include <sys/mman.h>

namespace ptxkit::emulator {

namespace {

constexpr uint64_t kMaxChunks = (uint64_t{1} << 32) / LaunchOrder::kChunk;
constexpr size_t kMaxEntries = 512;  // of a View, before its entries are merged into its floor

uint64_t thread_key(uint32_t cta, uint32_t thread) { return uint64_t{cta} << 10 | thread; }

void raise(Epoch& known, Epoch epoch) { known = std::max(known, epoch); }

void raise(std::vector<Epoch>& known, const std::vector<Epoch>& epochs) {
  if (known.size() < epochs.size()) known.resize(epochs.size());
  for (size_t i = 0; i < epochs.size(); ++i) raise(known[i], epochs[i]);
}

// Shrinks a large View. With many threads it first drops those that the epoch of their warp covers, then merges threads
// into their warps. With many CTAs (a look-back over thousands) it becomes "everything up to its latest epoch".
void shrink(View& view) {
  // A View has the warps of every CTA that it has threads of.
  const auto warp_of = [&](uint64_t key) -> Epoch& {
    return view.warps.at(static_cast<uint32_t>(key >> 10))[key % 1024 / 32];
  };
  if (view.threads.size() > kMaxEntries)
    std::erase_if(view.threads, [&](const auto& each) { return each.second <= warp_of(each.first); });
  if (view.threads.size() > kMaxEntries) {
    for (const auto& [thread, epoch] : view.threads) raise(warp_of(thread), epoch);
    view.threads.clear();
  }
  if (view.warps.size() <= kMaxEntries) return;
  for (const auto& [cta, warps] : view.warps)
    for (Epoch epoch : warps) raise(view.floor, epoch);
  for (const auto& [thread, epoch] : view.threads) raise(view.floor, epoch);
  view.warps.clear();
  view.threads.clear();
}

bool covers(const View& a, const View& b) {
  if (b.floor > a.floor) return false;
  for (const auto& [cta, warps] : b.warps) {
    const auto known = a.warps.find(cta);
    for (size_t i = 0; i < warps.size(); ++i)
      if (warps[i] > a.floor && (known == a.warps.end() || warps[i] > known->second[i])) return false;
  }
  for (const auto& [thread, epoch] : b.threads) {
    const auto known = a.threads.find(thread);
    if (epoch > a.floor && (known == a.threads.end() || epoch > known->second)) return false;
  }
  return true;
}

SharedView join(const SharedView& a, const SharedView& b) {
  if (!a || a == b) return b;
  if (!b || covers(*a, *b)) return a;
  auto both = std::make_shared<View>(*a);
  raise(both->floor, b->floor);
  for (const auto& [cta, warps] : b->warps) raise(both->warps[cta], warps);
  for (const auto& [thread, epoch] : b->threads) raise(both->threads[thread], epoch);
  shrink(*both);
  return both;
}

}  // namespace

LaunchOrder::LaunchOrder(uint32_t ctas_per_cluster, bool parallel)
    : ctas_per_cluster_(ctas_per_cluster), parallel_(parallel) {
  void* pages = mmap(nullptr, kMaxChunks * sizeof(uint32_t), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();  // run_launch makes an error of it
  owners_ = static_cast<uint32_t*>(pages);
}

LaunchOrder::~LaunchOrder() { munmap(owners_, kMaxChunks * sizeof(uint32_t)); }

Epoch LaunchOrder::take_epochs(uint32_t cta) {
  if (full_) return kChunk;
  const uint32_t chunk = next_chunk_.fetch_add(1);
  if (chunk >= kMaxChunks - 1) {
    full_ = true;
    return kChunk;
  }
  owners_[chunk] = cta;
  return chunk * kChunk;
}

uint64_t LaunchOrder::group_of(Scope scope, uint32_t cta) const {
  if (scope == Scope::gpu) return 0;
  const uint64_t number = scope == Scope::cluster ? cluster_of(cta) : cta;
  return uint64_t{static_cast<uint8_t>(scope)} << 32 | number;
}

void LaunchOrder::publish(uint64_t location, Scope scope, uint32_t cta, const SharedView& view) {
  std::unique_lock lock(mutex_, std::defer_lock);
  if (parallel_) lock.lock();
  auto& views = published_[location];
  // A wide scope also reaches the CTAs of the narrower ones.
  for (uint8_t each = 1; each <= static_cast<uint8_t>(scope); ++each) {
    SharedView& there = views[group_of(Scope{each}, cta)];
    there = join(there, view);
  }
}

SharedView LaunchOrder::published(uint64_t location, Scope scope, uint32_t cta) {
  std::unique_lock lock(mutex_, std::defer_lock);
  if (parallel_) lock.lock();
  const auto at = published_.find(location);
  if (at == published_.end()) return nullptr;
  const auto view = at->second.find(group_of(scope, cta));
  return view == at->second.end() ? nullptr : view->second;
}

CtaOrder::CtaOrder(LaunchOrder& launch, uint32_t thread_count)
    : launch_(launch), thread_count_(thread_count), warp_count_((thread_count + 31) / 32) {}

void CtaOrder::restart(uint32_t cta) {
  cta_ = cta;
  first_ = now_ = launch_.take_epochs(cta);
  all_ = 0;
  warp_clock_.assign(size_t{warp_count_} * warp_count_, 0);
  whole_warp_.assign(warp_count_, 0);
  lane_clock_.clear();
  joined_.assign(warp_count_, nullptr);
  fences_.assign(warp_count_, {});
}

void CtaOrder::advance() {
  ++now_;
  if (now_ % LaunchOrder::kChunk == 0) now_ = launch_.take_epochs(cta_);
}

bool CtaOrder::view_includes(uint32_t cta, Epoch epoch, uint32_t other, uint32_t thread) const {
  const uint32_t warp = thread / 32, other_warp = other / 32;
  if (cta == cta_) {
    if (warp != other_warp) {
      if (epoch <= warp_clock_[size_t{warp} * warp_count_ + other_warp]) return true;
    } else {
      if (epoch <= whole_warp_[warp]) return true;
      if (!lane_clock_.empty() && epoch <= lane_clock_[warp][thread % 32 * 32 + other % 32]) return true;
    }
  }
  const View* view = joined_[warp].get();
  if (!view) return false;
  if (epoch <= view->floor) return true;
  if (cta != cta_)
    if (const auto known = view->warps.find(cta); known != view->warps.end() && epoch <= known->second[other_warp])
      return true;
  const auto known = view->threads.find(thread_key(cta, other));
  return known != view->threads.end() && epoch <= known->second;
}

void CtaOrder::barrier_all() {
  all_ = now_;
  SharedView both;
  for (const SharedView& each : joined_) both = join(both, each);
  if (both) std::fill(joined_.begin(), joined_.end(), both);
  advance();
}

Epoch CtaOrder::arrive() {
  const Epoch then = now_;
  advance();
  return then;
}

void CtaOrder::barrier_named(const std::vector<uint32_t>& arrived, const std::vector<uint32_t>& waiting,
                             const std::vector<Epoch>& arrivals) {
  std::vector<Epoch> joined(warp_count_, 0);
  SharedView both;
  for (uint32_t warp = 0; warp < warp_count_; ++warp) {
    if (!arrived[warp]) continue;
    for (uint32_t other = 0; other < warp_count_; ++other)
      raise(joined[other], warp_clock_[size_t{warp} * warp_count_ + other]);
    raise(joined[warp], waiting[warp] ? now_ : arrivals[warp]);
    both = join(both, joined_[warp]);
  }
  for (uint32_t warp = 0; warp < warp_count_; ++warp) {
    if (!waiting[warp]) continue;
    std::copy(joined.begin(), joined.end(), warp_clock_.begin() + size_t{warp} * warp_count_);
    whole_warp_[warp] = now_;
    joined_[warp] = both;
  }
  advance();
}

void CtaOrder::barrier_cluster(const std::vector<CtaOrder*>& ctas) {
  SharedView both;
  for (const CtaOrder* each : ctas) {
    auto own = std::make_shared<View>();
    own->warps[each->cta_].assign(each->warp_count_, each->now_);
    both = join(both, own);
    for (const SharedView& learnt : each->joined_) both = join(both, learnt);
  }
  for (CtaOrder* each : ctas) {
    std::fill(each->joined_.begin(), each->joined_.end(), both);
    each->barrier_all();
  }
}

void CtaOrder::barrier_lanes(uint32_t warp, uint32_t members, uint32_t live) {
  if ((members & live) == live) {
    whole_warp_[warp] = now_;
  } else {
    if (lane_clock_.empty()) lane_clock_.resize(warp_count_);
    auto& clock = lane_clock_[warp];
    std::array<Epoch, 32> joined{};
    for (unsigned lane = 0; lane < 32; ++lane)
      if (members >> lane & 1)
        for (unsigned other = 0; other < 32; ++other) raise(joined[other], clock[lane * 32 + other]);
    for (unsigned lane = 0; lane < 32; ++lane)
      if (members >> lane & 1) joined[lane] = now_;
    for (unsigned lane = 0; lane < 32; ++lane)
      if (members >> lane & 1) std::copy(joined.begin(), joined.end(), clock.begin() + lane * 32);
  }
  advance();
}

// The accesses known to precede this point in any of the lanes.
SharedView CtaOrder::view_of(uint32_t warp, uint32_t lanes) const {
  auto view = joined_[warp] ? std::make_shared<View>(*joined_[warp]) : std::make_shared<View>();
  auto& own = view->warps[cta_];
  own.resize(warp_count_);
  for (uint32_t other = 0; other < warp_count_; ++other)
    raise(own[other],
          std::max(all_, other == warp ? whole_warp_[warp] : warp_clock_[size_t{warp} * warp_count_ + other]));
  const uint32_t in_warp = std::min(thread_count_ - warp * 32, 32u);
  const bool whole = (lanes | ~uint64_t{0} << in_warp) == ~uint64_t{0};  // no lane is missing or has left
  if (whole) own[warp] = now_;
  for (unsigned lane = 0; lane < 32 && !whole; ++lane) {
    if (!(lanes >> lane & 1)) continue;
    view->threads[thread_key(cta_, warp * 32 + lane)] = now_;
    if (lane_clock_.empty()) continue;
    for (unsigned other = 0; other < 32; ++other)
      if (const Epoch known = lane_clock_[warp][lane * 32 + other]; known > own[warp])
        raise(view->threads[thread_key(cta_, warp * 32 + other)], known);
  }
  shrink(*view);
  return view;
}

void CtaOrder::join_view(uint32_t warp, const SharedView& view) {
  if (!view) return;
  joined_[warp] = join(joined_[warp], view);
  const auto own = view->warps.find(cta_);
  if (own == view->warps.end()) return;
  for (uint32_t other = 0; other < own->second.size(); ++other)
    raise(warp_clock_[size_t{warp} * warp_count_ + other], own->second[other]);
  raise(whole_warp_[warp], own->second[warp]);
}

void CtaOrder::read(uint32_t thread, uint64_t location, Order order, Scope scope) {
  const uint32_t warp = thread / 32;
  for (uint8_t each = 1; each <= static_cast<uint8_t>(scope); ++each) {
    const SharedView view = launch_.published(location, Scope{each}, cta_);
    if (!view) continue;
    Fences& fences = fences_[warp];
    if ((order == Order::acquire || order == Order::acq_rel) && fences.last_joined[each] != view) {
      join_view(warp, view);
      fences.last_joined[each] = view;
    }
    if (fences.last_seen[each] == view) continue;
    fences.seen[each] = join(fences.seen[each], view);
    fences.last_seen[each] = view;
  }
}

void CtaOrder::write(uint32_t thread, uint64_t location, Order order, Scope scope) {
  const uint32_t warp = thread / 32;
  if (order == Order::release || order == Order::acq_rel) return release(warp, 1u << thread % 32, location, scope);
  publish_fenced(warp, location, scope);
}

void CtaOrder::release(uint32_t warp, uint32_t lanes, uint64_t location, Scope scope) {
  publish_fenced(warp, location, scope);
  launch_.publish(location, scope, cta_, view_of(warp, lanes));
  advance();
}

void CtaOrder::publish_fenced(uint32_t warp, uint64_t location, Scope scope) {
  for (uint8_t each = 1; each <= static_cast<uint8_t>(scope); ++each)
    if (const SharedView& view = fences_[warp].released[each]) launch_.publish(location, Scope{each}, cta_, view);
}

void CtaOrder::fence(uint32_t warp, uint32_t lanes, Order order, Scope scope) {
  Fences& fences = fences_[warp];
  if (order != Order::release)
    for (uint8_t each = 1; each <= static_cast<uint8_t>(scope); ++each) join_view(warp, fences.seen[each]);
  if (order == Order::acquire) return;
  const SharedView view = view_of(warp, lanes);
  for (uint8_t each = 1; each <= static_cast<uint8_t>(scope); ++each)
    fences.released[each] = join(fences.released[each], view);
  advance();
}

}  // namespace ptxkit::emulator
