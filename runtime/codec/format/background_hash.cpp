#include "runtime/codec/format/background_hash.hpp"

#include "support/thread.hpp"

namespace ptxkit::format {
namespace {

// Starting a thread costs about as much as hashing half of kBytesBeforeThread; handing over a piece, as hashing half of
// kLeastPieceBytes.
constexpr uint64_t kBytesBeforeThread = 1u << 20;
constexpr size_t kLeastPieceBytes = 16u << 10;

}  // namespace

template <class Hash>
void BackgroundHashOf<Hash>::Ticket::wait() {
  if (BackgroundHashOf* const of = std::exchange(of_, nullptr)) of->wait_until(end_bytes_);
}

template <class Hash>
BackgroundHashOf<Hash>::~BackgroundHashOf() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_) thread_->join();
}

template <class Hash>
typename BackgroundHashOf<Hash>::Ticket BackgroundHashOf<Hash>::update(Bytes bytes) {
  std::unique_lock lock(mutex_);
  const bool is_idle = shown_bytes_ == hashed_bytes_;
  const uint64_t end_bytes = shown_bytes_ + bytes.size();
  bool is_now = is_alone_ || (is_idle && (end_bytes <= kBytesBeforeThread || bytes.size() < kLeastPieceBytes));
  if (!is_now && !thread_) {
    thread_ = try_thread([this] { work(); });
    is_now = is_alone_ = !thread_;
  }
  if (is_now) {
    hash_.update(bytes);
    shown_bytes_ = hashed_bytes_ = end_bytes;
    return {};
  }
  if (!pieces_.empty() && pieces_.back().data() + pieces_.back().size() == bytes.data()) {
    pieces_.back() = Bytes(pieces_.back().data(), pieces_.back().size() + bytes.size());
  } else {
    pieces_.push_back(bytes);
  }
  shown_bytes_ = end_bytes;  // last: there may be no memory for a piece
  Ticket ticket(this, end_bytes);
  lock.unlock();
  changed_.notify_all();
  return ticket;
}

template <class Hash>
decltype(std::declval<const Hash&>().value()) BackgroundHashOf<Hash>::value() {
  wait_until(shown_bytes_);
  return hash_.value();
}

template <class Hash>
void BackgroundHashOf<Hash>::reset() {
  wait_until(shown_bytes_);
  hash_.reset();
}

template <class Hash>
void BackgroundHashOf<Hash>::wait_until(uint64_t end_bytes) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return hashed_bytes_ >= end_bytes; });
}

template <class Hash>
void BackgroundHashOf<Hash>::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !pieces_.empty(); });
    if (pieces_.empty()) return;
    const Bytes piece = pieces_.front();
    pieces_.pop_front();
    lock.unlock();
    hash_.update(piece);
    lock.lock();
    hashed_bytes_ += piece.size();
    changed_.notify_all();
  }
}

template class BackgroundHashOf<ContentHash>;
template class BackgroundHashOf<PtzChecksum>;

}  // namespace ptxkit::format
