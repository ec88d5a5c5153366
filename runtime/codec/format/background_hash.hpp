// Computes the content checksum on a thread of its own. XXH32 and XXH64 are chains of multiplications that cannot be
// split over cores, so a stream whose reader or writer computed it would take the sum of both times.
//
// update() receives bytes in the order of the stream; the thread hashes them later. They must stay unchanged until
// their ticket has been waited for. Small pieces are hashed immediately, and a short stream starts no thread. Where the
// system has no thread, every piece is hashed immediately.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/codec/format/ptz.hpp"

namespace ptxkit::format {

template <class Hash>
class BackgroundHashOf {
 public:
  // The destructor waits: declare a ticket after the bytes that it covers.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept
        : of_(std::exchange(other.of_, nullptr)), end_bytes_(std::exchange(other.end_bytes_, 0)) {}
    // Does not wait if `other` is a later ticket of the same stream, which covers this one.
    Ticket& operator=(Ticket&& other) noexcept {
      if (other.of_ != of_) wait();
      of_ = std::exchange(other.of_, nullptr);
      end_bytes_ = std::exchange(other.end_bytes_, 0);
      return *this;
    }
    ~Ticket() { wait(); }
    // Blocks until every byte passed up to this ticket has been hashed.
    void wait();

   private:
    friend class BackgroundHashOf;
    Ticket(BackgroundHashOf* of, uint64_t end_bytes) : of_(of), end_bytes_(end_bytes) {}

    BackgroundHashOf* of_ = nullptr;
    uint64_t end_bytes_ = 0;
  };

  BackgroundHashOf() = default;
  ~BackgroundHashOf();
  BackgroundHashOf(const BackgroundHashOf&) = delete;
  BackgroundHashOf& operator=(const BackgroundHashOf&) = delete;

  // Only one thread at a time may call these. Any thread may wait for a ticket.
  [[nodiscard]] Ticket update(Bytes bytes);
  decltype(std::declval<const Hash&>().value()) value();  // waits for all bytes passed so far
  void reset();                                           // waits likewise, and starts a new checksum

 private:
  void work();
  void wait_until(uint64_t end_bytes);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Bytes> pieces_;  // adjacent pieces are merged
  uint64_t shown_bytes_ = 0, hashed_bytes_ = 0;
  bool stopping_ = false, is_alone_ = false;  // is_alone_: the system had no thread
  Hash hash_;                                 // used by the thread while shown_bytes_ != hashed_bytes_
  std::optional<std::jthread> thread_;
};

using BackgroundHash = BackgroundHashOf<ContentHash>;    // XXH32, of LZ4 frames
using BackgroundHash64 = BackgroundHashOf<PtzChecksum>;  // XXH64, of Zstandard frames
extern template class BackgroundHashOf<ContentHash>;
extern template class BackgroundHashOf<PtzChecksum>;

}  // namespace ptxkit::format
