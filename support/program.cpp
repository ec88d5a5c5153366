#include "support/program.hpp"

#include <cstdio>
#include <exception>
#include <new>

namespace ptxkit {

int run_program(const char* name, int failed, int (*work)(int, char**), int argc, char** argv) noexcept {
  try {
    return work(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: no memory left; give it smaller inputs, or fewer at once\n", name);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: stopped by an error of its own: %s; please report it\n", name, error.what());
  }
  return failed;
}

}  // namespace ptxkit
