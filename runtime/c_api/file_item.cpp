#include "runtime/c_api/file_item.hpp"

#include <algorithm>
#include <variant>

#include "runtime/codec/format/lz4_frame_reader.hpp"
#include "runtime/codec/format/ptz.hpp"
#include "runtime/codec/format/zstd_frame.hpp"
#include "runtime/codec/stream/ptz_stream.hpp"
#include "runtime/codec/stream/stream.hpp"

namespace ptxkit::c_api {
namespace {

// Writes into memory of fixed size.
class RoomSink final : public format::ByteSink {
 public:
  explicit RoomSink(codec::MutableBytes room) : room_(room) {}

  Result<void> write(codec::Bytes bytes) override {
    if (bytes.size() > room_.size() - used_) {
      is_too_small_ = true;
      return fail("the output of the item is too small");
    }
    std::ranges::copy(bytes, room_.begin() + static_cast<ptrdiff_t>(used_));
    used_ += bytes.size();
    return {};
  }
  size_t used() const { return used_; }
  bool is_too_small() const { return is_too_small_; }

 private:
  codec::MutableBytes room_;
  size_t used_ = 0;
  bool is_too_small_ = false;
};

Answer<size_t> answer(const Result<codec::StreamTotals>& totals, const RoomSink& sink, ptxkit_status otherwise) {
  if (totals) return sink.used();
  return refuse(sink.is_too_small() ? PTXKIT_OUTPUT_TOO_SMALL : otherwise, totals.error());
}

}  // namespace

Answer<size_t> compress_file_item(ptxkit_context& context, const Coding& coding, codec::Bytes raw,
                                  codec::MutableBytes output) {
  library::Engine& engine = context.lz4.engine();
  auto coder = engine.block_coder();
  if (!coder) return refuse(PTXKIT_DEVICE, coder.error());
  format::MemorySource source(raw, "item");
  RoomSink sink(output);
  codec::PtzOptions options;
  options.coder = &**coder;
  options.search = coding.search;
  return answer(codec::compress_ptz(source, sink, engine.executor(), coding.ptz_header(), options), sink,
                PTXKIT_DEVICE);
}

Answer<size_t> decompress_file_item(ptxkit_context& context, bool is_lz4, codec::Bytes stored,
                                    codec::MutableBytes output) {
  format::MemorySource source(stored, "item");
  RoomSink sink(output);
  if (is_lz4) return answer(context.lz4.decompress(source, sink), sink, PTXKIT_CANNOT_DECOMPRESS);
  library::Engine& engine = context.lz4.engine();
  auto coder = engine.block_coder();
  if (!coder) return refuse(PTXKIT_DEVICE, coder.error());
  codec::PtzOptions options;
  options.coder = &**coder;
  return answer(codec::decompress_ptz(source, sink, engine.executor(), options), sink, PTXKIT_CANNOT_DECOMPRESS);
}

size_t ptz_bound(const format::PtzCodecRow& row, size_t raw_bytes) {
  const size_t block_bytes = size_t{1} << row.block_bits;
  const size_t block_count = raw_bytes / block_bytes + (raw_bytes % block_bytes != 0);
  // A block that does not shrink is stored; its header stands before it and in the table. The end block has one, too.
  return format::kPtzHeaderBytes + raw_bytes + (2 * block_count + 1) * format::kPtzBlockHeaderBytes +
         format::kPtzFooterBytes;
}

namespace {

tl::unexpected<Failure> no_content_size() {
  return refuse(PTXKIT_UNSUPPORTED, "a frame does not say the size of its content",
                "decompress it as a stream, or keep the size beside it");
}
// Adds the size that a frame claims.
Answer<> add_claim(size_t& raw_bytes, uint64_t claim) {
  if (claim > SIZE_MAX - raw_bytes)
    return refuse(PTXKIT_CANNOT_DECOMPRESS, "the frames' sizes add up to more than an address space");
  raw_bytes += claim;
  return {};
}

}  // namespace

Answer<size_t> raw_size_of_zstd(codec::Bytes stored) {
  format::MemorySource source(stored, "item");
  format::ZstdFrameReader reader(source);
  size_t raw_bytes = 0;
  std::vector<uint8_t> bytes;
  while (true) {
    bytes.clear();
    const auto event = reader.next(bytes);
    if (!event) return refuse(PTXKIT_CANNOT_DECOMPRESS, event.error());
    if (std::holds_alternative<format::ZstdEndOfInput>(*event)) return raw_bytes;
    if (const auto* const frame = std::get_if<format::ZstdFrameBegin>(&*event)) {
      if (!frame->header.content_bytes) return no_content_size();
      if (const auto added = add_claim(raw_bytes, *frame->header.content_bytes); !added)
        return tl::unexpected(added.error());
    }
  }
}

Answer<size_t> raw_size_of_file(bool is_lz4, codec::Bytes stored) {
  if (!is_lz4) {
    const format::MemoryFile file(stored, "item");
    const auto archive = format::PtzArchive::open(file);
    if (!archive) return refuse(PTXKIT_CANNOT_DECOMPRESS, archive.error());
    size_t raw_bytes = 0;
    for (size_t i = 0; i < archive->block_count(); ++i) raw_bytes += archive->block(i).raw_bytes;
    return raw_bytes;
  }
  format::MemorySource source(stored, "item");
  format::FrameReader reader(source);
  size_t raw_bytes = 0;
  std::vector<uint8_t> reused;
  while (true) {
    auto event = reader.next(std::move(reused));
    reused.clear();
    if (!event) return refuse(PTXKIT_CANNOT_DECOMPRESS, event.error());
    if (std::holds_alternative<format::EndOfInput>(*event)) return raw_bytes;
    if (auto* const block = std::get_if<format::BlockRead>(&*event)) reused = std::move(block->payload);
    if (const auto* const frame = std::get_if<format::FrameBegin>(&*event)) {
      if (!frame->header.content_bytes) return no_content_size();
      if (const auto added = add_claim(raw_bytes, *frame->header.content_bytes); !added)
        return tl::unexpected(added.error());
    }
  }
}

}  // namespace ptxkit::c_api
