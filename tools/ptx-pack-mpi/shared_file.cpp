#include "tools/ptx-pack-mpi/shared_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace ptxkit::pack {
namespace {

// MPI counts bytes in an int.
constexpr size_t kMostBytesAtOnce = size_t{1} << 30;

// `number`: errno after the call; MPI's own text says less.
tl::unexpected<Error> cannot(const char* doing, int code, int number, const std::string& where, std::string todo = {}) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (number == 0) MPI_Error_string(code, text, &length);
  return fail(fmt::format("cannot {}: {}", doing, number != 0 ? std::strerror(number) : text), where, std::move(todo));
}

}  // namespace

Result<SharedFile> SharedFile::create(const Job& job, const std::string& path, const InputFile& input, bool overwrite) {
  SharedFile file(job, path);
  Result<void> made;
  std::string temporary;
  if (job.is_first()) {
    const auto announce = [&](const std::string& name) {
      temporary = job.from_first(name);
      job.wait_for_all();  // all ranks know which file to remove before there is one
    };
    auto output = OutputFile::create(path, input, overwrite, announce);
    if (temporary.empty()) {
      (void)job.from_first(temporary);
      job.wait_for_all();
    }
    if (!output) {
      made = tl::unexpected(output.error());
    } else if (!output->is_new_file()) {
      made = fail("expected a file to write, found a device, a pipe or a descriptor", path,
                  "name a file, or use ptx-pack");
    } else {
      file.output_.emplace(std::move(*output));
    }
  } else {
    temporary = job.from_first(temporary);
    if (!remove_if_interrupted(temporary)) made = fail("the path is too long", path);
    job.wait_for_all();
  }
  if (auto agreed = job.agree(made); !agreed) return tl::unexpected(agreed.error());
  Result<void> seen;
  if (::access(temporary.c_str(), W_OK) != 0) {
    seen = cannot("open the unfinished output", MPI_SUCCESS, errno, path,
                  "write to a folder that the machines of all ranks share");
  }
  if (auto agreed = job.agree(seen); !agreed) return tl::unexpected(agreed.error());
  const int code = MPI_File_open(MPI_COMM_WORLD, temporary.c_str(), MPI_MODE_WRONLY, MPI_INFO_NULL, &file.file_);
  const Result<void> opened =
      code == MPI_SUCCESS ? Result<void>() : cannot("open the unfinished output", code, 0, path);
  if (auto agreed = job.agree(opened); !agreed) return tl::unexpected(agreed.error());
  return file;
}

SharedFile::SharedFile(SharedFile&& other) noexcept
    : job_(other.job_),
      name_(std::move(other.name_)),
      output_(std::move(other.output_)),
      file_(std::exchange(other.file_, MPI_FILE_NULL)) {}

SharedFile::~SharedFile() {
  // Collective, so not while an exception ends this rank alone.
  if (file_ != MPI_FILE_NULL && std::uncaught_exceptions() == 0) MPI_File_close(&file_);
}

Result<void> SharedFile::write_at(uint64_t at, format::Bytes bytes) {
  while (!bytes.empty()) {
    const auto count = static_cast<int>(std::min(bytes.size(), kMostBytesAtOnce));
    MPI_Status status;
    errno = 0;
    const int code = MPI_File_write_at(file_, static_cast<MPI_Offset>(at), bytes.data(), count, MPI_BYTE, &status);
    const int number = errno;
    int written = 0;
    if (code == MPI_SUCCESS) MPI_Get_count(&status, MPI_BYTE, &written);
    // OMPIO, where it is chosen, reports a success that wrote nothing.
    if (written <= 0) return cannot("write", code, number != 0 ? number : EIO, name_);
    bytes = bytes.subspan(static_cast<size_t>(written));
    at += static_cast<uint64_t>(written);
  }
  return {};
}

Result<void> SharedFile::close(bool durable) {
  errno = 0;
  int code = durable ? MPI_File_sync(file_) : MPI_SUCCESS;
  int number = errno;
  if (const int closed = MPI_File_close(&file_); code == MPI_SUCCESS) {
    code = closed;
    number = errno;
  }
  return job_.agree(code == MPI_SUCCESS ? Result<void>() : cannot("write", code, number, name_));
}

Result<void> SharedFile::commit(const InputFile& input, bool removes_input) {
  Result<void> done;
  if (job_.is_first()) done = output_->commit(input, removes_input);
  if (job_.is_first() && done && removes_input) done = remove_input(input, *output_);
  return job_.agree(done);
}

}  // namespace ptxkit::pack
