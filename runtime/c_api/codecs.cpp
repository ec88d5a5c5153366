#include "runtime/c_api/codecs.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <lz4.h>

#include "kernels/typed/typed_format.hpp"
#include "kernels/zstd/zstd_decode_format.hpp"
#include "runtime/codec/cpu/zstd_coder.hpp"
#include "runtime/codec/format/gzip_member.hpp"
#include "support/suggest.hpp"

namespace ptxkit::c_api {
namespace {

constexpr ptxkit_codec kFirstPtz = 256;
static_assert(PTXKIT_CODEC_RANS == kFirstPtz + static_cast<uint8_t>(format::PtzCodec::rans));

// What others define, and libraries of others code on the CPU.
struct StandardRow {
  ptxkit_codec codec;
  Coding::Kind kind;
  const char* name;
  const char* extension;
  codec::DeflateWrapper wrapper;
  bool is_stream;  // whether there are files of it
};
constexpr StandardRow kStandard[] = {
    {PTXKIT_CODEC_ZSTD, Coding::Kind::zstd, "zstd", ".zst", {}, true},
    {PTXKIT_CODEC_GZIP, Coding::Kind::deflate, "gzip", ".gz", codec::DeflateWrapper::gzip, true},
    {PTXKIT_CODEC_ZLIB, Coding::Kind::deflate, "zlib", ".zz", codec::DeflateWrapper::zlib, false},
    {PTXKIT_CODEC_DEFLATE, Coding::Kind::deflate, "deflate", "", codec::DeflateWrapper::none, false},
};

const StandardRow* standard_row(ptxkit_codec codec) {
  const auto* const row = std::ranges::find(kStandard, codec, &StandardRow::codec);
  return row == std::end(kStandard) ? nullptr : row;
}

const format::PtzCodecRow* ptz_row(ptxkit_codec codec) {
  if (codec < kFirstPtz || codec - kFirstPtz > 255) return nullptr;
  return format::find_ptz_codec(static_cast<uint8_t>(codec - kFirstPtz));
}

template <size_t kSize>
void copy_name(char (&into)[kSize], std::string_view name) {
  std::copy_n(name.begin(), std::min(name.size(), kSize - 1), into);
}

std::vector<std::string> names() {
  std::vector<std::string> all = {"lz4"};
  for (const format::PtzCodecRow& row : format::ptz_codecs()) all.emplace_back(row.name);
  for (const StandardRow& row : kStandard) all.emplace_back(row.name);
  return all;
}

Answer<> find(const char* name, ptxkit_codec* codec) {
  if (auto given = require(name, "name"); !given) return given;
  if (auto given = require(codec, "codec"); !given) return given;
  if (std::string_view(name) == "lz4") {
    *codec = PTXKIT_CODEC_LZ4;
    return {};
  }
  if (const format::PtzCodecRow* const row = format::find_ptz_codec(name)) {
    *codec = kFirstPtz + static_cast<uint8_t>(row->codec);
    return {};
  }
  for (const StandardRow& row : kStandard) {
    if (std::string_view(name) != row.name) continue;
    *codec = row.codec;
    return {};
  }
  return refuse(PTXKIT_INVALID_VALUE, fmt::format("there is no codec '{}', expected {}{}", name,
                                                  fmt::join(names(), ", "), did_you_mean(name, names())));
}

}  // namespace

Answer<ptxkit_codec_info> info_of(ptxkit_codec codec) {
  ptxkit_codec_info info{};
  info.struct_bytes = sizeof info;
  info.codec = codec;
  info.least_level = 1;
  info.input_alignment = 1;
  info.operations = PTXKIT_CAN_HOST_BATCH | PTXKIT_CAN_STREAM;
  if (codec == PTXKIT_CODEC_LZ4) {
    copy_name(info.name, "lz4");
    copy_name(info.extension, ".lz4");
    info.framings = 1u << PTXKIT_FRAMING_RAW | 1u << PTXKIT_FRAMING_FRAME | 1u << PTXKIT_FRAMING_NUMCODECS |
                    1u << PTXKIT_FRAMING_HDF5 | 1u << PTXKIT_FRAMING_STORED;
    info.greatest_level = 2;
    info.default_level = 1;
    info.default_block_bytes = 4u << 20;
    info.largest_host_item = LZ4_MAX_INPUT_SIZE;
    info.operations |= PTXKIT_CAN_DEVICE_BATCH | PTXKIT_CAN_DEVICE_DECOMPRESS;
    info.largest_device_item = kernels::kMaxBatchRawBytes;
    info.input_alignment = kernels::kStrideUnitBytes;
    return info;
  }
  if (codec == PTXKIT_CODEC_RANS) {
    copy_name(info.name, ptz_row(codec)->name);
    copy_name(info.extension, ".ptz");
    info.operations |= PTXKIT_CAN_DEVICE_BATCH | PTXKIT_CAN_DEVICE_DECOMPRESS;
    info.framings = 1u << PTXKIT_FRAMING_RAW | 1u << PTXKIT_FRAMING_FRAME;
    info.default_block_bytes = 1u << ptz_row(codec)->block_bits;
    info.greatest_level = 1;
    info.default_level = 1;
    info.largest_host_item = kernels::kMaxBatchRawBytes;
    info.largest_device_item = kernels::kMaxBatchRawBytes;
    info.input_alignment = kernels::kTypedAlignment;
    return info;
  }
  if (const format::PtzCodecRow* const row = ptz_row(codec)) {
    copy_name(info.name, row->name);
    copy_name(info.extension, ".ptz");
    info.framings = 1u << PTXKIT_FRAMING_FRAME;
    info.greatest_level = row->has_match_search() ? 2 : 1;
    info.default_level = info.greatest_level;
    info.default_block_bytes = 1u << row->block_bits;
    info.largest_host_item = uint64_t{1} << 40;
    return info;
  }
  if (const StandardRow* const row = standard_row(codec)) {
    const bool is_zstd = row->kind == Coding::Kind::zstd;
    copy_name(info.name, row->name);
    copy_name(info.extension, row->extension);
    info.framings =
        1u << (row->wrapper == codec::DeflateWrapper::none && !is_zstd ? PTXKIT_FRAMING_RAW : PTXKIT_FRAMING_FRAME);
    if (!row->is_stream) info.operations = PTXKIT_CAN_HOST_BATCH;
    info.least_level = is_zstd ? codec::least_zstd_level() : codec::kLeastDeflateLevel;
    info.greatest_level = is_zstd ? codec::greatest_zstd_level() : codec::kGreatestDeflateLevel;
    info.default_level = is_zstd ? codec::default_zstd_level() : codec::kUsualDeflateLevel;
    info.default_block_bytes = is_zstd ? format::kZstdBlockBytes : format::kBgzfRawBytes;
    info.largest_host_item = uint64_t{1} << 40;
    info.operations |= PTXKIT_CAN_DEVICE_BATCH | PTXKIT_CAN_DEVICE_DECOMPRESS;
    info.largest_device_item = is_zstd ? kernels::kZstdMaxItemBytes : kernels::kMaxChunkBytes;
    info.input_alignment = kernels::kStrideUnitBytes;
    return info;
  }
  return refuse(PTXKIT_INVALID_VALUE, "there is no codec " + std::to_string(codec),
                "ptxkit_codec_at() lists the codecs");
}

Answer<Coding> coding_of(ptxkit_codec codec, int32_t level) {
  const auto info = info_of(codec);
  if (!info) return tl::unexpected(info.error());
  if (level == 0) level = info->default_level;
  if (level < info->least_level || level > info->greatest_level) {
    return refuse(PTXKIT_INVALID_VALUE, std::string(info->name) + " has no level " + std::to_string(level) +
                                            ", expected " + std::to_string(info->least_level) + " to " +
                                            std::to_string(info->greatest_level) + ", or 0 for the default");
  }
  Coding coding;
  coding.level = level;
  if (const StandardRow* const row = standard_row(codec)) {
    coding.kind = row->kind;
    coding.wrapper = row->wrapper;
    return coding;
  }
  coding.ptz = ptz_row(codec);
  if (coding.ptz != nullptr) coding.kind = codec == PTXKIT_CODEC_RANS ? Coding::Kind::typed : Coding::Kind::ptz;
  if (level != info->default_level) coding.search = codec::MatchSearch::tables;
  coding.is_high = coding.is_lz4() && level == 2;
  return coding;
}

format::PtzHeader Coding::ptz_header() const {
  const auto coding = ptz->has_elements() ? format::PtzCoding(ptz->codec, elements) : format::PtzCoding(ptz->codec);
  return {coding, ptz->block_bits};
}

Answer<std::optional<format::Elements>> elements_of(ptxkit_codec codec, uint32_t dtype, uint32_t stride) {
  using format::Elements;
  if (codec != PTXKIT_CODEC_RANS) {
    if (dtype == 0 && stride == 0) return std::nullopt;
    return refuse(PTXKIT_INVALID_VALUE,
                  fmt::format("options: codec {} has no dtype and no stride, found {} and {}", codec, dtype, stride),
                  "set them to 0, or the codec to PTXKIT_CODEC_RANS");
  }
  constexpr Elements kOfNumbers[] = {Elements::bytes, Elements::bfloat16, Elements::float16, Elements::float32,
                                     Elements::bytes, Elements::bytes,    Elements::bytes};
  if (dtype >= std::size(kOfNumbers)) {
    return refuse(PTXKIT_INVALID_VALUE, fmt::format("options: there is no dtype {}", dtype),
                  "ptxkit_dtype has the numbers");
  }
  if (dtype != PTXKIT_DTYPE_BYTES && stride != 0) {
    return refuse(PTXKIT_INVALID_VALUE, fmt::format("options: dtype {} has no stride, found {}", dtype, stride),
                  "a stride is of PTXKIT_DTYPE_BYTES alone");
  }
  switch (stride) {
    case 0:
    case 1:
      return kOfNumbers[dtype];
    case 2:
      return Elements::stride2;
    case 4:
      return Elements::stride4;
    case 8:
      return Elements::stride8;
    default:
      return refuse(PTXKIT_INVALID_VALUE,
                    fmt::format("options: there is no stride of {} bytes, expected 1, 2, 4 or 8", stride));
  }
}

}  // namespace ptxkit::c_api

