#include "runtime/codec/threads/ledger.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace ptxkit::scheduler {

Reservation::~Reservation() {
  if (ledger_ != nullptr) ledger_->give_back(size_bytes_);
}

uint64_t Ledger::reserved_bytes() const {
  std::lock_guard lock(mutex_);
  return reserved_bytes_;
}

uint64_t Ledger::peak_bytes() const {
  std::lock_guard lock(mutex_);
  return peak_bytes_;
}

Result<Reservation> Ledger::reserve(uint64_t size_bytes) {
  if (size_bytes > budget_bytes_) {
    return fail(fmt::format("{} bytes of {} are needed, the budget is {}", size_bytes, what_, budget_bytes_), {},
                "raise the budget, or use smaller blocks");
  }
  std::unique_lock lock(mutex_);
  const uint64_t ticket = next_ticket_++;
  changed_.wait(lock, [&] { return cancelled_ || (served_ticket_ == ticket && fits(size_bytes)); });
  if (cancelled_) return fail(fmt::format("cancelled while waiting for {}", what_));
  ++served_ticket_;
  Reservation reservation = take(size_bytes);
  lock.unlock();
  changed_.notify_all();
  return reservation;
}

std::optional<Reservation> Ledger::try_reserve(uint64_t size_bytes) {
  std::lock_guard lock(mutex_);
  if (cancelled_ || served_ticket_ != next_ticket_ || !fits(size_bytes)) return std::nullopt;
  return take(size_bytes);
}

void Ledger::cancel() {
  {
    std::lock_guard lock(mutex_);
    cancelled_ = true;
  }
  changed_.notify_all();
}

void Ledger::give_back(uint64_t size_bytes) {
  {
    std::lock_guard lock(mutex_);
    reserved_bytes_ -= size_bytes;
  }
  changed_.notify_all();
}

Reservation Ledger::take(uint64_t size_bytes) {
  reserved_bytes_ += size_bytes;
  peak_bytes_ = std::max(peak_bytes_, reserved_bytes_);
  return Reservation(this, size_bytes);
}

unsigned max_in_flight(uint64_t budget_bytes, uint64_t block_bytes, unsigned depth) {
  if (block_bytes == 0) return depth;
  return static_cast<unsigned>(std::min<uint64_t>(depth, budget_bytes / block_bytes));
}

}  // namespace ptxkit::scheduler
