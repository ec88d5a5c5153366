// Splits the inputs between the processes of an MPI job (--share-by-rank).
#pragma once

#include <cstddef>
#include <vector>

#include "support/result.hpp"
#include "tools/ptx-pack/files.hpp"
#include "tools/ptx-pack/options.hpp"

namespace ptxkit::pack {

struct Rank {
  size_t index = 0, count = 1;
};

// The rank of this process and the number of ranks, from the environment variables of mpirun (Open MPI, MPICH and its
// derivatives). Fails if they are not set or invalid.
Result<Rank> rank_in_mpi_job();

// The inputs assigned to this rank, by a hash of the names to which their outputs lead: so no file is processed twice,
// and one process has all inputs with one output, even if other processes have changed the directories in the meantime.
std::vector<InputName> share_of(const Rank& rank, const Options& options, std::vector<InputName> inputs);

}  // namespace ptxkit::pack
