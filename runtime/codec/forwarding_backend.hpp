// A backend that forwards every call to another one. Derived classes override what differs.
#pragma once

#include <memory>
#include <utility>

#include "runtime/codec/backend.hpp"

namespace ptxkit::codec {

class ForwardingBackend : public Backend {
 public:
  std::string_view name() const override { return backend_->name(); }
  std::string description() const override { return backend_->description(); }
  bool supports(Operation operation) const override { return backend_->supports(operation); }
  Encoder default_encoder() const override { return backend_->default_encoder(); }
  size_t preferred_batch_bytes(size_t chunk_bytes) const override {
    return backend_->preferred_batch_bytes(chunk_bytes);
  }
  Result<HostMemory> host_memory(size_t size_bytes) override { return backend_->host_memory(size_bytes); }
  Result<void> compress(std::span<CompressItem> items, Encoder encoder) override {
    return backend_->compress(items, encoder);
  }
  Result<void> decompress(std::span<DecompressItem> items) override { return backend_->decompress(items); }
  std::unique_ptr<PendingBatch> begin_compress(std::span<CompressItem> items, Encoder encoder) override {
    return backend_->begin_compress(items, encoder);
  }
  std::unique_ptr<PendingBatch> begin_decompress(std::span<DecompressItem> items) override {
    return backend_->begin_decompress(items);
  }

 protected:
  explicit ForwardingBackend(std::shared_ptr<Backend> backend) : backend_(std::move(backend)) {}

  const std::shared_ptr<Backend> backend_;
};

}  // namespace ptxkit::codec
