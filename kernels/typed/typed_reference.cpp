// Typed rANS: elements are split into byte planes. A plane is coded word by word: lane l of 32 takes the words of four
// bytes number l, l + 32, ... of the plane, and in each row of 32 bytes the lanes that give up a word write it in the
// order of the lanes. The encoder goes forward and the decoder backward, so that words are written from an aligned
// address on.
#include "kernels/typed/typed_reference.hpp"

#include <algorithm>
#include <vector>

#include "kernels/entropy/little_endian.hpp"

namespace ptxkit::kernels {
namespace {

constexpr uint32_t kRow = kTypedLanes;
constexpr uint32_t kUnitRows = kTypedUnit / kRow;

// The byte of the plane that row `row` of a part has in lane `lane`.
constexpr size_t place_of(size_t row, size_t lane) {
  return row / kUnitRows * kTypedUnit + lane * kUnitRows + row % kUnitRows;
}

// Turns the nine highest bits of an element, sign and exponent, left by `count` bits.
uint64_t turn_sign(uint64_t element, const TypedShape& shape, uint32_t count) {
  if (!shape.moves_sign) return element;
  const uint32_t shift = 8 * shape.element_bytes - 9;
  const uint64_t top = element >> shift;
  return ((top << count | top >> (9 - count)) & 0x1FF) << shift | (element & ((uint64_t{1} << shift) - 1));
}

uint64_t load_element(const uint8_t* from, const TypedShape& shape) {
  uint64_t element = 0;
  for (uint32_t b = 0; b < shape.element_bytes; ++b) element |= uint64_t{from[b]} << 8 * b;
  return turn_sign(element, shape, 1);
}

void store_element(uint8_t* to, uint64_t element, const TypedShape& shape) {
  element = turn_sign(element, shape, 8);
  for (uint32_t b = 0; b < shape.element_bytes; ++b) to[b] = static_cast<uint8_t>(element >> 8 * b);
}

// The states and words of a part.
struct Part {
  std::array<uint32_t, kTypedLanes> states;
  std::vector<uint16_t> words;
};

// Returns false if the words would reach elements that are not coded yet.
bool encode_part(std::span<const uint8_t> plane, const std::array<uint16_t, kSymbols>& frequencies,
                 const std::array<uint32_t, kSymbols>& starts, Part& part) {
  part.states.fill(kTypedLow);
  part.words.clear();
  for (size_t row = 0; row < plane.size() / kRow; ++row) {
    if (row % kUnitRows == 0 && 2 * part.words.size() + 2 * kTypedUnit > row * kRow + kTypedUnit + kTypedSlackBytes) {
      return false;
    }
    for (size_t lane = 0; lane < kTypedLanes; ++lane) {
      const uint8_t symbol = plane[place_of(row, lane)];
      const uint32_t frequency = frequencies[symbol];
      uint32_t& state = part.states[lane];
      if (state >= frequency << (31 - kTypedScaleBits)) {
        part.words.push_back(static_cast<uint16_t>(state));
        state >>= 16;
      }
      state = state / frequency * kTypedScale + state % frequency + starts[symbol];
    }
  }
  return true;
}

struct Slot {
  uint16_t frequency, offset;
  uint8_t symbol;
};

bool decode_part(const uint8_t* from, uint32_t word_count, const std::vector<Slot>& slots, std::span<uint8_t> plane) {
  std::array<uint32_t, kTypedLanes> states;
  bool good = true;
  for (uint32_t lane = 0; lane < kTypedLanes; ++lane) {
    states[lane] = read_u32(from + size_t{4} * lane);
    good &= states[lane] >= kTypedLow && states[lane] < kTypedLow << 16;
  }
  const uint8_t* const words = from + kTypedStatesBytes;
  uint32_t next = word_count;
  for (size_t row = plane.size() / kRow; good && row-- != 0;) {
    std::array<bool, kTypedLanes> needs{};
    for (size_t lane = 0; lane < kTypedLanes; ++lane) {
      const Slot slot = slots[states[lane] % kTypedScale];
      plane[place_of(row, lane)] = slot.symbol;
      states[lane] = slot.frequency * (states[lane] >> kTypedScaleBits) + slot.offset;
      needs[lane] = states[lane] < kTypedLow;
    }
    const auto needed = static_cast<uint32_t>(std::count(needs.begin(), needs.end(), true));
    if (needed > next) return false;
    next -= needed;
    for (uint32_t lane = 0, word = next; lane < kTypedLanes; ++lane) {
      if (needs[lane]) states[lane] = states[lane] << 16 | read_u16(words + size_t{2} * word++);
    }
  }
  for (const uint32_t state : states) good &= state == kTypedLow;
  return good && next == 0;
}

// The part of a plane that belongs to part number `part`.
template <class Byte>
std::span<Byte> part_of(std::span<Byte> plane, uint32_t part) {
  const size_t begin = std::min<size_t>(plane.size(), size_t{part} * kTypedPart);
  return plane.subspan(begin, std::min<size_t>(kTypedPart, plane.size() - begin));
}

// Appends the coded form of a plane, of which the length is a multiple of kTypedAlignment.
void encode_plane(std::span<const uint8_t> plane, std::vector<uint8_t>& to) {
  const auto counts = count_bytes(plane);
  if (counts[plane[0]] == plane.size()) {
    to.push_back(plane[0]);
    to.resize(to.size() + kTypedAlignment - 1);
    return;
  }
  const auto frequencies = typed_frequencies(counts, static_cast<uint32_t>(plane.size()));
  std::array<uint32_t, kSymbols> starts{};
  for (uint32_t s = 1; s < kSymbols; ++s) starts[s] = starts[s - 1] + frequencies[s - 1];
  std::vector<uint8_t> coded(typed_aligned(kTypedWordsBytes + table_bytes(frequencies)));
  write_table(frequencies, coded.data() + kTypedWordsBytes);
  Part part;
  for (uint32_t p = 0; p < kTypedParts && size_t{p} * kTypedPart < plane.size(); ++p) {
    if (!encode_part(part_of(plane, p), frequencies, starts, part)) {
      to.insert(to.end(), plane.begin(), plane.end());
      return;
    }
    write_u32(coded.data() + size_t{4} * p, static_cast<uint32_t>(part.words.size()));
    size_t at = coded.size();
    coded.resize(at + typed_aligned(kTypedStatesBytes + 2 * part.words.size()));
    for (const uint32_t state : part.states) {
      write_u32(coded.data() + at, state);
      at += 4;
    }
    for (const uint16_t word : part.words) {
      write_u16(coded.data() + at, word);
      at += 2;
    }
  }
  if (coded.size() < plane.size()) {
    to.insert(to.end(), coded.begin(), coded.end());
  } else {
    to.insert(to.end(), plane.begin(), plane.end());
  }
}

bool decode_plane(std::span<const uint8_t> from, std::span<uint8_t> plane) {
  if (from.size() == plane.size()) {
    std::copy(from.begin(), from.end(), plane.begin());
    return true;
  }
  if (from.size() == kTypedAlignment) {
    std::fill(plane.begin(), plane.end(), from[0]);
    return true;
  }
  if (from.size() < kTypedWordsBytes) return false;
  std::array<uint16_t, kSymbols> frequencies;
  if (read_table(from.subspan(kTypedWordsBytes), kTypedScale, frequencies) != TableRead::good) return false;
  if (std::count(frequencies.begin(), frequencies.end(), kTypedScale) != 0) return false;
  std::vector<Slot> slots;
  slots.reserve(kTypedScale);
  for (uint32_t s = 0; s < kSymbols; ++s) {
    for (uint16_t i = 0; i < frequencies[s]; ++i) slots.push_back({frequencies[s], i, static_cast<uint8_t>(s)});
  }
  std::array<size_t, kTypedParts + 1> begins{};
  begins[0] = typed_aligned(kTypedWordsBytes + table_bytes(frequencies));
  for (uint32_t p = 0; p < kTypedParts; ++p) {
    const uint32_t words = read_u32(from.data() + size_t{4} * p);
    const size_t elements = part_of(plane, p).size();
    if (words > elements) return false;
    begins[p + 1] = begins[p] + (elements == 0 ? 0 : typed_aligned(kTypedStatesBytes + 2 * size_t{words}));
  }
  if (begins[kTypedParts] != from.size()) return false;
  for (uint32_t p = 0; p < kTypedParts; ++p) {
    const auto part = part_of(plane, p);
    if (part.empty()) continue;
    if (!decode_part(from.data() + begins[p], read_u32(from.data() + size_t{4} * p), slots, part)) return false;
  }
  return true;
}

}  // namespace

std::array<uint16_t, kSymbols> typed_frequencies(const std::array<uint32_t, kSymbols>& counts, uint32_t total) {
  std::array<uint16_t, kSymbols> frequencies{};
  uint32_t sum = 0;
  for (uint32_t s = 0; s < kSymbols; ++s) {
    if (counts[s] == 0) continue;
    frequencies[s] = static_cast<uint16_t>(std::max((counts[s] * kTypedScale + total / 2) / total, 1u));
    sum += frequencies[s];
  }
  while (sum != kTypedScale) {
    auto& largest = *std::max_element(frequencies.begin(), frequencies.end());
    const int32_t change = static_cast<int32_t>(kTypedScale) - static_cast<int32_t>(sum);
    const int32_t applied = std::max(change, -(largest / 2));
    largest = static_cast<uint16_t>(largest + applied);
    sum += static_cast<uint32_t>(applied);
  }
  return frequencies;
}

TypedOutcome typed_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst, TypedLayout layout) {
  if (src.size() > kMaxBatchRawBytes) return {BatchStatus::too_large, 0};
  if (dst.size() < typed_bound(src.size(), layout)) return {BatchStatus::output_too_small, 0};
  const TypedShape shape = typed_shape(layout);
  const TypedPlan plan = typed_plan(src.size(), layout);
  std::fill_n(dst.begin(), plan.coded_at, uint8_t{0});
  write_u32(dst.data(), kTypedMagic);
  dst[4] = static_cast<uint8_t>(layout);
  write_u32(dst.data() + 8, static_cast<uint32_t>(src.size()));

  const uint32_t copied_planes = shape.element_bytes - shape.coded_planes;
  uint8_t *end_at = dst.data() + kTypedHeaderBytes, *copied = dst.data() + plan.copied_at;
  std::vector<uint8_t> plane, coded;
  uint64_t elements_left = plan.units * kTypedUnit, end = 0;
  for (const uint8_t* from = src.data(); elements_left != 0;) {
    const size_t elements = std::min<uint64_t>(kTypedMember, elements_left);
    plane.resize(elements);
    for (uint32_t b = 0; b < shape.element_bytes; ++b) {
      for (size_t i = 0; i < elements; ++i) {
        plane[i] = static_cast<uint8_t>(load_element(from + i * shape.element_bytes, shape) >> 8 * b);
      }
      if (b < copied_planes) {
        copied = std::copy(plane.begin(), plane.end(), copied);
        continue;
      }
      coded.clear();
      encode_plane(plane, coded);
      std::copy(coded.begin(), coded.end(), dst.data() + plan.coded_at + end * kTypedAlignment);
      end += coded.size() / kTypedAlignment;
      write_u32(end_at, static_cast<uint32_t>(end));
      end_at += 4;
    }
    from += elements * shape.element_bytes;
    elements_left -= elements;
  }
  std::copy(src.end() - plan.tail_bytes, src.end(), dst.data() + plan.tail_at);
  return {BatchStatus::ok, plan.coded_at + end * kTypedAlignment};
}

