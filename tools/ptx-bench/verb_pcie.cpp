// Measures what PCIe costs and how much of it overlapping hides: copies up, down and both ways at once; LZ4 from host
// memory to host memory through the library; and the time to the first result in a fresh process. Compares them with
// two models that tell when the GPU is worth its copies.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/abi.hpp"
#include "kernels/images.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/driver/context.hpp"
#include "support/result.hpp"
#include "tools/ptx-bench/gpu_lz4.hpp"
#include "tools/ptx-bench/input.hpp"
#include "tools/ptx-bench/verb.hpp"

namespace ptxkit::bench {
namespace {

using codec::Backend;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// libpz's rule: a kernel is worth the copies if it takes five times as long as both copies at 25 GB/s.
double five_times_rule_seconds(double raw_bytes) { return 5 * 2 * raw_bytes / 25e9; }

struct Copies {
  double up = 0, down = 0, both = 0;  // seconds
  std::vector<double> half_rows;      // for each chunk size: copying down the first half of each chunk
};

Result<Copies> measure_copies(const driver::ContextPointer& context, size_t size_bytes,
                              const std::vector<size_t>& chunk_bytes, const Repetition& repetition) {
  auto up = driver::Stream::create(context), down = driver::Stream::create(context);
  auto device_up = driver::DeviceMemory::allocate(context, size_bytes),
       device_down = driver::DeviceMemory::allocate(context, size_bytes);
  auto host_up = driver::PinnedMemory::allocate(context, size_bytes),
       host_down = driver::PinnedMemory::allocate(context, size_bytes);
  for (const auto* stream : {&up, &down}) {
    if (!*stream) return tl::unexpected(stream->error());
  }
  for (const auto* memory : {&device_up, &device_down}) {
    if (!*memory) return tl::unexpected(memory->error());
  }
  for (const auto* memory : {&host_up, &host_down}) {
    if (!*memory) return tl::unexpected(memory->error());
  }
  std::memset(host_up->bytes().data(), 0x5a, size_bytes);
  if (auto filled = device_down->fill(0x5a, *down); !filled) return tl::unexpected(filled.error());
  const auto timed = [&](bool goes_up, bool goes_down) {
    return median_wall_seconds(repetition, [&]() -> Result<void> {
      Result<void> done;
      if (goes_up) done = device_up->upload(host_up->bytes(), *up);
      if (done && goes_down) done = device_down->download(host_down->bytes(), *down);
      if (done) done = up->wait();
      return done ? down->wait() : done;
    });
  };
  Copies copies;
  for (const auto& [into, goes_up, goes_down] :
       {std::tuple(&copies.up, true, false), std::tuple(&copies.down, false, true),
        std::tuple(&copies.both, true, true)}) {
    auto seconds = timed(goes_up, goes_down);
    if (!seconds) return tl::unexpected(seconds.error());
    *into = *seconds;
  }
  for (const size_t chunk : chunk_bytes) {
    auto seconds = median_wall_seconds(repetition, [&]() -> Result<void> {
      auto done = device_down->download_rows(host_down->bytes(), {0, chunk, chunk / 2, size_bytes / chunk}, *down);
      return done ? down->wait() : done;
    });
    if (!seconds) return tl::unexpected(seconds.error());
    copies.half_rows.push_back(*seconds);
  }
  if (std::memcmp(host_up->bytes().data(), host_down->bytes().data(), size_bytes) != 0) {
    return fail("what was copied down is not what was there");
  }
  return copies;
}

// Keeps the input in memory of the backend and runs it in batches as a stream does, with two batches at a time.
class HostToHost {
 public:
  static Result<HostToHost> make(Backend& backend, const Input& input) {
    auto raw = backend.host_memory(input.raw.size()), packed = backend.host_memory(input.raw.size()),
         unpacked = backend.host_memory(input.raw.size());
    for (const auto* memory : {&raw, &packed, &unpacked}) {
      if (!*memory) return tl::unexpected(memory->error());
    }
    return HostToHost(backend, input, std::move(*raw), std::move(*packed), std::move(*unpacked));
  }

