// This process as a rank of an MPI job. Every function but rank(), size() and local_rank() is collective: all ranks
// call it, in the same order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <mpi.h>

#include "runtime/codec/format/byte_stream.hpp"
#include "support/result.hpp"

namespace ptxkit::pack {

class Job {
 public:
  // Initialises MPI; the destructor ends it. One object a process.
  Job(int& argc, char**& argv);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_first() const { return rank_ == 0; }
  // Among the ranks of this machine.
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  // Whether threads beside the first may call MPI.
  bool may_use_threads() const { return may_use_threads_; }
  const std::string& host() const { return host_; }

  // Succeeds if every rank passes a success. Otherwise every rank gets the error of the lowest rank that failed; its
  // `where` names rank and host, unless it is the first rank's.
  Result<void> agree(const Result<void>& mine) const;

  // The sum of `mine` over the lower ranks, and over all.
  struct Sums {
    uint64_t before = 0, all = 0;
  };
  Sums sums(uint64_t mine) const;

  // What the first rank passes.
  uint64_t from_first(uint64_t value) const { return from(0, value); }
  std::string from_first(const std::string& text) const { return from(0, text); }
  std::vector<uint64_t> from_first(const std::vector<uint64_t>& values) const;
  // What rank `root` passes.
  uint64_t from(int root, uint64_t value) const;
  std::string from(int root, const std::string& text) const;

  // On the first rank the bytes of all ranks, in their order; elsewhere nothing.
  std::vector<std::vector<uint8_t>> gather(format::Bytes mine) const;
  std::vector<std::string> gather(const std::string& mine) const;

  void wait_for_all() const;

 private:
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  bool may_use_threads_ = false;
  std::string host_;
};

}  // namespace ptxkit::pack