BatchStatus open_typed(std::span<const uint8_t> src, TypedItem& item) {
  if (src.size() > kMaxBatchCodedBytes) return BatchStatus::too_large;
  if (src.size() < kTypedHeaderBytes) return BatchStatus::cannot_decompress;
  if (read_u32(src.data()) != kTypedMagic) return BatchStatus::cannot_decompress;
  const uint32_t layout = read_u32(src.data() + 4);
  if (!is_typed_layout(layout)) return BatchStatus::unsupported;
  item.layout = static_cast<TypedLayout>(layout);
  item.raw_bytes = read_u32(src.data() + 8);
  if (read_u32(src.data() + 12) != 0 || item.raw_bytes > kMaxBatchRawBytes) return BatchStatus::cannot_decompress;
  item.plan = typed_plan(item.raw_bytes, item.layout);
  if (src.size() < item.plan.coded_at) return BatchStatus::cannot_decompress;
  return BatchStatus::ok;
}

TypedOutcome typed_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  TypedItem item;
  if (const auto status = open_typed(src, item); status != BatchStatus::ok) return {status, 0};
  if (item.raw_bytes > dst.size()) return {BatchStatus::output_too_small, 0};
  const TypedShape shape = typed_shape(item.layout);
  const uint32_t copied_planes = shape.element_bytes - shape.coded_planes;
  const uint64_t entries = item.plan.members * shape.coded_planes;
  const uint64_t coded_bytes = src.size() - item.plan.coded_at;
  const auto end_of = [&](uint64_t entry) {
    return uint64_t{read_u32(src.data() + kTypedHeaderBytes + 4 * entry)} * kTypedAlignment;
  };
  if ((entries == 0 ? 0 : end_of(entries - 1)) != coded_bytes) return {BatchStatus::cannot_decompress, 0};

  const uint8_t* copied = src.data() + item.plan.copied_at;
  uint8_t* to = dst.data();
  std::vector<std::vector<uint8_t>> planes(shape.element_bytes);
  uint64_t elements_left = item.plan.units * kTypedUnit, begin = 0;
  for (uint64_t entry = 0; elements_left != 0;) {
    const size_t elements = std::min<uint64_t>(kTypedMember, elements_left);
    for (uint32_t b = 0; b < shape.element_bytes; ++b) {
      planes[b].resize(elements);
      if (b < copied_planes) {
        std::copy_n(copied, elements, planes[b].begin());
        copied += elements;
        continue;
      }
      const uint64_t end = end_of(entry++);
      if (end < begin || end > coded_bytes) return {BatchStatus::cannot_decompress, 0};
      if (!decode_plane(src.subspan(item.plan.coded_at + begin, end - begin), planes[b])) {
        return {BatchStatus::cannot_decompress, 0};
      }
      begin = end;
    }
    for (size_t i = 0; i < elements; ++i, to += shape.element_bytes) {
      uint64_t element = 0;
      for (uint32_t b = 0; b < shape.element_bytes; ++b) element |= uint64_t{planes[b][i]} << 8 * b;
      store_element(to, element, shape);
    }
    elements_left -= elements;
  }
  std::copy_n(src.data() + item.plan.tail_at, item.plan.tail_bytes, to);
  return {BatchStatus::ok, item.raw_bytes};
}

}  // namespace ptxkit::kernels
