// The cpu backend: liblz4 for `fast` and for all decompression, the scalar references of kernels/lz4 for `reproducible`
// and `high`. Each worker has an LZ4 state that is allocated once: LZ4_compress_fast would put 16 KiB on the stack and
// clear it for each chunk.
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <lz4.h>

#include "kernels/abi.hpp"
#include "kernels/lz4/lz4_compress_reference.hpp"
#include "kernels/lz4/lz4_decompress_reference.hpp"
#include "kernels/lz4/lz4_format.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/chunk_plan.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "support/check.hpp"
#include "support/plural.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

const char* chars(const uint8_t* bytes) { return reinterpret_cast<const char*>(bytes); }
char* chars(uint8_t* bytes) { return reinterpret_cast<char*>(bytes); }

// The first byte is 0 and every byte equals the next one; memcmp stops at the first difference.
bool all_zero(Bytes bytes) {
  return bytes.empty() || (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// Whether a match of a block that liblz4 accepted has offset 0. The format forbids it, but liblz4 1.9.4 then copies
// from output bytes that are not written yet, so the result would be whatever the memory held before.
bool has_zero_offset(Bytes block) {
  const uint8_t* at = block.data();
  const uint8_t* const end = at + block.size();
  const auto skip_extension = [&] {
    size_t sum = 0;
    uint8_t more = 255;
    while (more == 255 && at < end) sum += more = *at++;
    return sum;
  };
  while (at < end) {
    const unsigned token = *at++;
    size_t literal_count = token >> 4;
    if (literal_count == 15) literal_count += skip_extension();
    if (static_cast<size_t>(end - at) < literal_count + 2) return false;  // the last sequence
    at += literal_count;
    if (at[0] == 0 && at[1] == 0) return true;
    at += 2;
    if ((token & 15) == 15) skip_extension();
  }
  return false;
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(Executor& executor) : executor_(executor), streams_(executor.thread_count()) {}

  std::string_view name() const override { return "cpu"; }
  std::string description() const override {
    return fmt::format("cpu, {}, liblz4 {}", plural(executor_.thread_count(), "thread"), LZ4_versionString());
  }
  bool supports(Operation) const override { return true; }
  Encoder default_encoder() const override { return Encoder::fast; }
  size_t preferred_batch_bytes(size_t chunk_bytes) const override {
    // Small chunks: enough to make handing out a batch cheap. Large chunks: one for each thread, which bounds the
    // memory.
    return std::max(chunk_bytes, size_t{1} << 20) * executor_.thread_count();
  }

  Result<void> compress(std::span<CompressItem> items, Encoder encoder) override {
    if (encoder != Encoder::fast) return compress_reproducible(items, encoder);
    executor_.for_each(items.size(), [&](size_t index, unsigned worker) { compress_fast(items[index], worker); });
    return {};
  }

  Result<void> decompress(std::span<DecompressItem> items) override {
    executor_.for_each(items.size(), [&](size_t index, unsigned) { decompress_one(items[index]); });
    return {};
  }

 private:
  void compress_fast(CompressItem& item, unsigned worker) {
    PTXKIT_CHECK(item.raw.size() <= LZ4_MAX_INPUT_SIZE, "an item holds at most LZ4_MAX_INPUT_SIZE bytes");
    PTXKIT_CHECK(item.output.size() >= item.raw.size(), "the output of an item is at least as large as the item");
    item.status = ItemStatus::ok;
    item.compressed_bytes = 0;
    if (all_zero(item.raw)) {
      item.flag = ChunkFlag::zero;
      return;
    }
    LZ4_stream_t& stream = streams_[worker];
    const int raw_bytes = static_cast<int>(item.raw.size());
    int length;
    if (item.history.empty()) {
      length = LZ4_compress_fast_extState(&stream, chars(item.raw.data()), chars(item.output.data()), raw_bytes,
                                          raw_bytes - 1, 1);
    } else {
      LZ4_initStream(&stream, sizeof stream);
      LZ4_loadDict(&stream, chars(item.history.data()), static_cast<int>(item.history.size()));
      length = LZ4_compress_fast_continue(&stream, chars(item.raw.data()), chars(item.output.data()), raw_bytes,
                                          raw_bytes - 1, 1);
    }
    item.flag = length > 0 ? ChunkFlag::compressed : ChunkFlag::incompressible;
    item.compressed_bytes = static_cast<uint32_t>(length > 0 ? length : raw_bytes);
  }

  Result<void> compress_reproducible(std::span<CompressItem> items, Encoder encoder) {
    if (std::any_of(items.begin(), items.end(), [](const CompressItem& item) { return !item.history.empty(); })) {
      return fail("the reproducible encoder has no linked blocks", {}, "use independent blocks or the fast encoder");
    }
    ChunkPlan plan(items);
    const auto chunks = plan.chunks();
    executor_.for_each(chunks.size(), [&](size_t index, unsigned) {
      Chunk& chunk = chunks[index];
      const auto& variant = encoder == Encoder::high             ? kernels::kHighVariant
                            : fits_page_kernel(chunk.raw.size()) ? kernels::kPageVariant
                                                                 : kernels::kChunkVariant;
      const auto encoded = kernels::lz4_compress_reference(chunk.raw, chunk.output, variant);
      PTXKIT_CHECK(encoded.flag != kernels::PageFlag::refused, "a chunk is within the limits of its kernel");
      chunk.flag = static_cast<ChunkFlag>(encoded.flag);
      chunk.compressed_bytes = encoded.size_bytes;
    });
    executor_.for_each(plan.item_count(), [&](size_t index, unsigned) { plan.finish(index); });
    return {};
  }

  static void decompress_one(DecompressItem& item) {
    item.raw_bytes = 0;
    if (std::max(item.block.size(), item.output.size()) > LZ4_MAX_INPUT_SIZE) {  // liblz4 takes sizes as int
      item.status = ItemStatus::item_too_large;
      return;
    }
    const int length = LZ4_decompress_safe_usingDict(
        chars(item.block.data()), chars(item.output.data()), static_cast<int>(item.block.size()),
        static_cast<int>(item.output.size()), chars(item.history.data()), static_cast<int>(item.history.size()));
    item.status = length < 0 ? reason_of(item) : has_zero_offset(item.block) ? ItemStatus::offset_zero : ItemStatus::ok;
    if (item.status == ItemStatus::ok) item.raw_bytes = static_cast<uint32_t>(length);
  }

  // liblz4 only reports that a block is bad; the slower reference decoder reports why. It takes no history, so it
  // cannot judge blocks that have one.
  static ItemStatus reason_of(const DecompressItem& item) {
    if (!item.history.empty()) return ItemStatus::malformed;
    const auto decoded = kernels::lz4_decompress_reference(item.block, item.output);
    return decoded.status == kernels::Lz4Status::ok ? ItemStatus::malformed : static_cast<ItemStatus>(decoded.status);
  }

  Executor& executor_;
  std::vector<LZ4_stream_t> streams_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(Executor& executor) { return std::make_unique<CpuBackend>(executor); }

}  // namespace ptxkit::codec
