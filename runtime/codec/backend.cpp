#include "runtime/codec/backend.hpp"

#include <fmt/format.h>

#include "kernels/abi.hpp"

namespace ptxkit::codec {

std::string_view name_of(Encoder encoder) {
  return encoder == Encoder::fast ? "fast" : encoder == Encoder::high ? "high-ratio" : "reproducible";
}

std::string_view name_of(Operation operation) {
  switch (operation) {
    case Operation::compress_fast:
      return "the fast encoder";
    case Operation::compress_reproducible:
      return "the reproducible encoder";
    case Operation::compress_linked:
      return "compression of linked blocks";
    case Operation::decompress:
      return "decompression";
    case Operation::decompress_linked:
      return "decompression of linked blocks";
  }
  return "?";
}

std::string_view text(ItemStatus status) {
  switch (status) {
    case ItemStatus::malformed:
      return "not a valid LZ4 block";
    case ItemStatus::unsupported:
      return "the backend lacks the operation that this item needs";
    case ItemStatus::wrong_length:
      return "the stored bytes are too few or too many for the flag and the item's length";
    case ItemStatus::unknown_flag:
      return "the flag is none of 0, 1, 2 and 4";
    default:
      return kernels::status_text(static_cast<kernels::Lz4Status>(status));
  }
}

HostMemory pageable_memory(size_t size_bytes) {
  return {std::shared_ptr<uint8_t>(new uint8_t[size_bytes], std::default_delete<uint8_t[]>()), size_bytes};
}

std::unique_ptr<PendingBatch> finished_batch(Result<void> outcome, const DeviceTimes& times) {
  class Finished final : public PendingBatch {
   public:
    Finished(Result<void> outcome, const DeviceTimes& times) : outcome_(std::move(outcome)), times_(times) {}
    Result<void> finish() override { return std::move(outcome_); }
    DeviceTimes device_times() const override { return times_; }

   private:
    Result<void> outcome_;
    DeviceTimes times_;
  };
  return std::make_unique<Finished>(std::move(outcome), times);
}

Result<HostMemory> Backend::host_memory(size_t size_bytes) { return pageable_memory(size_bytes); }

std::unique_ptr<PendingBatch> Backend::begin_compress(std::span<CompressItem> items, Encoder encoder) {
  return finished_batch(compress(items, encoder));
}

std::unique_ptr<PendingBatch> Backend::begin_decompress(std::span<DecompressItem> items) {
  return finished_batch(decompress(items));
}

Backend& Backend::chosen_for(const CodecJob&) { return *this; }

void Backend::record_time(const CodecJob&, const Backend&, double) {}

tl::unexpected<Error> Backend::lacks(Operation operation) const {
  return fail(fmt::format("the {} backend lacks {}", name(), name_of(operation)), {}, "use --backend cpu");
}

}  // namespace ptxkit::codec
