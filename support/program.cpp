#include "support/program.hpp"

#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>

#include <fcntl.h>
#include <unistd.h>

namespace ptxkit {

bool open_standard_descriptors() noexcept {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    // open() returns the lowest free number, which is this one.
    int opened = ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    // For a root directory without devices: a directory can be neither read nor written.
    if (opened < 0) opened = ::open("/", O_RDONLY | O_DIRECTORY);
    if (opened != descriptor) return false;
  }
  return true;
}

int run_program(const char* name, int failed, int (*work)(int, char**), int argc, char** argv) noexcept {
  if (!open_standard_descriptors()) return failed;
  try {
    return work(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: no memory left; give it smaller inputs, or fewer at once\n", name);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: stopped by an error of its own: %s; please report it\n", name, error.what());
  }
  return failed;
}

void tell(std::string_view text) noexcept { (void)std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace ptxkit
