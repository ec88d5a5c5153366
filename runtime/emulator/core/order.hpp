// The happens-before relation of one launch: PTX ISA 9.0, chapter 8, as far as the CTAs of an emulator need it.
//
// The method is that of vector clocks (FastTrack, Flanagan and Freund, PLDI 2009), with the clocks of a thread reduced
// to what PTX programs use. An epoch is the interval between two synchronisations of one CTA. Epochs are numbered as
// they begin, so that one number gives both the CTA and the time. An access is ordered before the current one if its
// epoch is no later than the last synchronisation between the two threads. That epoch is one number for the whole CTA
// (barriers of all threads), one for each pair of warps (named barriers, acquires) and one for each pair of lanes of a
// warp (bar.warp.sync; shuffles and votes order no memory). A View holds what a warp has learnt of other CTAs and of
// single threads.
//
// A release publishes the view of its thread at a location; an acquire joins that view, if the scopes of both reach. A
// fence makes releases of the strong writes that follow it, and acquires of the strong reads before it. Two
// approximations add order: a published view stays at its location when the location is overwritten, and what one lane
// learns its whole warp knows. A race can therefore be missed, but never invented.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace ptxkit::emulator {

// Memory order of an access. Every order but `weak` is strong; two strong accesses do not race if their scopes reach.
enum class Order : uint8_t { weak, relaxed, acquire, release, acq_rel };

// The threads that a strong access or a fence applies to; `.sys` is `gpu` here. Weak accesses have `none`.
enum class Scope : uint8_t { none, cta, cluster, gpu };
inline constexpr unsigned kScopes = 4;

using Epoch = uint32_t;  // 0: before everything

// Accesses known to have happened, beside the clocks of the own CTA.
struct View {
  Epoch floor = 0;                               // every epoch up to this one
  std::map<uint32_t, std::vector<Epoch>> warps;  // CTA -> by warp
  std::map<uint64_t, Epoch> threads;             // CTA << 10 | thread -> its epoch, later than that of its warp
};
using SharedView = std::shared_ptr<const View>;

// State shared by the CTAs of a launch. With `parallel` they run on several host threads.
class LaunchOrder {
 public:
  LaunchOrder(uint32_t ctas_per_cluster, bool parallel);
  ~LaunchOrder();
  LaunchOrder(const LaunchOrder&) = delete;
  LaunchOrder& operator=(const LaunchOrder&) = delete;

  static constexpr uint32_t kChunk = 64;  // epochs that a CTA takes at a time
  Epoch take_epochs(uint32_t cta);
  uint32_t cta_of(Epoch epoch) const { return owners_[epoch / kChunk]; }
  uint32_t cluster_of(uint32_t cta) const { return cta / ctas_per_cluster_; }
  bool full() const { return full_; }  // no epochs are left, so no more races are found

  // Whether `scope`, of an access by a thread of `cta`, includes the threads of `other`.
  bool reaches(Scope scope, uint32_t cta, uint32_t other) const {
    return cta == other || scope == Scope::gpu || (scope == Scope::cluster && cluster_of(cta) == cluster_of(other));
  }

  void publish(uint64_t location, Scope scope, uint32_t cta, const SharedView& view);
  SharedView published(uint64_t location, Scope scope, uint32_t cta);  // null if nothing was published

 private:
  uint64_t group_of(Scope scope, uint32_t cta) const;

  const uint32_t ctas_per_cluster_;
  const bool parallel_;
  uint32_t* owners_;  // by chunk
  std::atomic<uint32_t> next_chunk_ = 1;
  std::atomic<bool> full_ = false;
  std::mutex mutex_;
  // By location, then by the group of CTAs that it was published to.
  std::unordered_map<uint64_t, std::map<uint64_t, SharedView>> published_;
};

// The clocks of one CTA. A thread is warp * 32 + lane.
class CtaOrder {
 public:
  CtaOrder(LaunchOrder& launch, uint32_t thread_count);
  void restart(uint32_t cta);

  Epoch now() const { return now_; }
  Epoch first() const { return first_; }
  uint32_t cta() const { return cta_; }
  const LaunchOrder& launch() const { return launch_; }
  // Whether an access by thread `other` of the epoch's CTA, in `epoch`, is ordered before an access by `thread` now.
  bool happens_before(Epoch epoch, uint32_t other, uint32_t thread) const {
    const uint32_t cta = launch_.cta_of(epoch);
    return (cta == cta_ && (other == thread || epoch <= all_)) || view_includes(cta, epoch, other, thread);
  }

  void barrier_all();  // a barrier of all threads of the CTA
  // Named barriers; lanes by warp. A warp takes part as a whole if any of its lanes does. A warp that only arrives
  // learns nothing, and others do not learn what it does after its arrive(). `arrivals` is by warp, 0 for warps that
  // wait.
  Epoch arrive();
  void barrier_named(const std::vector<uint32_t>& arrived, const std::vector<uint32_t>& waiting,
                     const std::vector<Epoch>& arrivals);
  void barrier_lanes(uint32_t warp, uint32_t members, uint32_t live);
  static void barrier_cluster(const std::vector<CtaOrder*>& ctas);

  // Strong accesses of `thread` to `location`. Call read() after the value is loaded, write() before others can see it.
  void read(uint32_t thread, uint64_t location, Order order, Scope scope);
  void write(uint32_t thread, uint64_t location, Order order, Scope scope);
  void release(uint32_t warp, uint32_t lanes, uint64_t location, Scope scope);  // all writes of one instruction
  void fence(uint32_t warp, uint32_t lanes, Order order, Scope scope);

 private:
  bool view_includes(uint32_t cta, Epoch epoch, uint32_t other, uint32_t thread) const;
  void advance();
  SharedView view_of(uint32_t warp, uint32_t lanes) const;
  void publish_fenced(uint32_t warp, uint64_t location, Scope scope);
  void join_view(uint32_t warp, const SharedView& view);

  // By the weakest scope for which each view holds.
  struct Fences {
    std::array<SharedView, kScopes> released, seen;
    std::array<SharedView, kScopes> last_seen, last_joined;  // views that polls find again, already joined
  };

  LaunchOrder& launch_;
  const uint32_t thread_count_, warp_count_;
  uint32_t cta_ = 0;
  Epoch first_ = 0, now_ = 0;
  Epoch all_ = 0;                                       // last barrier of all threads
  std::vector<Epoch> warp_clock_;                       // [warp][other warp]
  std::vector<Epoch> whole_warp_;                       // last synchronisation of all lanes of the warp
  std::vector<std::array<Epoch, 32 * 32>> lane_clock_;  // [warp][lane][other lane]; empty until a partial mask is seen
  std::vector<SharedView> joined_;                      // by warp
  std::vector<Fences> fences_;                          // by warp
};

}  // namespace ptxkit::emulator
