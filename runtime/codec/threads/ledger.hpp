// A byte budget and who holds how much of it.
//
// Whoever is about to allocate reserves first, and the reservation goes where the memory goes: through queues, into the
// hands of the next stage, until the memory is free again. So the sum of what is reserved bounds what is allocated, and
// nothing asks the system or the driver how much is left (cuMemGetInfo waits for the device).
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

// So many bytes of a ledger's budget; gives them back when it dies. The ledger must outlive it.
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

  // `what` is what errors call the memory: "device memory".
  explicit Ledger(std::string what, uint64_t budget_bytes = kUnlimited)
      : what_(std::move(what)), budget_bytes_(budget_bytes) {}
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  uint64_t budget_bytes() const { return budget_bytes_; }
  uint64_t reserved_bytes() const;
  uint64_t peak_bytes() const;  // the most that was ever reserved at a time

  // Waits its turn: who asked first is served first, so a large request is not overtaken for ever by small ones. An
  // error when the whole budget is too small, and after cancel(). Whoever waits here must hold nothing that another
  // needs in order to give back; try_reserve is for the rest.
  Result<Reservation> reserve(uint64_t size_bytes);
  // Nothing when it does not fit now, or when somebody waits in reserve().
  std::optional<Reservation> try_reserve(uint64_t size_bytes);
  // Whoever waits and whoever asks later gets an error. What is reserved stays so until it is given back.
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

// How many blocks of `block_bytes` each may be under way at a time: what the budget holds, at most `depth`. 0 when not
// even one fits: such a block is refused or goes elsewhere, it is never submitted.
unsigned max_in_flight(uint64_t budget_bytes, uint64_t block_bytes, unsigned depth);

}  // namespace ptxkit::scheduler
