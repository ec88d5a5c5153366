#include "runtime/library/lz4.hpp"

#include <algorithm>
#include <optional>

#include "kernels/images.hpp"
#include "runtime/codec/executor.hpp"
#include "runtime/codec/select_backend.hpp"

namespace ptxkit::library {
namespace {

using codec::Backend;
using codec::BegunBatch;
using codec::CompressItem;
using codec::DecompressItem;
using codec::Encoder;
using codec::HostMemory;

// liblz4 and the kernels take blocks of up to 4 MiB, the largest of a frame.
constexpr std::size_t kLargestItemBytes = 4u << 20;

// A backend whose host memory is the caller's.
class WithAllocator final : public Backend {
 public:
  WithAllocator(std::unique_ptr<Backend> backend, decltype(Lz4Settings::allocate) allocate)
      : backend_(std::move(backend)), allocate_(std::move(allocate)) {}
  std::string_view name() const override { return backend_->name(); }
  std::string description() const override { return backend_->description(); }
  bool supports(codec::Operation operation) const override { return backend_->supports(operation); }
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
  decltype(Lz4Settings::allocate) allocate_;
};

codec::Policy policy_of(Where where) {
  switch (where) {
    case Where::cpu:
      return codec::Policy::cpu;
    case Where::gpu:
      return codec::Policy::gpu;
    case Where::both:
      return codec::Policy::mixed;
    case Where::automatic:
      break;
  }
  return codec::Policy::automatic;
}

// Only the fast encoder links blocks, whatever is usual where the work is done.
Encoder encoder_for(const Backend& backend, bool is_linked, bool reproducible) {
  if (reproducible) return Encoder::reproducible;
  return is_linked && backend.supports(codec::Operation::compress_fast) ? Encoder::fast : backend.default_encoder();
}

}  // namespace

struct Lz4::State {
  explicit State(unsigned cpu_threads) : executor(cpu_threads), copies(std::max(1u, executor.thread_count() / 4)) {}

  codec::Executor executor, copies;
  std::unique_ptr<Backend> backend;  // last: it uses the others
};

Lz4::Lz4(std::unique_ptr<State> state) : state_(std::move(state)) {}
Lz4::Lz4(Lz4&&) noexcept = default;
Lz4& Lz4::operator=(Lz4&&) noexcept = default;
Lz4::~Lz4() = default;

Result<Lz4> Lz4::open(Lz4Settings settings) {
  auto state = std::make_unique<State>(settings.cpu_threads);
  codec::BackendRequest request;
  request.policy = policy_of(settings.where);
  if (settings.expected_bytes != 0) request.raw_bytes = settings.expected_bytes;
  request.calibration_path = settings.calibration_path;
  request.copy_executor = &state->copies;
  request.devices = settings.devices;
  request.find_image = kernels::find_kernel_image;
  if (settings.log) {
    request.notice = [log = settings.log](const std::string& message, bool matters) {
      log(matters ? LogLevel::warning : LogLevel::detail, message);
    };
  }
  request.limits.memory_bytes = settings.device_memory_bytes;
  request.cuda_library = settings.cuda_library;
  auto backend = codec::select_backend(request, state->executor);
  if (!backend) return tl::unexpected(backend.error());
  state->backend = std::move(*backend);
  if (settings.allocate) {
    state->backend = std::make_unique<WithAllocator>(std::move(state->backend), std::move(settings.allocate));
  }
  return Lz4(std::move(state));
}

Requirements Lz4::requirements(std::size_t item_bytes) {
  return {.largest_item_bytes = kLargestItemBytes,
          .alignment_bytes = 1,
          .compressed_bytes_bound = item_bytes,
          .scratch_bytes = 0};
}

std::string Lz4::description() const { return state_->backend->description(); }

Result<HostMemory> Lz4::host_memory(std::size_t size_bytes) { return state_->backend->host_memory(size_bytes); }

Result<void> Lz4::compress(std::span<CompressItem> items, bool reproducible) {
  for (const CompressItem& item : items) {
    if (item.raw.size() > kLargestItemBytes || item.output.size() < item.raw.size()) {
      return fail("item " + std::to_string(&item - items.data()) + ": expected at most " +
                  std::to_string(kLargestItemBytes) + " bytes and an output as large, found " +
                  std::to_string(item.raw.size()) + " and " + std::to_string(item.output.size()));
    }
  }
  const bool is_linked =
      std::any_of(items.begin(), items.end(), [](const CompressItem& item) { return !item.history.empty(); });
  return state_->backend->compress(items, encoder_for(*state_->backend, is_linked, reproducible));
}

Result<void> Lz4::decompress(std::span<DecompressItem> items) { return state_->backend->decompress(items); }

Result<codec::StreamTotals> Lz4::compress(format::ByteSource& source, format::ByteSink& sink,
                                          const format::FrameHeader& header, const StreamOptions& options) {
  Backend& backend = *state_->backend;
  const Encoder encoder = encoder_for(backend, !header.independent_blocks, options.is_reproducible);
  return codec::compress_stream(
      source, sink, backend,
      {.header = header, .encoder = encoder, .progress = options.progress, .limits = options.limits});
}

Result<codec::StreamTotals> Lz4::decompress(format::ByteSource& source, format::ByteSink& sink,
                                            const StreamOptions& options) {
  return codec::decompress_stream(source, sink, *state_->backend,
                                  {.progress = options.progress, .limits = options.limits});
}

}  // namespace ptxkit::library
