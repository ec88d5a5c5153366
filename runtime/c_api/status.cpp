#include "runtime/c_api/status.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace ptxkit::c_api {
namespace {

// A plain array: no destructor that would keep a closed library loaded, and no allocation when memory is short.
thread_local char last_error[4096];

class LineWriter {
 public:
  void text(std::string_view part) noexcept {
    const size_t count = std::min(part.size(), sizeof last_error - 1 - used_);
    std::memcpy(last_error + used_, part.data(), count);
    used_ += count;
    last_error[used_] = 0;
  }

 private:
  size_t used_ = 0;
};

}  // namespace

tl::unexpected<Failure> refuse(ptxkit_status status, Error error) {
  if (error.kind == ErrorKind::no_memory) status = PTXKIT_NO_MEMORY;
  if (error.kind == ErrorKind::bad_checksum) status = PTXKIT_BAD_CHECKSUM;
  if (error.kind == ErrorKind::io) status = PTXKIT_IO;
  if (error.kind == ErrorKind::device) status = PTXKIT_DEVICE;
  return tl::unexpected<Failure>(Failure{status, std::move(error)});
}

ptxkit_status report(const char* function, const Failure& failure) noexcept {
  LineWriter line;
  line.text(function);
  line.text(": ");
  const Error& error = failure.error;
  if (!error.where.empty()) {
    line.text(error.where);
    line.text(": ");
  }
  line.text(error.what);
  if (!error.remedy().empty()) {
    line.text("; ");
    line.text(error.remedy());
  }
  return failure.status;
}

char* new_string(std::string_view text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  return copy;
}

}  // namespace ptxkit::c_api

uint32_t ptxkit_version(void) {
  return 10000 * PTXKIT_VERSION_MAJOR + 100 * PTXKIT_VERSION_MINOR + PTXKIT_VERSION_PATCH;
}
const char* ptxkit_version_string(void) { return PTXKIT_VERSION; }

const char* ptxkit_status_name(ptxkit_status status) {
  switch (status) {
#define NAME(status) \
  case status:       \
    return #status;
    NAME(PTXKIT_OK)
    NAME(PTXKIT_INVALID_VALUE)
    NAME(PTXKIT_UNSUPPORTED)
    NAME(PTXKIT_CANNOT_DECOMPRESS)
    NAME(PTXKIT_BAD_CHECKSUM)
    NAME(PTXKIT_OUTPUT_TOO_SMALL)
    NAME(PTXKIT_MISALIGNED)
    NAME(PTXKIT_ITEM_TOO_LARGE)
    NAME(PTXKIT_NO_MEMORY)
    NAME(PTXKIT_IO)
    NAME(PTXKIT_CANCELLED)
    NAME(PTXKIT_NO_DEVICE)
    NAME(PTXKIT_DEVICE)
    NAME(PTXKIT_INTERNAL)
#undef NAME
    default:
      return "unknown status";
  }
}

const char* ptxkit_last_error(void) { return ptxkit::c_api::last_error; }

void ptxkit_string_free(char* string) { std::free(string); }
