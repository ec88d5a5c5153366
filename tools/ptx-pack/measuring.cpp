#include "tools/ptx-pack/measuring.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::pack {

Result<void> measure_rates(unsigned thread_count, const codec::BackendRequest& request) {
  if (request.calibration_path.empty()) {
    return fail("there is no file for rates: neither PTXKIT_CALIBRATION nor XDG_CACHE_HOME nor HOME is set");
  }
  std::error_code ignored;  // the lock says what is wrong with the folder
  std::filesystem::create_directories(std::filesystem::path(request.calibration_path).parent_path(), ignored);
  const std::string lock_path = request.calibration_path + ".lock";
  const int lock = ::open(lock_path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) return fail(fmt::format("cannot write: {}", std::strerror(errno)), lock_path);
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    return fail("another process measures at this moment", lock_path);
  }
  codec::Executor executor(thread_count);
  auto done = codec::measure_rates(request, executor);
  ::unlink(lock_path.c_str());
  ::close(lock);
  return done;
}

}  // namespace ptxkit::pack
