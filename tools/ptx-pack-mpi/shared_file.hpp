// An output that all ranks write, through MPI-IO.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <mpi.h>

#include "runtime/codec/format/byte_stream.hpp"
#include "support/result.hpp"
#include "tools/ptx-pack-mpi/job.hpp"
#include "tools/ptx-pack/files.hpp"
#include "tools/ptx-pack/output_file.hpp"

namespace ptxkit::pack {

// Until it is committed the file has a temporary name beside its place. The first rank creates and removes it; the
// other ranks remove it too when a signal ends them, which mpirun sends to all ranks when one is lost.
class SharedFile {
 public:
  // Collective, like close() and commit().
  static Result<SharedFile> create(const Job& job, const std::string& path, const InputFile& input, bool overwrite);
  SharedFile(SharedFile&& other) noexcept;
  SharedFile& operator=(SharedFile&&) = delete;
  ~SharedFile();

  // Of this rank alone.
  Result<void> write_at(uint64_t at, format::Bytes bytes);
  // All bytes are written when it has succeeded; with `durable` they have left the machines of all ranks.
  Result<void> close(bool durable);
  // Puts it in place, by the first rank. With `removes_input`, removes the input afterwards.
  Result<void> commit(const InputFile& input, bool removes_input);
  const std::string& name() const { return name_; }

 private:
  SharedFile(const Job& job, std::string name) : job_(job), name_(std::move(name)) {}

  const Job& job_;
  std::string name_;
  std::optional<OutputFile> output_;  // of the first rank
  MPI_File file_ = MPI_FILE_NULL;
};

}  // namespace ptxkit::pack
