#include "tools/ptx-pack-mpi/hash_chain.hpp"

#include <exception>
#include <utility>

#include "support/thread.hpp"

namespace ptxkit::pack {

HashChain::HashChain(const Job& job) : job_(job), state_(hash_.state()) { MPI_Comm_dup(MPI_COMM_WORLD, &channel_); }

HashChain::~HashChain() {
  wait();
  if (std::uncaught_exceptions() == 0) MPI_Comm_free(&channel_);  // collective
}

void HashChain::update(format::Bytes mine) {
  wait();
  const bool is_begin = !std::exchange(has_begun_, true) && job_.is_first();
  if (job_.may_use_threads()) thread_ = try_thread([this, mine, is_begin] { pass_on(mine, is_begin); });
  if (!thread_) pass_on(mine, is_begin);
}

void HashChain::wait() {
  if (!thread_) return;
  thread_->join();
  thread_.reset();
}

// From the last rank the state comes back to the first one: with its next bytes, or for value().
void HashChain::pass_on(format::Bytes mine, bool is_begin) {
  if (!is_begin) receive((job_.rank() + job_.size() - 1) % job_.size());
  hash_.update(mine);
  state_ = hash_.state();
  if (job_.size() != 1) {
    MPI_Send(state_.data(), static_cast<int>(state_.size()), MPI_BYTE, (job_.rank() + 1) % job_.size(), 0, channel_);
  }
}

void HashChain::receive(int from) {
  if (job_.size() == 1) return;
  MPI_Recv(state_.data(), static_cast<int>(state_.size()), MPI_BYTE, from, 0, channel_, MPI_STATUS_IGNORE);
  hash_.set_state(state_);
}

uint32_t HashChain::value() {
  wait();
  if (has_begun_ && job_.is_first()) receive(job_.size() - 1);
  const uint32_t value = hash_.value();
  has_begun_ = false;
  hash_.reset();
  return static_cast<uint32_t>(job_.from_first(uint64_t{value}));
}

}  // namespace ptxkit::pack
