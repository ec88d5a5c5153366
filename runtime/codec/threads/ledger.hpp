// A byte budget that bounds allocations.
//
// Code that is about to allocate reserves first. The reservation travels with the memory, through queues and from stage
// to stage, until the memory is freed. So the sum of all reservations bounds what is allocated, without asking the
// system or the driver how much memory is left (cuMemGetInfo waits for the device).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "support/result.hpp"

namespace ptxkit::scheduler {

class Ledger;

// A part of a ledger's budget, which the destructor gives back. The ledger must outlive it.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept
      : ledger_(std::exchange(other.ledger_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  Reservation& operator=(Reservation&& other) noexcept {
    std::swap(ledger_, other.ledger_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }
  ~Reservation();
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  friend class Ledger;
  Reservation(Ledger* ledger, uint64_t size_bytes) : ledger_(ledger), size_bytes_(size_bytes) {}

  Ledger* ledger_ = nullptr;
  uint64_t size_bytes_ = 0;
};

class Ledger {
 public:
  static constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

  // `what` names the memory in errors: "device memory".
  explicit Ledger(std::string what, uint64_t budget_bytes = kUnlimited)
      : what_(std::move(what)), budget_bytes_(budget_bytes) {}
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  uint64_t budget_bytes() const { return budget_bytes_; }
  uint64_t reserved_bytes() const;
  uint64_t peak_bytes() const;  // the highest value of reserved_bytes() so far

  // Blocks until the bytes are free. Requests are served in order (first come, first served), so small ones cannot
  // starve a large one. Fails if `size_bytes` exceeds the whole budget, and after cancel(). A caller must hold no
  // reservation that another caller needs back in order to proceed; to get more while holding some, use try_reserve.
  Result<Reservation> reserve(uint64_t size_bytes);
  // Nothing if the bytes are not free now, or if a call of reserve() is waiting. Never blocks.
  std::optional<Reservation> try_reserve(uint64_t size_bytes);
  // Makes waiting and later calls of reserve() fail. Existing reservations stay valid until they are given back.
  void cancel();

 private:
  friend class Reservation;
  void give_back(uint64_t size_bytes);
  bool fits(uint64_t size_bytes) const { return size_bytes <= budget_bytes_ - reserved_bytes_; }
  Reservation take(uint64_t size_bytes);

  const std::string what_;
  const uint64_t budget_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t reserved_bytes_ = 0, peak_bytes_ = 0;
  uint64_t next_ticket_ = 0, served_ticket_ = 0;
  bool cancelled_ = false;
};

// How many blocks of `block_bytes` the budget holds at a time, at most `depth`. 0 if not even one fits: the caller must
// refuse such a block or send it elsewhere.
unsigned max_in_flight(uint64_t budget_bytes, uint64_t block_bytes, unsigned depth);

}  // namespace ptxkit::scheduler
