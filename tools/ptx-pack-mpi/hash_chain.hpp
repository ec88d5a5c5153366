// The XXH32 of bytes that lie on many ranks. XXH32 goes through its bytes in order, so its state passes from rank to
// rank: one rank hashes at a time, while the others compress or write.
#pragma once

#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include <mpi.h>

#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "tools/ptx-pack-mpi/job.hpp"

namespace ptxkit::pack {

class HashChain {
 public:
  // Collective, as are the functions below.
  explicit HashChain(const Job& job);
  ~HashChain();
  HashChain(const HashChain&) = delete;
  HashChain& operator=(const HashChain&) = delete;

  // Continues with the bytes of all ranks, in order of the ranks, in a thread where there may be one. `mine` stays in
  // place until wait() has returned.
  void update(format::Bytes mine);
  // Until `mine` has been hashed.
  void wait();
  // The hash of all bytes since the last value(), on every rank.
  uint32_t value();

 private:
  void pass_on(format::Bytes mine, bool is_begin);
  void receive(int from);

  const Job& job_;
  MPI_Comm channel_ = MPI_COMM_NULL;  // a thread's messages must not meet those of the others
  format::ContentHash hash_;
  std::vector<uint8_t> state_;  // as it travels
  bool has_begun_ = false;
  std::optional<std::jthread> thread_;
};

}  // namespace ptxkit::pack
