#include "runtime/codec/cpu/deflate_coder.hpp"

#include <algorithm>
#include <new>

#include <libdeflate.h>
#include <zlib.h>

#include "runtime/codec/cpu/context_pool.hpp"
#include "runtime/codec/format/gzip_member.hpp"
#include "support/check.hpp"
#include "support/plural.hpp"

namespace ptxkit::codec {
namespace {

// A compressor has one level.
struct Compressor {
  std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> of{nullptr, libdeflate_free_compressor};
  int level = 0;
  std::vector<uint8_t> room;

  libdeflate_compressor* for_level(int wanted) {
    if (!of || wanted != level) of.reset(libdeflate_alloc_compressor(level = wanted));
    if (!of) throw std::bad_alloc();
    return of.get();
  }
};
struct Decompressor {
  std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> of{nullptr,
                                                                                       libdeflate_free_decompressor};
  libdeflate_decompressor* get() {
    if (!of) of.reset(libdeflate_alloc_decompressor());
    if (!of) throw std::bad_alloc();
    return of.get();
  }
};

size_t compress_item(libdeflate_compressor* with, DeflateWrapper wrapper, const CoderItem& item) {
  const auto call = wrapper == DeflateWrapper::gzip   ? libdeflate_gzip_compress
                    : wrapper == DeflateWrapper::zlib ? libdeflate_zlib_compress
                                                      : libdeflate_deflate_compress;
  return call(with, item.input.data(), item.input.size(), item.output.data(), item.output.size());
}

CoderItem::Status status_of(libdeflate_result result) {
  switch (result) {
    case LIBDEFLATE_SUCCESS:
      return CoderItem::Status::ok;
    case LIBDEFLATE_INSUFFICIENT_SPACE:
      return CoderItem::Status::output_too_small;
    default:
      return CoderItem::Status::damaged;
  }
}

void decompress_item(libdeflate_decompressor* with, DeflateWrapper wrapper, CoderItem& item) {
  const auto call = wrapper == DeflateWrapper::gzip   ? libdeflate_gzip_decompress_ex
                    : wrapper == DeflateWrapper::zlib ? libdeflate_zlib_decompress_ex
                                                      : libdeflate_deflate_decompress_ex;
  size_t at = 0;
  item.output_bytes = 0;
  do {
    size_t consumed = 0, produced = 0;
    const MutableBytes room = item.output.subspan(item.output_bytes);
    item.status = status_of(
        call(with, item.input.data() + at, item.input.size() - at, room.data(), room.size(), &consumed, &produced));
    if (item.status != CoderItem::Status::ok) return;
    at += consumed;
    item.output_bytes += produced;
    // Zeros behind a gzip member are padding. Another member begins with another byte.
    const Bytes rest = item.input.subspan(at);
    if (wrapper == DeflateWrapper::gzip && std::ranges::all_of(rest, [](uint8_t byte) { return byte == 0; }))
      at = item.input.size();
  } while (at < item.input.size() && wrapper == DeflateWrapper::gzip);
  if (at != item.input.size()) item.status = CoderItem::Status::damaged;
}

}  // namespace

struct DeflateCoder::Contexts {
  ContextPool<Compressor> compressors;
  ContextPool<Decompressor> decompressors;
};

size_t deflate_bound(DeflateWrapper wrapper, size_t raw_bytes) {
  const auto bound = wrapper == DeflateWrapper::gzip   ? libdeflate_gzip_compress_bound
                     : wrapper == DeflateWrapper::zlib ? libdeflate_zlib_compress_bound
                                                       : libdeflate_deflate_compress_bound;
  return bound(nullptr, raw_bytes);  // of any compressor
}

// Measured with libdeflate 1.14: 0.7 MB up to level 9, 9 MB from level 10 on.
size_t deflating_bytes(int level) { return level < 10 ? 1u << 20 : 10u << 20; }

std::string libdeflate_name() { return "libdeflate " LIBDEFLATE_VERSION_STRING; }

DeflateCoder::DeflateCoder(Executor& executor) : executor_(executor), contexts_(std::make_unique<Contexts>()) {}
DeflateCoder::~DeflateCoder() = default;

std::string DeflateCoder::description() const {
  return "cpu, " + plural(executor_.thread_count(), "thread") + ", " + libdeflate_name();
}

void DeflateCoder::compress(std::span<CoderItem> items, DeflateWrapper wrapper, int level) {
  executor_.for_each(items.size(), [&](size_t i, unsigned) {
    const ContextPool<Compressor>::Taken with(contexts_->compressors);
    items[i].output_bytes = compress_item(with->for_level(level), wrapper, items[i]);
    items[i].status = items[i].output_bytes != 0 ? CoderItem::Status::ok : CoderItem::Status::output_too_small;
  });
}

void DeflateCoder::decompress(std::span<CoderItem> items, DeflateWrapper wrapper) {
  executor_.for_each(items.size(), [&](size_t i, unsigned) {
    const ContextPool<Decompressor>::Taken with(contexts_->decompressors);
    decompress_item(with->get(), wrapper, items[i]);
  });
}

void DeflateCoder::encode(std::span<BlockToEncode> members, int level) {
  executor_.for_each(members.size(), [&](size_t i, unsigned) {
    BlockToEncode& member = members[i];
    const ContextPool<Compressor>::Taken with(contexts_->compressors);
    with->room.resize(deflate_bound(DeflateWrapper::none, format::kBgzfRawBytes));
    const CoderItem item{member.raw, with->room};
    const size_t deflated = compress_item(with->for_level(level), DeflateWrapper::none, item);
    PTXKIT_CHECK(deflated != 0, "the room is as large as the bound");
    member.coded.clear();
    format::append_bgzf_member(Bytes(with->room).first(deflated), update_crc32(0, member.raw),
                               static_cast<uint32_t>(member.raw.size()), member.coded);
  });
}

void DeflateCoder::decode(std::span<DeflatedMember> members) {
  executor_.for_each(members.size(), [&](size_t i, unsigned) {
    DeflatedMember& member = members[i];
    const ContextPool<Decompressor>::Taken with(contexts_->decompressors);
    CoderItem item{member.deflated, member.room};
    decompress_item(with->get(), DeflateWrapper::none, item);
    member.is_damaged = item.status != CoderItem::Status::ok || item.output_bytes != member.room.size();
    member.is_bad_checksum = !member.is_damaged && update_crc32(0, member.room) != member.crc;
  });
}

uint32_t update_crc32(uint32_t crc, Bytes bytes) {
  return bytes.empty() ? crc : libdeflate_crc32(crc, bytes.data(), bytes.size());
}

struct Inflater::State {
  z_stream stream{};
};

Inflater::Inflater() : state_(std::make_unique<State>()) {
  constexpr int kRawWindowBits = -15;  // no wrapper
  if (inflateInit2(&state_->stream, kRawWindowBits) != Z_OK) throw std::bad_alloc();
}
Inflater::~Inflater() { inflateEnd(&state_->stream); }

void Inflater::begin() { inflateReset(&state_->stream); }

Inflater::Step Inflater::inflate(Bytes input, MutableBytes output) {
  z_stream& stream = state_->stream;
  constexpr size_t kMost = 1u << 30;  // zlib counts in 32 bits
  const size_t given = std::min(input.size(), kMost), room = std::min(output.size(), kMost);
  stream.next_in = const_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(given);
  stream.next_out = output.data();
  stream.avail_out = static_cast<uInt>(room);
  const int code = ::inflate(&stream, Z_NO_FLUSH);
  if (code == Z_MEM_ERROR) throw std::bad_alloc();
  Step step{given - stream.avail_in, room - stream.avail_out, code == Z_STREAM_END};
  if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
    step.fault = stream.msg != nullptr ? stream.msg : zError(code);
  return step;
}

}  // namespace ptxkit::codec