  Result<double> compress() {
    return in_batches(compress_, [&](std::span<codec::CompressItem> batch) {
      return backend_->begin_compress(batch, codec::Encoder::reproducible);
    });
  }
  // Decompresses only the blocks that were compressed; decoded_bytes is the number of bytes they hold.
  Result<double> decompress() {
    return in_batches(decompress_,
                      [&](std::span<codec::DecompressItem> batch) { return backend_->begin_decompress(batch); });
  }

  // Call after compress(): lists the compressed blocks for decompress().
  Result<void> prepare_decompression() {
    for (const codec::CompressItem& item : compress_) {
      if (item.status != codec::ItemStatus::ok) return fail("an item failed", input_->name);
      stored_bytes += item.compressed_bytes;
      if (item.flag != codec::ChunkFlag::compressed) continue;
      const size_t offset = static_cast<size_t>(item.raw.data() - raw_.bytes().data());
      codec::DecompressItem back;
      back.block = item.output.first(item.compressed_bytes);
      back.output = unpacked_.bytes().subspan(offset, item.raw.size());
      decompress_.push_back(back);
      decoded_bytes += item.raw.size();
    }
    return {};
  }
  Result<void> check() const {
    for (const codec::DecompressItem& item : decompress_) {
      const size_t offset = static_cast<size_t>(item.output.data() - unpacked_.bytes().data());
      if (item.status != codec::ItemStatus::ok || item.raw_bytes != item.output.size() ||
          std::memcmp(item.output.data(), input_->raw.data() + offset, item.raw_bytes) != 0) {
        return fail(fmt::format("the block of the bytes from {} does not decode to them", offset), input_->name);
      }
    }
    return {};
  }

  uint64_t stored_bytes = 0, decoded_bytes = 0;

 private:
  HostToHost(Backend& backend, const Input& input, codec::HostMemory raw, codec::HostMemory packed,
             codec::HostMemory unpacked)
      : backend_(&backend),
        input_(&input),
        raw_(std::move(raw)),
        packed_(std::move(packed)),
        unpacked_(std::move(unpacked)) {
    std::memcpy(raw_.bytes().data(), input.raw.data(), input.raw.size());
    for (size_t begin = 0; begin < input.raw.size(); begin += input.chunk_bytes) {
      const size_t size = std::min(input.chunk_bytes, input.raw.size() - begin);
      codec::CompressItem item;
      item.raw = raw_.bytes().subspan(begin, size);
      item.output = packed_.bytes().subspan(begin, size);
      compress_.push_back(item);
    }
    batch_items_ = std::max<size_t>(1, backend.preferred_batch_bytes(input.chunk_bytes) / input.chunk_bytes);
  }

  template <class Item, class Begin>
  Result<double> in_batches(std::vector<Item>& items, Begin begin_batch) {
    const auto begin = Clock::now();
    std::unique_ptr<codec::PendingBatch> before;
    for (size_t first = 0; first < items.size(); first += batch_items_) {
      auto begun = begin_batch(std::span(items).subspan(first, std::min(batch_items_, items.size() - first)));
      if (before) {
        if (auto done = before->finish(); !done) return tl::unexpected(done.error());
      }
      before = std::move(begun);
    }
    if (before) {
      if (auto done = before->finish(); !done) return tl::unexpected(done.error());
    }
    return seconds_since(begin);
  }

