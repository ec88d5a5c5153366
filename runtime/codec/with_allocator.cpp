#include "runtime/codec/with_allocator.hpp"

#include <string>
#include <utility>

#include "runtime/codec/forwarding_backend.hpp"
#include "support/guarded.hpp"

namespace ptxkit::codec {
namespace {

class WithAllocator final : public ForwardingBackend {
 public:
  WithAllocator(std::unique_ptr<Backend> backend, AllocateHostMemory allocate)
      : ForwardingBackend(std::move(backend)), allocate_(std::move(allocate)) {}
  Result<HostMemory> host_memory(size_t size_bytes) override {
    std::shared_ptr<uint8_t> first;
    try {
      first = allocate_(size_bytes);
    } catch (...) {
      return gave_none(size_bytes, ", and " + error_of_exception().what);
    }
    if (first == nullptr) return gave_none(size_bytes, "");
    return HostMemory(std::move(first), size_bytes);
  }

 private:
  static tl::unexpected<Error> gave_none(size_t size_bytes, const std::string& why) {
    return tl::unexpected<Error>(
        Error{"the caller's allocator gave no memory: " + std::to_string(size_bytes) + " bytes were asked for" + why,
              {},
              {},
              ErrorKind::no_memory});
  }

  AllocateHostMemory allocate_;
};

}  // namespace

std::unique_ptr<Backend> with_allocator(std::unique_ptr<Backend> backend, const AllocateHostMemory& allocate) {
  if (!allocate) return backend;
  return std::make_unique<WithAllocator>(std::move(backend), allocate);
}

}  // namespace ptxkit::codec
