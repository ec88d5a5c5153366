// A range begins without entropy tables and with repeat offsets that are invalid, so no match depends on what the range
// before has left in the decoder. libzstd's own threads do the same (ZSTDMT_compressionJob in zstdmt_compress.c), with
// a function that the archive has and the header does not declare.
#include "runtime/codec/cpu/zstd_coder.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <optional>

#define ZSTD_STATIC_LINKING_ONLY         // ZSTD_compressBegin_advanced() and others that code a part of a frame
#define ZSTD_DISABLE_DEPRECATE_WARNINGS  // the functions that replace them code whole frames
#include <zstd.h>
#include <zstd_errors.h>

#include "runtime/codec/cpu/context_pool.hpp"
#include "support/plural.hpp"

extern "C" void ZSTD_invalidateRepCodes(ZSTD_CCtx* context);

namespace ptxkit::codec {
namespace {

using format::ZstdBlock;

constexpr size_t kShortRangeBytes = 512u << 10, kLongestRangeBytes = 8u << 20;
constexpr int kLastLevelOfShortRanges = 3;

// A context of libzstd, made on the first use. Throws std::bad_alloc.
template <auto Create, auto Free>
class Context {
 public:
  auto* get() {
    if (!of_) of_.reset(Create());
    if (!of_) throw std::bad_alloc();
    return of_.get();
  }

 private:
  struct Deleter {
    void operator()(auto* context) const { Free(context); }
  };
  std::unique_ptr<std::remove_pointer_t<decltype(Create())>, Deleter> of_;
};
struct RangeEncoder {
  Context<ZSTD_createCCtx, ZSTD_freeCCtx> context;
  std::vector<uint8_t> room;
};
struct FrameDecoder {
  Context<ZSTD_createDCtx, ZSTD_freeDCtx> context;
};

// An error code of libzstd that is not about the data.
void throw_without_memory(size_t code) {
  if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation) throw std::bad_alloc();
}

ZSTD_parameters parameters(int level, size_t raw_bytes) {
  ZSTD_parameters all{};
  all.cParams = ZSTD_getCParams(level, raw_bytes, 0);
  all.fParams = {.contentSizeFlag = 0, .checksumFlag = 0, .noDictIDFlag = 1};
  return all;
}

// Codes `range` into `with.room`. Returns the bytes of its blocks, or an error code of libzstd.
size_t encode_range(RangeEncoder& with, Bytes raw, int level) {
  ZSTD_CCtx* const context = with.context.get();
  size_t code = ZSTD_compressBegin_advanced(context, nullptr, 0, parameters(level, raw.size()), raw.size());
  if (ZSTD_isError(code)) return code;
  uint8_t header[format::kZstdMostHeaderBytes];  // dropped: the stream writes the frame's header
  code = ZSTD_compressContinue(context, header, sizeof header, raw.data(), 0);
  if (ZSTD_isError(code)) return code;
  ZSTD_invalidateRepCodes(context);
  if (with.room.size() < zstd_range_bound(raw.size())) with.room.resize(zstd_range_bound(raw.size()));
  return ZSTD_compressContinue(context, with.room.data(), with.room.size(), raw.data(), raw.size());
}

// Enters the result of libzstd, a size or an error code.
void finish(CoderItem& item, size_t code) {
  item.status = CoderItem::Status::ok;
  if (!ZSTD_isError(code)) return;
  throw_without_memory(code);
  item.output_bytes = 0;
  switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_dstSize_tooSmall:
      item.status = CoderItem::Status::output_too_small;
      break;
    case ZSTD_error_checksum_wrong:
      item.status = CoderItem::Status::bad_checksum;
      break;
    default:
      item.status = CoderItem::Status::damaged;
  }
}

