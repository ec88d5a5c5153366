// The content checksum beside everything else: XXH32 is one chain of multiplications, which no second core can shorten,
// so a stream whose reader or writer computes it in between is never faster than the two in a row.
//
// Bytes are shown in the order of the stream and hashed on a thread of this object's own; they must stay as they are
// until their ticket says so. Few bytes are hashed at once, and a stream of few bytes starts no thread. Where the
// system has no thread, all are.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/codec/format/lz4_frame.hpp"

namespace ptxkit::format {

class BackgroundHash {
 public:
  // Dying, it waits: whoever owns the bytes keeps it behind them.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept
        : of_(std::exchange(other.of_, nullptr)), end_bytes_(std::exchange(other.end_bytes_, 0)) {}
    // A later one of the same stream covers this one.
    Ticket& operator=(Ticket&& other) noexcept {
      if (other.of_ != of_) wait();
      of_ = std::exchange(other.of_, nullptr);
      end_bytes_ = std::exchange(other.end_bytes_, 0);
      return *this;
    }
    ~Ticket() { wait(); }
    // Until every byte shown up to here is hashed.
    void wait();

   private:
    friend class BackgroundHash;
    Ticket(BackgroundHash* of, uint64_t end_bytes) : of_(of), end_bytes_(end_bytes) {}

    BackgroundHash* of_ = nullptr;
    uint64_t end_bytes_ = 0;
  };

  BackgroundHash() = default;
  ~BackgroundHash();
  BackgroundHash(const BackgroundHash&) = delete;
  BackgroundHash& operator=(const BackgroundHash&) = delete;

  // One thread at a time calls these; tickets are waited for from any.
  [[nodiscard]] Ticket update(Bytes bytes);
  uint32_t value();  // waits for what was shown
  void reset();      // likewise, and begins anew

 private:
  void work();
  void wait_until(uint64_t end_bytes);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Bytes> pieces_;  // neighbours are one piece
  uint64_t shown_bytes_ = 0, hashed_bytes_ = 0;
  bool stopping_ = false, is_alone_ = false;  // is_alone_: no thread could be had
  ContentHash hash_;                          // the thread's while shown_bytes_ != hashed_bytes_
  std::optional<std::thread> thread_;
};

}  // namespace ptxkit::format
