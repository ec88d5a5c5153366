// Lookups in the table that codecs.def generates.
#include "runtime/codec/format/codecs.hpp"

#include <algorithm>

#include "support/check.hpp"

namespace ptxkit::format {
namespace {

constexpr PtzCodecRow kCodecs[] = {
#define PTZ_CODEC(enumerator, number, name, model, coder, block_bits, summary) \
  {PtzCodec::enumerator, name, PtzModel::model, PtzCoder::coder, block_bits, summary},
#include "runtime/codec/format/codecs.def"
};

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

const PtzCodecRow& row_of(PtzCodec codec) {
  const PtzCodecRow* const row = find_ptz_codec(static_cast<uint8_t>(codec));
  PTXKIT_CHECK(row != nullptr, "a header with another codec is refused");
  return *row;
}

std::string ptz_codec_names() {
  std::string names;
  for (const PtzCodecRow& row : kCodecs) names.append(names.empty() ? "" : ", ").append(row.name);
  return names;
}

}  // namespace ptxkit::format