  Backend* backend_;
  const Input* input_;
  codec::HostMemory raw_, packed_, unpacked_;
  std::vector<codec::CompressItem> compress_;
  std::vector<codec::DecompressItem> decompress_;
  size_t batch_items_ = 1;
};

Result<std::unique_ptr<Backend>> cuda_backend(const Settings& settings, codec::Executor& executor) {
  codec::BackendRequest request;
  request.name = "cuda";
  request.devices = {settings.device};
  request.find_image = kernels::find_kernel_image;
  if (settings.queue_count != 0) request.limits.queue_count = settings.queue_count;
  if (settings.slice_bytes != 0) request.limits.slice_bytes = settings.slice_bytes;
  return codec::select_backend(request, executor);
}

}  // namespace

Result<Measurements> run_pcie(const Settings& settings) {
  codec::Executor executor;
  Measurements all;
  // Comes first, while this process has no context: measures what a program pays before the first result.
  {
    const auto begin = Clock::now();
    auto backend = cuda_backend(settings, executor);
    if (!backend) return tl::unexpected(backend.error());
    const double opened = seconds_since(begin);
    std::vector<uint8_t> raw(kernels::kMaxChunkBytes, 1), packed(raw.size());
    codec::CompressItem item;
    item.raw = raw;
    item.output = packed;
    if (auto done = (*backend)->compress({&item, 1}, codec::Encoder::reproducible); !done) {
      return tl::unexpected(done.error());
    }
    all.cpu = codec::make_cpu_backend(executor)->description();
    all.rows.push_back({"-", "start: driver and context", 0, 0, 0, opened});
    all.rows.push_back({"-", "start: to the first result", 0, 0, 0, seconds_since(begin)});
  }
  const auto context = open_device(settings.device);
  if (!context) return tl::unexpected(context.error());
  all.device = (*context)->info().name;
  const size_t size = settings.size_bytes;
  const auto copies = measure_copies(*context, size, settings.chunk_bytes, settings.repetition);
  if (!copies) return tl::unexpected(copies.error());
  all.rows.push_back({"-", "copy up", 0, size, 0, copies->up});
  all.rows.push_back({"-", "copy down", 0, size, 0, copies->down});
  all.rows.push_back({"-", "both at once, each way", 0, size, 0, copies->both});
  for (size_t i = 0; i < settings.chunk_bytes.size(); ++i) {
    all.rows.push_back({"-", "half of each chunk down", settings.chunk_bytes[i], size / 2, 0, copies->half_rows[i]});
  }
  const double up = static_cast<double>(size) / copies->up, down = static_cast<double>(size) / copies->down;

  for (const auto& paths : settings.inputs()) {
    auto input = load_input(paths, size);
    if (!input) return tl::unexpected(input.error());
    for (const size_t chunk_bytes : settings.chunk_bytes) {
      input->chunk_bytes = chunk_bytes;
      const auto on_device = measure_compression(
          *context, *input,
          chunk_bytes <= kernels::kMaxPageBytes ? kernels::kLz4CompressPage : kernels::kLz4CompressChunk, executor,
          settings.repetition);
      if (!on_device) return tl::unexpected(on_device.error());
      auto backend = cuda_backend(settings, executor);
      if (!backend) return tl::unexpected(backend.error());
      auto run = HostToHost::make(**backend, *input);
      if (!run) return tl::unexpected(run.error());
      const auto compress = median_seconds(settings.repetition, [&] { return run->compress(); });
      if (!compress) return tl::unexpected(compress.error());
      if (auto done = run->prepare_decompression(); !done) return tl::unexpected(done.error());
      const auto decompress = median_seconds(settings.repetition, [&] { return run->decompress(); });
      if (!decompress) return tl::unexpected(decompress.error());
      if (auto done = run->check(); !done) return tl::unexpected(done.error());
      const double raw_bytes = static_cast<double>(size), ratio = raw_bytes / static_cast<double>(run->stored_bytes);
      const double copied_down = raw_bytes / ratio / down;
      const double in_turn = raw_bytes / up + on_device->seconds + copied_down;
      const double overlapped = std::max({raw_bytes / up, on_device->seconds.median, copied_down});
      const auto row = [&](const char* what, size_t bytes, double seconds) {
        all.rows.push_back({input->name, what, chunk_bytes, bytes, ratio, seconds});
      };
      row("kernel on the device", size, on_device->seconds);
      row("model: copies and kernel in turn", size, in_turn);
      row("model: overlapped", size, overlapped);
      row("compress, host to host", size, *compress);
      row("decompress, host to host", run->decoded_bytes, *decompress);
      all.notes.push_back(
          fmt::format("{}, {} bytes: the 5 x rule wants a kernel of more than {:.1f} ms for {} MB and sees {:.1f} ms: "
                      "{}; overlapped, the copies cost {:.2f} of the whole",
                      input->name, chunk_bytes, five_times_rule_seconds(raw_bytes) * 1e3, size / 1'000'000,
                      on_device->seconds * 1e3,
                      on_device->seconds > five_times_rule_seconds(raw_bytes) ? "use the GPU" : "do not use the GPU",
                      (*compress - on_device->seconds) / *compress));
    }
  }
  return all;
}

}  // namespace ptxkit::bench