using namespace ptxkit;

size_t ptxkit_codec_count(void) { return 1 + format::ptz_codecs().size() + std::size(c_api::kStandard); }

ptxkit_status ptxkit_codec_at(size_t index, ptxkit_codec* codec) {
  return c_api::call(__func__, [&]() -> c_api::Answer<> {
    if (auto given = c_api::require(codec, "codec"); !given) return given;
    const size_t count = ptxkit_codec_count();
    if (index >= count) {
      return c_api::refuse(PTXKIT_INVALID_VALUE,
                           "there is no codec at " + std::to_string(index) + " of " + std::to_string(count));
    }
    const auto ptz = format::ptz_codecs();
    *codec = index == 0            ? PTXKIT_CODEC_LZ4
             : index <= ptz.size() ? c_api::kFirstPtz + static_cast<uint8_t>(ptz[index - 1].codec)
                                   : c_api::kStandard[index - 1 - ptz.size()].codec;
    return {};
  });
}

ptxkit_status ptxkit_codec_find(const char* name, ptxkit_codec* codec) {
  return c_api::call(__func__, [&] { return c_api::find(name, codec); });
}

ptxkit_status ptxkit_codec_query(ptxkit_codec codec, ptxkit_codec_info* info) {
  return c_api::call(__func__, [&]() -> c_api::Answer<> {
    if (auto given = c_api::require(info, "info"); !given) return given;
    if (info->struct_bytes != sizeof *info) {
      return c_api::refuse(PTXKIT_INVALID_VALUE, "info: struct_bytes is " + std::to_string(info->struct_bytes) +
                                                     ", expected " + std::to_string(sizeof *info));
    }
    const auto answer = c_api::info_of(codec);
    if (!answer) return tl::unexpected(answer.error());
    *info = *answer;
    return {};
  });
}
