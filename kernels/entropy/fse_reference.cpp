// Tabled ANS (tANS). The states of a table of size L are L to 2L - 1; state L + p is at place p. A symbol of frequency
// f owns f places, found by stepping through the table; in ascending order they represent x = f to 2f - 1. To code a
// symbol in state X, the encoder emits low bits of X until f <= X < 2f, and goes to the place that represents the
// remaining X.
#include "kernels/entropy/fse_reference.hpp"

#include <algorithm>
#include <bit>

namespace ptxkit::kernels {
namespace {

class Coder {
 public:
  explicit Coder(const FseTable& table)
      : frequencies_(table.frequencies), accuracy_bits_(table.accuracy_bits), next_(size_t{1} << accuracy_bits_) {
    const auto state_count = static_cast<uint32_t>(next_.size());
    const auto symbols = spread_symbols(table);
    for (uint32_t s = 1; s < kSymbols; ++s) starts_[s] = starts_[s - 1] + frequencies_[s - 1];
    auto next = starts_;
    for (uint32_t place = 0; place < state_count; ++place) {
      next_[next[symbols[place]]++] = static_cast<uint16_t>(state_count + place);
    }
  }
  void begin() { state_ = 1u << accuracy_bits_; }
  template <class Emit>
  void symbol(uint8_t s, const Emit& emit) {
    const uint32_t frequency = frequencies_[s];
    auto count = static_cast<uint32_t>(std::countl_zero(frequency) - std::countl_zero(state_));
    if (state_ >> count < frequency) --count;
    emit(state_ & ((1u << count) - 1), count);
    state_ = next_[starts_[s] + (state_ >> count) - frequency];
  }
  template <class Emit>
  void end(const Emit& emit) {
    emit(state_ - (1u << accuracy_bits_), accuracy_bits_);
  }

 private:
  std::array<uint16_t, kSymbols> frequencies_;
  uint32_t accuracy_bits_;
  std::vector<uint16_t> next_;  // the state after a symbol, indexed by x
  std::array<uint32_t, kSymbols> starts_{};
  uint32_t state_ = 0;
};

}  // namespace

std::vector<uint8_t> spread_symbols(const FseTable& table) {
  const uint32_t state_count = 1u << table.accuracy_bits;
  std::vector<uint8_t> symbols(state_count);
  uint32_t place = 0;
  for (uint32_t s = 0; s < kSymbols; ++s) {
    for (uint32_t i = 0; i < table.frequencies[s]; ++i) {
      symbols[place] = static_cast<uint8_t>(s);
      place = (place + spread_step(state_count)) & (state_count - 1);
    }
  }
  return symbols;
}

TransformOutcome begin_fse(std::span<const uint8_t> src, std::span<uint8_t> dst, const FseOptions& options,
                           FseTable& table) {
  if (std::max(src.size(), dst.size()) > kMaxTransformBytes || src.size() > kMaxLanedBytes) {
    return {StreamStatus::item_too_large, 0};
  }
  if (options.accuracy_bits < kMinAccuracyBits || options.accuracy_bits > kMaxAccuracyBits) {
    return {StreamStatus::bad_option, 0};
  }
  if (dst.size() < kLanedHeaderBytes) return {StreamStatus::output_overrun, 0};
  write_u32(dst.data(), static_cast<uint32_t>(src.size()));
  if (src.empty()) return {StreamStatus::ok, kLanedHeaderBytes};

  const auto counts = count_bytes(src);
  const auto absent = static_cast<uint32_t>(std::count(counts.begin(), counts.end(), 0u));
  const auto needed = static_cast<uint32_t>(std::bit_width(kSymbols - absent - 1));
  table.accuracy_bits = std::max(options.accuracy_bits, needed);
  table.frequencies = normalise_frequencies(counts, table.accuracy_bits);
  const size_t sizes_at = kLanedHeaderBytes + 1 + table_bytes(table.frequencies);
  if (dst.size() < sizes_at) return {StreamStatus::output_overrun, 0};
  dst[kLanedHeaderBytes] = static_cast<uint8_t>(table.accuracy_bits);
  write_table(table.frequencies, dst.data() + kLanedHeaderBytes + 1);
  return {StreamStatus::ok, static_cast<uint32_t>(sizes_at)};
}

StreamStatus open_fse(std::span<const uint8_t> src, size_t room_bytes, FseStream& stream) {
  if (std::max(src.size(), room_bytes) > kMaxTransformBytes) return StreamStatus::item_too_large;
  if (src.size() < kLanedHeaderBytes) return StreamStatus::input_overrun;
  stream.raw_bytes = read_u32(src.data());
  if (stream.raw_bytes > room_bytes) return StreamStatus::output_overrun;
  if (stream.raw_bytes == 0) return src.size() == kLanedHeaderBytes ? StreamStatus::ok : StreamStatus::corrupt;
  if (src.size() == kLanedHeaderBytes) return StreamStatus::input_overrun;
  const uint32_t accuracy_bits = stream.table.accuracy_bits = src[kLanedHeaderBytes];
  if (accuracy_bits < kMinAccuracyBits || accuracy_bits > kMaxAccuracyBits) return StreamStatus::bad_table;
  switch (read_table(src.subspan(kLanedHeaderBytes + 1), 1u << accuracy_bits, stream.table.frequencies)) {
    case TableRead::good:
      break;
    case TableRead::cut_off:
      return StreamStatus::input_overrun;
    case TableRead::bad:
      return StreamStatus::bad_table;
  }
  return open_lanes(src, kLanedHeaderBytes + 1 + table_bytes(stream.table.frequencies), stream.lanes);
}

TransformOutcome fse_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst, const FseOptions& options) {
  FseTable table;
  const TransformOutcome begun = begin_fse(src, dst, options, table);
  if (begun.status != StreamStatus::ok || src.empty()) return begun;
  Coder coder(table);
  return write_lanes(src, dst, begun.size_bytes, coder);
}

TransformOutcome fse_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  FseStream stream;
  const StreamStatus status = open_fse(src, dst.size(), stream);
  if (status != StreamStatus::ok || stream.raw_bytes == 0) return {status, 0};
  struct Place {
    uint16_t base;
    uint8_t bits, symbol;
  };
  const uint32_t accuracy_bits = stream.table.accuracy_bits, state_count = 1u << accuracy_bits;
  std::vector<Place> places(state_count);
  const auto symbols = spread_symbols(stream.table);
  auto next = stream.table.frequencies;
  for (uint32_t place = 0; place < state_count; ++place) {
    const uint32_t x = next[symbols[place]]++;
    const uint32_t bits = accuracy_bits + 1 - static_cast<uint32_t>(std::bit_width(x));
    places[place] = {static_cast<uint16_t>((x << bits) - state_count), static_cast<uint8_t>(bits), symbols[place]};
  }
  auto lanes = readers_of(stream.lanes);
  std::array<uint32_t, kBitLanes> states;
  for (uint32_t lane = 0; lane < kBitLanes; ++lane) states[lane] = lanes[lane].read(accuracy_bits);
  for (size_t i = 0; i < stream.raw_bytes; ++i) {
    const Place place = places[states[i % kBitLanes]];
    dst[i] = place.symbol;
    states[i % kBitLanes] = place.base + lanes[i % kBitLanes].read(place.bits);
  }
  for (uint32_t lane = 0; lane < kBitLanes; ++lane) {
    if (states[lane] != 0 || !lanes[lane].is_at_end()) return {StreamStatus::corrupt, 0};
  }
  return {StreamStatus::ok, stream.raw_bytes};
}

}  // namespace ptxkit::kernels
