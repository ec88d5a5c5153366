// Processes of an MPI job that share their inputs, where --share-by-rank asks for it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "support/result.hpp"

namespace ptxkit::pack {

struct Rank {
  size_t index = 0, count = 1;
};

// Which of how many processes this one is; mpirun of Open MPI, and of MPICH and what is made from it, says so in the
// environment. An error where it says nothing, or nothing that can be.
Result<Rank> rank_in_mpi_job();

// The inputs whose names fall to this process. No file is worked on twice, also where processes that started earlier
// have changed the folders meanwhile.
std::vector<std::string> share_of(const Rank& rank, std::vector<std::string> inputs);

}  // namespace ptxkit::pack
