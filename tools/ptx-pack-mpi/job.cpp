#include "tools/ptx-pack-mpi/job.hpp"

#include <cstdlib>
#include <numeric>

#include <fmt/format.h>

namespace ptxkit::pack {

Job::Job(int& argc, char**& argv) {
  // Open MPI's own MPI-IO (OMPIO of 4.1) reports success where a disk is full. ROMIO, the other one that it has,
  // reports an error.
  ::setenv("OMPI_MCA_io", "^ompio", 0);
  int threads = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
  may_use_threads_ = threads == MPI_THREAD_MULTIPLE;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  MPI_Comm machine;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine);
  MPI_Comm_rank(machine, &local_rank_);
  MPI_Comm_size(machine, &local_size_);
  MPI_Comm_free(&machine);
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(name, &length);
  host_.assign(name, static_cast<size_t>(length));
}

Job::~Job() { MPI_Finalize(); }

Result<void> Job::agree(const Result<void>& mine) const {
  const int own = mine ? size_ : rank_;
  int failed = size_;
  MPI_Allreduce(&own, &failed, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (failed == size_) return {};
  const Error error = mine ? Error{} : mine.error();
  const std::string at = failed == 0 ? std::string() : fmt::format("rank {} on {}", failed, host_);
  const std::string where = error.where.empty() || at.empty() ? at + error.where : at + ", " + error.where;
  return fail(from(failed, error.what), from(failed, where), from(failed, error.todo));
}

Job::Sums Job::sums(uint64_t mine) const {
  Sums sums;
  MPI_Exscan(&mine, &sums.before, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank_ == 0) sums.before = 0;  // which MPI_Exscan leaves undefined
  MPI_Allreduce(&mine, &sums.all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return sums;
}

uint64_t Job::from(int root, uint64_t value) const {
  MPI_Bcast(&value, 1, MPI_UINT64_T, root, MPI_COMM_WORLD);
  return value;
}

std::string Job::from(int root, const std::string& text) const {
  std::string copy = text;
  copy.resize(from(root, uint64_t{text.size()}));
  MPI_Bcast(copy.data(), static_cast<int>(copy.size()), MPI_CHAR, root, MPI_COMM_WORLD);
  return copy;
}

std::vector<uint64_t> Job::from_first(const std::vector<uint64_t>& values) const {
  std::vector<uint64_t> copy = values;
  copy.resize(from_first(uint64_t{values.size()}));
  MPI_Bcast(copy.data(), static_cast<int>(copy.size()), MPI_UINT64_T, 0, MPI_COMM_WORLD);
  return copy;
}

std::vector<std::vector<uint8_t>> Job::gather(format::Bytes mine) const {
  const int count = static_cast<int>(mine.size());
  std::vector<int> counts(is_first() ? size_ : 0), begins(counts.size());
  MPI_Gather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), 0);
  std::vector<uint8_t> all(is_first() ? begins.back() + counts.back() : 0);
  MPI_Gatherv(mine.data(), count, MPI_BYTE, all.data(), counts.data(), begins.data(), MPI_BYTE, 0, MPI_COMM_WORLD);
  std::vector<std::vector<uint8_t>> parts;
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto begin = all.begin() + begins[i];
    parts.emplace_back(begin, begin + counts[i]);
  }
  return parts;
}

std::vector<std::string> Job::gather(const std::string& mine) const {
  std::vector<std::string> texts;
  for (const auto& part : gather(format::Bytes(reinterpret_cast<const uint8_t*>(mine.data()), mine.size())))
    texts.emplace_back(part.begin(), part.end());
  return texts;
}

void Job::wait_for_all() const { MPI_Barrier(MPI_COMM_WORLD); }

}  // namespace ptxkit::pack