void set_fault(ZstdPart& part, size_t code, const ZstdBlock* block) {
  throw_without_memory(code);
  part.fault = ZSTD_getErrorName(code);
  part.is_bad_checksum = ZSTD_getErrorCode(code) == ZSTD_error_checksum_wrong;
  part.bad_block = part.is_bad_checksum ? nullptr : block;
}

// The block of `part` that has byte `at` of `stored`.
const ZstdBlock* block_at(const ZstdPart& part, size_t at) {
  size_t end = part.header_bytes;
  for (const ZstdBlock& block : part.blocks) {
    end += block.stored_bytes;
    if (at < end) return at < part.header_bytes ? nullptr : &block;
  }
  return nullptr;
}

// Decodes a damaged frame once more, step by step, to find the block that is damaged.
void find_fault(ZSTD_DCtx* context, ZstdPart& part, size_t fault) {
  size_t at = 0, used = 0;
  for (ZSTD_decompressBegin(context);;) {
    const size_t wanted = ZSTD_nextSrcSizeToDecompress(context);
    if (wanted == 0 || wanted > part.stored.size() - at) break;
    const size_t code = ZSTD_decompressContinue(context, part.room.data() + used, part.room.size() - used,
                                                part.stored.data() + at, wanted);
    if (ZSTD_isError(code)) {
      fault = code;
      break;
    }
    at += wanted;
    used += code;
  }
  set_fault(part, fault, block_at(part, at));
}

void decode_frame(ZSTD_DCtx* context, ZstdPart& part) {
  const size_t code =
      ZSTD_decompressDCtx(context, part.room.data(), part.room.size(), part.stored.data(), part.stored.size());
  if (ZSTD_isError(code)) {
    throw_without_memory(code);
    find_fault(context, part, code);
  } else {
    part.raw_bytes = code;
  }
}

// Gives `input` to the stream, and takes all that it yields. False, with the fault in `part`, if it refuses it.
bool feed(ZSTD_DCtx* context, ZstdPart& part, Bytes input, const ZstdBlock* block) {
  ZSTD_inBuffer from{input.data(), input.size(), 0};
  while (from.pos < from.size) {
    ZSTD_outBuffer into{part.room.data(), part.room.size(), part.raw_bytes};
    const size_t before = from.pos, code = ZSTD_decompressStream(context, &into, &from);
    if (!ZSTD_isError(code) && (from.pos != before || into.pos != part.raw_bytes)) {
      part.raw_bytes = into.pos;
      continue;
    }
    set_fault(part, ZSTD_isError(code) ? code : static_cast<size_t>(-ZSTD_error_corruption_detected), block);
    return false;
  }
  return true;
}

}  // namespace

struct ZstdCoder::Contexts {
  ContextPool<RangeEncoder> encoders;
  ContextPool<FrameDecoder> decoders;
  std::optional<FrameDecoder> stream;
};

std::string libzstd_name() { return std::string("libzstd ") + ZSTD_versionString(); }
int least_zstd_level() { return ZSTD_minCLevel(); }
int greatest_zstd_level() { return ZSTD_maxCLevel(); }
int default_zstd_level() { return ZSTD_defaultCLevel(); }

size_t zstd_range_bytes(int level) {
  if (level <= kLastLevelOfShortRanges) return kShortRangeBytes;
  return std::min(size_t{1} << ZSTD_getCParams(level, 0, 0).windowLog, kLongestRangeBytes);
}
unsigned zstd_window_bits(int level, size_t range_bytes) { return ZSTD_getCParams(level, range_bytes, 0).windowLog; }
size_t zstd_item_bound(size_t raw_bytes) { return ZSTD_compressBound(raw_bytes) + format::kZstdChecksumBytes; }
size_t zstd_range_bound(size_t raw_bytes) {
  return ZSTD_compressBound(raw_bytes) + format::kZstdBlockHeaderBytes * (raw_bytes / format::kZstdBlockBytes + 1);
}
size_t zstd_encoding_bytes(int level, size_t range_bytes) {
  return ZSTD_estimateCCtxSize_usingCParams(ZSTD_getCParams(level, range_bytes, 0)) + zstd_range_bound(range_bytes);
}

