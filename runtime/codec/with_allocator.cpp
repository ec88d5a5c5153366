#include "runtime/codec/with_allocator.hpp"

#include <string>
#include <utility>

namespace ptxkit::codec {
namespace {

class WithAllocator final : public Backend {
 public:
  WithAllocator(std::unique_ptr<Backend> backend, AllocateHostMemory allocate)
      : backend_(std::move(backend)), allocate_(std::move(allocate)) {}
  std::string_view name() const override { return backend_->name(); }
  std::string description() const override { return backend_->description(); }
  bool supports(Operation operation) const override { return backend_->supports(operation); }
  Encoder default_encoder() const override { return backend_->default_encoder(); }
  std::size_t preferred_batch_bytes(std::size_t chunk_bytes) const override {
    return backend_->preferred_batch_bytes(chunk_bytes);
  }
  Result<HostMemory> host_memory(std::size_t size_bytes) override {
    auto first = allocate_(size_bytes);
    if (first == nullptr) {
      return fail("the caller's allocator gave no memory: " + std::to_string(size_bytes) + " bytes were asked for");
    }
    return HostMemory(std::move(first), size_bytes);
  }
  Result<void> compress(std::span<CompressItem> items, Encoder encoder) override {
    return backend_->compress(items, encoder);
  }
  Result<void> decompress(std::span<DecompressItem> items) override { return backend_->decompress(items); }
  std::unique_ptr<BegunBatch> begin_compress(std::span<CompressItem> items, Encoder encoder) override {
    return backend_->begin_compress(items, encoder);
  }
  std::unique_ptr<BegunBatch> begin_decompress(std::span<DecompressItem> items) override {
    return backend_->begin_decompress(items);
  }

 private:
  std::unique_ptr<Backend> backend_;
  AllocateHostMemory allocate_;
};

}  // namespace

std::unique_ptr<Backend> with_allocator(std::unique_ptr<Backend> backend, const AllocateHostMemory& allocate) {
  if (!allocate) return backend;
  return std::make_unique<WithAllocator>(std::move(backend), allocate);
}

}  // namespace ptxkit::codec
