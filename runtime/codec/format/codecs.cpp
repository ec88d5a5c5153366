// Lookups in the table that codecs.def generates.
#include "runtime/codec/format/codecs.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <ranges>
#include <set>
#include <system_error>
#include <tuple>

#include <fmt/format.h>

#include "support/check.hpp"

namespace ptxkit::format {
namespace {

constexpr PtzCodecRow kCodecs[] = {
#define PTZ_CODEC(enumerator, number, name, model, coder, block_bits, summary) \
  {PtzCodec::enumerator, name, PtzModel::model, PtzCoder::coder, block_bits, summary},
#include "runtime/codec/format/codecs.def"
};

static_assert(
    std::ranges::all_of(kCodecs,
                        [](const PtzCodecRow& row) {
                          return row.model != PtzModel::bwt || row.coder == PtzCoder::rans;
                        }),
    "bbw_block.cpp and bbw_pipeline.cpp code every stream with rANS: teach them the coder of the new row first");

// Pinned: bits 2 and 3 of the header's byte of options are an index of the first list, bits 0 and 1 of the second.
constexpr std::array<uint32_t, 3> kLanes = {4, 8, 32};
constexpr std::array<uint32_t, 4> kChunkBytes = {1u << 10, 4u << 10, 8u << 10, 16u << 10};
constexpr uint8_t kChunkedFlag = 1u << 4;

template <size_t Count>
std::optional<size_t> index_in(const std::array<uint32_t, Count>& values, uint32_t value) {
  const auto found = std::ranges::find(values, value);
  return found == values.end() ? std::nullopt : std::optional(static_cast<size_t>(found - values.begin()));
}

std::optional<uint32_t> number_in(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

struct Dtype {
  std::string_view name;  // of NumPy, ml_dtypes and PyTorch
  Elements elements;
};
// The first name of each kind of elements is the one that name_of() gives.
constexpr Dtype kDtypes[] = {
    {"bytes", Elements::bytes},       {"bfloat16", Elements::bfloat16},   {"float16", Elements::float16},
    {"float32", Elements::float32},   {"float8_e4m3fn", Elements::bytes}, {"float8_e4m3", Elements::bytes},
    {"float8_e5m2", Elements::bytes}, {"int8", Elements::bytes},          {"uint8", Elements::bytes},
    {"int16", Elements::stride2},     {"uint16", Elements::stride2},      {"int32", Elements::stride4},
    {"uint32", Elements::stride4},    {"int64", Elements::stride8},       {"uint64", Elements::stride8},
    {"float64", Elements::stride8},   {"complex64", Elements::stride8},
};
struct Stride {
  std::string_view bytes;
  Elements elements;
};
constexpr Stride kStrides[] = {
    {"1", Elements::bytes}, {"2", Elements::stride2}, {"4", Elements::stride4}, {"8", Elements::stride8}};

// An option such as "lanes=8", cut at the equals sign.
struct Option {
  explicit Option(std::string_view of)
      : text(of), name(of.substr(0, of.find('='))), value(of.substr(std::min(name.size() + 1, of.size()))) {}
  std::string_view text, name, value;
};

// "dtype=bfloat16" or "stride=4". Returns what is wrong with it, or an empty string.
std::string read_option(const Option& option, Elements& elements) {
  if (option.name == "dtype") {
    const auto* const found = std::ranges::find(kDtypes, option.value, &Dtype::name);
    if (found == std::end(kDtypes)) {
      std::string names;
      for (const Dtype& each : kDtypes) names.append(names.empty() ? "" : ", ").append(each.name);
      return fmt::format("expected dtype= one of {}, found '{}'", names, option.text);
    }
    elements = found->elements;
    return "";
  }
  if (option.name == "stride") {
    const auto* const found = std::ranges::find(kStrides, option.value, &Stride::bytes);
    if (found == std::end(kStrides)) return fmt::format("expected stride=1, 2, 4 or 8, found '{}'", option.text);
    elements = found->elements;
    return "";
  }
  return fmt::format("expected the option dtype= or stride=, found '{}'", option.text);
}

// "lanes=8" or "chunk=4K". Returns what is wrong with it, or an empty string.
std::string read_option(const Option& option, ChunkedRans& form) {
  if (option.name == "lanes") {
    form.lanes = number_in(option.value).value_or(0);
    return index_in(kLanes, form.lanes) ? ""
                                        : fmt::format("expected lanes=4, lanes=8 or lanes=32, found '{}'", option.text);
  }
  if (option.name == "chunk") {
    const bool has_unit = option.value.ends_with('K') || option.value.ends_with('k');
    const uint32_t kibibytes = has_unit ? number_in(option.value.substr(0, option.value.size() - 1)).value_or(0) : 0;
    form.chunk_bytes = kibibytes <= 16 ? kibibytes << 10 : 0;
    return index_in(kChunkBytes, form.chunk_bytes)
               ? ""
               : fmt::format("expected chunk=1K, chunk=4K, chunk=8K or chunk=16K, found '{}'", option.text);
  }
  return fmt::format("expected the options lanes= and chunk=, found '{}'", option.text);
}

}  // namespace

std::span<const PtzCodecRow> ptz_codecs() { return kCodecs; }

const PtzCodecRow* find_ptz_codec(std::string_view name) {
  const auto* const found = std::ranges::find(kCodecs, name, &PtzCodecRow::name);
  return found == std::end(kCodecs) ? nullptr : found;
}

const PtzCodecRow* find_ptz_codec(uint8_t number) {
  const auto* const found = std::ranges::find(kCodecs, static_cast<PtzCodec>(number), &PtzCodecRow::codec);
  return found == std::end(kCodecs) ? nullptr : found;
}

const PtzCodecRow& row_of(const PtzCoding& coding) {
  const PtzCodecRow* const row = find_ptz_codec(static_cast<uint8_t>(coding.codec));
  PTXKIT_CHECK(row != nullptr, "a header with another codec is refused");
  return *row;
}

std::string ptz_codec_names() {
  std::string names;
  for (const PtzCodecRow& row : kCodecs) names.append(names.empty() ? "" : ", ").append(row.name);
  return names;
}

Result<PtzCoding> parse_ptz_coding(std::string_view text) {
  const size_t colon = text.find(':');
  const PtzCodecRow* const row = find_ptz_codec(text.substr(0, colon));
  if (row == nullptr) return fail(fmt::format("expected {}, found '{}'", ptz_codec_names(), text.substr(0, colon)));
  if (colon == text.npos) return row->codec;
  if (!row->has_chunked_form() && !row->has_elements())
    return fail(fmt::format("{} has no options, found '{}'", row->name, text.substr(colon)));
  PtzCoding coding(row->codec);
  if (row->has_chunked_form()) coding.chunked.emplace();
  std::set<std::string_view> seen;
  std::string_view left = text.substr(colon + 1);
  for (bool more = true; more;) {
    const Option option(left.substr(0, left.find(',')));
    const std::string wrong =
        coding.chunked ? read_option(option, *coding.chunked) : read_option(option, coding.elements);
    if (!wrong.empty()) return fail(fmt::format("{}: {}", row->name, wrong));
    if (!seen.insert(option.name).second)
      return fail(fmt::format("{}: expected {}= once, found '{}'", row->name, option.name, text));
    more = option.text.size() != left.size();
    if (more) left.remove_prefix(option.text.size() + 1);
  }
  if (row->has_elements() && seen.size() > 1)
    return fail(fmt::format("{}: dtype= and stride= exclude each other, found '{}'", row->name, text));
  return coding;
}

std::string name_of(const PtzCoding& coding) {
  std::string name(row_of(coding).name);
  if (coding.chunked)
    name += fmt::format(":lanes={},chunk={}K", coding.chunked->lanes, coding.chunked->chunk_bytes >> 10);
  if (!row_of(coding).has_elements() || coding.elements == Elements::bytes) return name;
  if (const auto* const stride = std::ranges::find(kStrides, coding.elements, &Stride::elements);
      stride != std::end(kStrides)) {
    return fmt::format("{}:stride={}", name, stride->bytes);
  }
  return fmt::format("{}:dtype={}", name, std::ranges::find(kDtypes, coding.elements, &Dtype::elements)->name);
}

std::vector<PtzCoding> ptz_codings(PtzCodec codec) {
  std::vector<PtzCoding> all{codec};
  if (row_of(codec).has_elements()) {
    for (auto each = static_cast<uint8_t>(Elements::bytes) + 1; each <= static_cast<uint8_t>(Elements::stride8); ++each)
      all.emplace_back(codec, static_cast<Elements>(each));
  }
  if (!row_of(codec).has_chunked_form()) return all;
  for (const uint32_t lanes : kLanes)
    for (const uint32_t chunk_bytes : kChunkBytes) all.emplace_back(codec, ChunkedRans{lanes, chunk_bytes});
  return all;
}

uint8_t option_byte(const PtzCoding& coding) {
  if (row_of(coding).has_elements()) return static_cast<uint8_t>(coding.elements);
  if (!coding.chunked) return 0;
  const auto lanes = index_in(kLanes, coding.chunked->lanes),
             chunk = index_in(kChunkBytes, coding.chunked->chunk_bytes);
  PTXKIT_CHECK(lanes && chunk && row_of(coding).has_chunked_form(), "the codec has these options");
  return static_cast<uint8_t>(kChunkedFlag | *lanes << 2 | *chunk);
}

std::optional<PtzCoding> read_ptz_coding(uint8_t codec, uint8_t options) {
  const PtzCodecRow* const row = find_ptz_codec(codec);
  if (row == nullptr) return std::nullopt;
  for (const PtzCoding& coding : ptz_codings(row->codec))
    if (option_byte(coding) == options) return coding;
  return std::nullopt;
}

}  // namespace ptxkit::format