ZstdCoder::ZstdCoder(Executor& executor) : executor_(executor), contexts_(std::make_unique<Contexts>()) {}
ZstdCoder::~ZstdCoder() = default;

std::string ZstdCoder::description() const {
  return "cpu, " + plural(executor_.thread_count(), "thread") + ", " + libzstd_name();
}

void ZstdCoder::compress(std::span<CoderItem> items, int level, bool has_checksum) {
  executor_.for_each(items.size(), [&](size_t i, unsigned) {
    CoderItem& item = items[i];
    const ContextPool<RangeEncoder>::Taken with(contexts_->encoders);
    ZSTD_CCtx* const context = with->context.get();
    ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, has_checksum);
    item.output_bytes =
        ZSTD_compress2(context, item.output.data(), item.output.size(), item.input.data(), item.input.size());
    finish(item, item.output_bytes);
  });
}

void ZstdCoder::decompress(std::span<CoderItem> items) {
  executor_.for_each(items.size(), [&](size_t i, unsigned) {
    CoderItem& item = items[i];
    const ContextPool<FrameDecoder>::Taken with(contexts_->decoders);
    item.output_bytes = ZSTD_decompressDCtx(with->context.get(), item.output.data(), item.output.size(),
                                            item.input.data(), item.input.size());
    finish(item, item.output_bytes);
    if (item.input.empty()) item.status = CoderItem::Status::damaged;  // libzstd: no frame, no content
  });
}

Result<void> ZstdCoder::encode(std::span<BlockToEncode> ranges, int level) {
  std::atomic<size_t> failed{0};
  executor_.for_each(ranges.size(), [&](size_t i, unsigned) {
    const ContextPool<RangeEncoder>::Taken with(contexts_->encoders);
    const size_t code = encode_range(*with, ranges[i].raw, level);
    if (ZSTD_isError(code)) {
      throw_without_memory(code);
      failed = code;
    } else {
      ranges[i].coded.assign(with->room.begin(), with->room.begin() + static_cast<ptrdiff_t>(code));
    }
  });
  if (failed == 0) return {};
  return fail(std::string("libzstd cannot compress: ") + ZSTD_getErrorName(failed));
}

void ZstdCoder::decode_frames(std::span<ZstdPart* const> frames, unsigned at_a_time) {
  std::atomic<size_t> next{0};
  executor_.for_each(std::min<size_t>(frames.size(), at_a_time), [&](size_t, unsigned) {
    const ContextPool<FrameDecoder>::Taken with(contexts_->decoders);
    for (size_t i = next++; i < frames.size(); i = next++) decode_frame(with->context.get(), *frames[i]);
  });
}

void ZstdCoder::decode_next(ZstdPart& part) {
  if (!contexts_->stream) contexts_->stream.emplace();
  ZSTD_DCtx* const context = contexts_->stream->context.get();
  Bytes rest = part.stored;
  const auto take = [&](size_t count) {
    const Bytes taken = rest.first(count);
    rest = rest.subspan(count);
    return taken;
  };
  if (part.header_bytes != 0) {
    ZSTD_DCtx_reset(context, ZSTD_reset_session_only);
    if (!feed(context, part, take(part.header_bytes), nullptr)) return;
  }
  for (const ZstdBlock& block : part.blocks)
    if (!feed(context, part, take(block.stored_bytes), &block)) return;
  feed(context, part, rest, nullptr);
}

size_t ZstdCoder::frame_decoding_bytes() { return ZSTD_estimateDCtxSize(); }
size_t ZstdCoder::part_decoding_bytes(const format::ZstdFrameHeader& header) {
  return ZSTD_estimateDStreamSize(static_cast<size_t>(header.window_bytes));
}

}  // namespace ptxkit::codec
