// ldmatrix, stmatrix, movmatrix, and the loads and stores of wmma. PTX ISA 9.0, 9.7.14.5.15 to 9.7.14.5.17, 9.7.14.4.
#include <algorithm>

#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/instructions/memory/access.hpp"
#include "runtime/emulator/sanitizer/undefined_output.hpp"

namespace ptxkit::emulator {

namespace {

const MatrixForm& form_of(const Warp& warp, const Code& code) { return warp.cta->launch->image->matrices[code.target]; }

// Where the lanes hold a half of an 8 x 8 matrix: the lane and the part of its register for row r, column c.
struct Half {
  unsigned lane, part;
};
Half holder(unsigned row, unsigned column, bool transposed) {
  if (transposed) std::swap(row, column);
  return {row * 4 + column / 2, column % 2};
}

void set_marks(Warp& warp, Ref ref, const uint32_t (&undefined)[kLanes], const Code& code, uint64_t address) {
  uint32_t lanes = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) lanes |= undefined[lane] ? 1u << lane : 0;
  undefined_lanes(warp, ref) = lanes;
  if (!lanes) return;
  std::memcpy(shadow_at<uint32_t>(warp, ref), undefined, sizeof undefined);
  origin_of(warp, ref) =
      add_origin(*warp.cta, {warp.pc, static_cast<uint8_t>(std::countr_zero(lanes)), static_cast<uint16_t>(warp.index),
                             code.space == ptx::Space::generic ? ptx::Space::shared : code.space, address});
}

// Each group of eight lanes gives the addresses of the eight rows of one of `count` matrices, 16 bytes a row. Returns
// the lanes that give addresses, or none after a fault.
template <bool kChecked, bool kStore>
uint32_t locate_rows(Warp& warp, const Code& code, unsigned count, Places& places) {
  const uint32_t address_lanes = count == 4 ? kAllLanes : (1u << 8 * count) - 1;
  if constexpr (kChecked) {
    if (!locate_checked(warp, code, address_lanes, 16, kStore ? AccessKind::store : AccessKind::load, places)) return 0;
  } else {
    locate_unchecked(warp, code, address_lanes, 16, places);
  }
  return address_lanes;
}

// A row of 16 bytes to store, and which of its bits are defined.
struct StoredRow {
  std::array<uint8_t, 16> bytes, defined;
};

// Stores a row at the address that a lane gives. A row that is already there does not count as a write if an earlier
// write is unordered with it: compilers let several lanes give one address for a repeated row.
template <bool kChecked>
void store_row(Warp& warp, const Code& code, unsigned address_lane, const Places& places, const StoredRow& row) {
  uint8_t *bytes = places.bytes[address_lane], *shadow = kChecked ? places.shadow[address_lane] : nullptr;
  bool changes = std::memcmp(bytes, row.bytes.data(), row.bytes.size()) != 0;
  std::memcpy(bytes, row.bytes.data(), row.bytes.size());
  if (shadow) {
    changes |= std::memcmp(shadow, row.defined.data(), row.defined.size()) != 0;
    std::memcpy(shadow, row.defined.data(), row.defined.size());
  }
  if constexpr (kChecked) note_write(warp, code, address_lane, places, row.bytes.size(), !changes);
}

// ldmatrix and stmatrix of halves.
template <bool kChecked, bool kStore>
void rows(Warp& warp, const Code& code, uint32_t) {
  const MatrixForm& form = form_of(warp, code);
  const Ref* refs = warp.cta->launch->image->refs.data() + form.d.first;
  const unsigned count = form.d.count;
  Places places;
  const uint32_t address_lanes = locate_rows<kChecked, kStore>(warp, code, count, places);
  if (address_lanes == 0) return;
  for (unsigned matrix = 0; matrix < count; ++matrix) {
    const Ref ref = refs[matrix];
    uint16_t* halves = at<uint16_t>(warp, ref);
    uint16_t* bits = kChecked ? shadow_at<uint16_t>(warp, ref) : nullptr;
    uint32_t undefined[kLanes] = {};
    for (unsigned row = 0; row < 8; ++row) {
      const unsigned address_lane = 8 * matrix + row;
      const uint8_t *bytes = places.bytes[address_lane], *shadow = kChecked ? places.shadow[address_lane] : nullptr;
      StoredRow stored;
      for (unsigned column = 0; column < 8; ++column) {
        const Half from = holder(row, column, form.transposes);
        const unsigned index = 2 * from.lane + from.part;
        if constexpr (kStore) {
          std::memcpy(&stored.bytes[2 * column], halves + index, 2);
          const bool marked = kChecked && undefined_lanes(warp, ref) >> from.lane & 1;
          const auto defined = static_cast<uint16_t>(marked ? ~bits[index] : 0xffff);
          std::memcpy(&stored.defined[2 * column], &defined, 2);
        } else {
          std::memcpy(halves + index, bytes + 2 * column, 2);
          if (!shadow) continue;
          uint16_t defined;
          std::memcpy(&defined, shadow + 2 * column, 2);
          undefined[from.lane] |= uint32_t{static_cast<uint16_t>(~defined)} << 16 * from.part;
        }
      }
      if constexpr (kStore)
        store_row<kChecked>(warp, code, address_lane, places, stored);
      else if constexpr (kChecked)
        note_read(warp, code, address_lane, places, 16);
    }
    if constexpr (kChecked && !kStore) set_marks(warp, ref, undefined, code, places.address[8 * matrix]);
  }
}

// The place in memory of byte `byte` of register `reg` of a lane: the lane that gives the row's address, and the
// column. As in CUTLASS (cute/atom/copy_traits_sm100.hpp); the ISA only has figures.
struct BytePlace {
  unsigned address_lane, column;
};
BytePlace byte_place(const MatrixForm& form, bool store, unsigned lane, unsigned reg, unsigned byte) {
  if (store) return {8 * reg + 2 * (lane % 4) + byte % 2, lane / 4 + 8 * (byte / 2)};                 // m16n8
  if (form.shape.m == 16) return {16 * (reg / 2) + 4 * (lane % 4) + byte, lane / 4 + 8 * (reg % 2)};  // m16n16
  return {8 * reg + lane / 4, 4 * (lane % 4) + byte};                                                 // m8n16
}

// Element `column` of a row of 16 elements, packed from the lowest bit on; zeros fill the upper bits of its byte.
uint8_t packed_element(const uint8_t* row, unsigned column, unsigned bits) {
  const unsigned first = column * bits;
  const uint32_t two = row[first / 8] | uint32_t{first / 8 < 15 ? row[first / 8 + 1] : uint8_t{0}} << 8;
  return static_cast<uint8_t>(two >> first % 8 & ((1u << bits) - 1));
}

// ldmatrix and stmatrix of bytes: rows of 16 bytes.
template <bool kChecked, bool kStore>
void byte_rows(Warp& warp, const Code& code, uint32_t) {
  const MatrixForm& form = form_of(warp, code);
  const Ref* refs = warp.cta->launch->image->refs.data() + form.d.first;
  const unsigned count = form.d.count;  // each register holds the elements of eight rows
  Places places;
  const uint32_t address_lanes = locate_rows<kChecked, kStore>(warp, code, count, places);
  if (address_lanes == 0) return;
  std::array<StoredRow, kLanes> stored;
  for (unsigned reg = 0; reg < count; ++reg) {
    const Ref ref = refs[reg];
    uint8_t* values = at<uint8_t>(warp, ref);
    const uint8_t* bits = kChecked ? shadow_at<uint8_t>(warp, ref) : nullptr;
    uint32_t undefined[kLanes] = {};
    for (unsigned lane = 0; lane < kLanes; ++lane)
      for (unsigned byte = 0; byte < 4; ++byte) {
        const auto [address_lane, column] = byte_place(form, kStore, lane, reg, byte);
        const uint8_t* shadow = kChecked ? places.shadow[address_lane] : nullptr;
        uint8_t& value = values[4 * lane + byte];
        if constexpr (kStore) {
          stored[address_lane].bytes[column] = value;
          const bool marked = kChecked && undefined_lanes(warp, ref) >> lane & 1;
          stored[address_lane].defined[column] = static_cast<uint8_t>(marked ? ~bits[4 * lane + byte] : 0xff);
        } else {
          value = packed_element(places.bytes[address_lane], column, form.packed_bits);
          if (!shadow) continue;
          const unsigned defined = packed_element(shadow, column, form.packed_bits);
          undefined[lane] |= (~defined & ((1u << form.packed_bits) - 1)) << 8 * byte;
        }
      }
    if constexpr (kChecked && !kStore) set_marks(warp, ref, undefined, code, places.address[0]);
  }
  for_lanes(address_lanes, [&](unsigned address_lane) {
    if constexpr (kStore)
      store_row<kChecked>(warp, code, address_lane, places, stored[address_lane]);
    else if constexpr (kChecked)
      note_read(warp, code, address_lane, places, 16);
  });
}

template <bool kChecked>
void transpose(Warp& warp, const Code& code, uint32_t) {
  const MatrixForm& form = form_of(warp, code);
  const Ref* refs = warp.cta->launch->image->refs.data();
  const Ref to = refs[form.d.first], from = refs[form.a.first];
  uint16_t halves[2 * kLanes], bits[2 * kLanes] = {};
  std::memcpy(halves, at<uint16_t>(warp, from), sizeof halves);
  const uint32_t marked = kChecked ? undefined_lanes(warp, from) : 0;
  if (marked) std::memcpy(bits, shadow_at<uint16_t>(warp, from), sizeof bits);
  uint32_t undefined[kLanes] = {};
  for (unsigned row = 0; row < 8; ++row)
    for (unsigned column = 0; column < 8; ++column) {
      const Half source = holder(row, column, false), target = holder(row, column, true);
      const unsigned index = 2 * source.lane + source.part;
      at<uint16_t>(warp, to)[2 * target.lane + target.part] = halves[index];
      if (marked >> source.lane & 1) undefined[target.lane] |= uint32_t{bits[index]} << 16 * target.part;
    }
  if constexpr (kChecked) set_marks(warp, to, undefined, code, 0);
}

// wmma.load and wmma.store: every lane moves its own elements; matrix_multiply.cpp defines their order.
template <bool kChecked, bool kStore>
void elements(Warp& warp, const Code& code, uint32_t mask) {
  const MatrixForm& form = form_of(warp, code);
  const Ref* refs = warp.cta->launch->image->refs.data() + form.d.first;
  const unsigned bits = ptx::bit_width(form.d_type), per = bits >= 32 ? 1 : 32 / bits;
  const unsigned m = form.shape.m, n = form.shape.n, k = form.shape.k;
  const unsigned row_count = form.matrix == 'b' ? k : m, columns = form.matrix == 'a' ? k : n;
  const bool by_columns = form.a_columns;
  uint64_t base[kLanes];
  compute_addresses(warp, code, base);
  for (unsigned reg = 0; reg < form.d.count; ++reg) {
    const unsigned lane_bytes = bits == 64 ? 8 : 4;
    uint8_t* values = at<uint8_t>(warp, refs[reg]);
    uint32_t undefined[kLanes] = {};
    for (unsigned element = 0; element < per; element += bits < 8 ? 8 / bits : 1) {
      // Elements smaller than a byte are moved a byte at a time.
      const unsigned bytes = std::max(1u, bits / 8);
      Places places;
      for_lanes(mask, [&](unsigned lane) {
        const unsigned index = (lane * form.d.count + reg) * per + element;
        const bool down = form.matrix == 'b' && bits < 8;  // elements of one byte are then neighbours
        const unsigned row = down ? index % row_count : index / columns % row_count;
        const unsigned column = down ? index / row_count % columns : index % columns;
        const uint64_t stride = form.has_stride ? at<uint32_t>(warp, form.stride)[lane]
                                : by_columns    ? row_count
                                                : columns;
        const uint64_t at_element = by_columns ? column * stride + row : row * stride + column;
        places.address[lane] = base[lane] + at_element * bits / 8;
      });
      if constexpr (kChecked) {
        if (!locate_at_checked(warp, code, mask, bytes, bytes, kStore ? AccessKind::store : AccessKind::load, places))
          return;
      } else {
        locate_at_unchecked(warp, code, mask, bytes, places);
      }
      for_lanes(mask, [&](unsigned lane) {
        uint8_t* word = values + size_t{lane} * lane_bytes + element * bits / 8;
        uint8_t* shadow = kChecked ? places.shadow[lane] : nullptr;
        if constexpr (kStore) {
          std::memcpy(places.bytes[lane], word, bytes);
          if (shadow) {
            std::memset(shadow, undefined_lanes(warp, refs[reg]) >> lane & 1 ? 0 : 0xff, bytes);
            note_output(warp, lane, shadow, bytes, find_origin(*warp.cta, origin_of(warp, refs[reg])));
          }
        } else {
          std::memcpy(word, places.bytes[lane], bytes);
          for (unsigned byte = 0; shadow && byte < bytes; ++byte)
            if (shadow[byte] != 0xff) undefined[lane] = kAllLanes;
        }
        if constexpr (kChecked)
          kStore ? note_write(warp, code, lane, places, bytes) : note_read(warp, code, lane, places, bytes);
      });
    }
    if constexpr (kChecked && !kStore) {
      if (bits == 64) {
        uint32_t lanes = 0;
        for (unsigned lane = 0; lane < kLanes; ++lane) lanes |= undefined[lane] ? 1u << lane : 0;
        std::memset(shadow_at<uint8_t>(warp, refs[reg]), 0xff, kLanes * 8);
        undefined_lanes(warp, refs[reg]) = lanes;
      } else {
        set_marks(warp, refs[reg], undefined, code, base[0]);
      }
    }
  }
}

}  // namespace

void select_matrix_rows(Code& code, bool store) {
  code.run = store ? rows<false, true> : rows<false, false>;
  code.checked = store ? rows<true, true> : rows<true, false>;
}

void select_byte_rows(Code& code, bool store) {
  code.run = store ? byte_rows<false, true> : byte_rows<false, false>;
  code.checked = store ? byte_rows<true, true> : byte_rows<true, false>;
}

void select_matrix_elements(Code& code, bool store) {
  code.run = store ? elements<false, true> : elements<false, false>;
  code.checked = store ? elements<true, true> : elements<true, false>;
}

void select_transpose(Code& code) {
  code.run = transpose<false>;
  code.checked = transpose<true>;
}

}  // namespace ptxkit::emulator
