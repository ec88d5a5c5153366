// tcgen05.mma of a pair of CTAs, with factors, sparse, and with a stationary B (.ws). Operands are placed by the
// layouts of PTX ISA 9.0, 9.7.16.10.5 to 9.7.16.10.8 (A to G, as CUTLASS spells out the figures), element by element
// from the side of the matrix; D is read the same way.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include <gmock/gmock.h>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "fkr_tests/unit/runtime/emulator/tcgen05_kernel.hpp"
#include "fkr_tests/unit/runtime/emulator/tcgen05_operands.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::emulator {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::string words;  // after tcgen05.mma
  std::string a, b;   // types
  unsigned bits_a, bits_b, m, n, depth;
  uint32_t descriptor;  // without M and N
  bool pair = false, sparse = false, stays = false, a_in_memory = false;
  unsigned factors = 0, first_a = 0, first_b = 0;  // factors in a row, from these bytes on
  bool ue4m3 = false;
  unsigned lane = 0;                        // of D, if 64 rows are 16 in each warp
  uint64_t zero_columns = 0;                // passed if not 0
  std::function<bool(unsigned)> zero = {};  // the columns that it replaces by zeros
  unsigned shift = 0;

  bool packed() const { return words.find("kind::mxf4") != std::string::npos; }
  unsigned ctas() const { return pair ? 2 : 1; }
  unsigned rows() const { return m / ctas(); }
  unsigned b_begin() const { return depth == 96 ? 6144 : 4096; }  // byte of the tile at which B begins; A is at 0
  // Layouts A and D; C and F, 16 rows in each warp; B, E and G, whose D is in parts.
  bool whole() const { return rows() == 128; }
  bool quarters() const { return !whole() && !stays && (!pair || sparse); }
  unsigned parts() const { return whole() || quarters() ? 1 : 128 / rows(); }
};

struct Spot {
  unsigned cta, lane, column;
};
// Lanes of a row of one CTA; for D those of the part that contains column n.
unsigned lane_of(const Case& c, unsigned row, unsigned part) {
  return c.quarters() ? c.lane + row / 16 * 32 + row % 16 : row + part * c.rows();
}
Spot spot_of(const Case& c, unsigned m, unsigned n) {
  const unsigned width = c.n / c.parts();
  return {m / c.rows(), lane_of(c, m % c.rows(), n / width), n % width};
}

struct Filled {
  std::vector<Operands> ctas;
  std::vector<double> a, b;  // m x depth, n x depth, with zeros and factors
  // The stored elements of a sparse A, half as many, and their places along K.
  std::vector<double> kept;
  std::vector<unsigned> places;
};

Filled fill(const Case& c) {
  Filled out;
  out.ctas.resize(c.ctas());
  out.a.resize(c.m * c.depth);
  out.b.resize(c.n * c.depth);
  std::mt19937 random(c.depth + c.m + c.n);
  const auto pick = [&](const std::string& type) { return static_cast<int>(random() % 7) - (type == "u8" ? 0 : 3); };
  struct Factor {
    uint32_t bits;
    double value;
  };
  const auto factor = [&]() -> Factor {
    const unsigned i = random() % 4;
    static constexpr uint32_t kUe4m3[] = {0x30, 0x38, 0x40, 0x44};
    static constexpr double kValues[] = {0.5, 1, 2, 3};
    return c.ue4m3 ? Factor{kUe4m3[i], kValues[i]} : Factor{126 + i, std::ldexp(0.5, static_cast<int>(i))};
  };
  const unsigned kept = c.sparse ? c.depth / 2 : c.depth;
  for (unsigned m = 0; m < c.m; ++m) {
    Operands& cta = out.ctas[m / c.rows()];
    const unsigned row = m % c.rows();
    std::vector<unsigned> place(kept);  // along K
    for (unsigned k = 0; k < kept; ++k) place[k] = k;
    const unsigned chunk = c.bits_a == 32 ? 2 : c.packed() ? 8 : 4;
    for (unsigned i = 0; c.sparse && i < c.depth / chunk; ++i) {
      uint32_t bits;
      if (chunk == 2) {
        const unsigned second = random() % 2;
        bits = second ? 0b1110 : 0b0100;
        place[i] = 2 * i + second;
      } else {
        const auto low = static_cast<unsigned>(random() % 3),
                   high = static_cast<unsigned>(low + 1 + random() % (3 - low));
        const unsigned unit = chunk / 4;
        bits = low | high << 2;
        for (unsigned k = 0; k < chunk / 2; ++k)
          place[i * chunk / 2 + k] = i * chunk + (k < unit ? low : high) * unit + k % unit;
      }
      for (unsigned part = 0; part < c.parts(); ++part) {
        // 16 bits and more: the first half of K is in lanes 0 to 7 of 16; rows 8 apart are in the halves of a word.
        const unsigned half = c.depth / chunk / 2;
        if (c.bits_a >= 16)
          cta.in_column(lane_of(c, row / 16 * 16, part) + row % 8 + (i >= half ? 8 : 0), kMetadata,
                        i % half * 4 + (row % 16 >= 8 ? 16 : 0), 4, bits);
        else
          cta.in_column(lane_of(c, row, part), kMetadata + i / 8, i % 8 * 4, 4, bits);
      }
    }
    for (unsigned k = 0; k < kept; ++k) {
      const int value = pick(c.a);
      out.a[m * c.depth + place[k]] = value;
      if (c.sparse) {
        out.kept.push_back(value);
        out.places.push_back(place[k]);
      }
      if (!c.a_in_memory) {
        cta.in_shared(0, c.rows(), row, k, c.bits_a, c.packed(), bits_of(c.a, value));
        continue;
      }
      // Elements of 6 and 4 bits are in bytes, 4-bit ones in the middle; packed ones are two in a byte.
      const unsigned width = c.packed() ? 4 : std::max(8u, c.bits_a);
      const uint32_t bits = bits_of(c.a, value) << (c.bits_a == 4 && !c.packed() ? 2 : 0);
      for (unsigned part = 0; part < c.parts(); ++part)
        cta.in_column(lane_of(c, row, part), kA + k * width / 32, k * width % 32, width, bits);
    }
    for (unsigned i = 0; i < c.factors; ++i) {
      const Factor f = factor();
      const unsigned byte = c.first_a + i;
      for (unsigned warp = 0; warp < 4; ++warp)
        cta.in_column(warp * 32 + row % 32, kFactorsA + row / 32 + byte / 4 * 4, 8 * (byte % 4), 8, f.bits);
      for (unsigned k = i * c.depth / c.factors; k < (i + 1) * c.depth / c.factors; ++k)
        out.a[m * c.depth + k] *= f.value;
    }
  }
  for (unsigned n = 0; n < c.n; ++n) {
    const unsigned each = c.n / c.ctas();
    for (unsigned k = 0; k < c.depth; ++k) {
      const int value = pick(c.b);
      out.b[n * c.depth + k] = value;
      out.ctas[n / each].in_shared(c.b_begin(), each, n % each, k, c.bits_b, c.packed(), bits_of(c.b, value));
    }
    for (unsigned i = 0; i < c.factors; ++i) {
      const Factor f = factor();
      const unsigned width = c.n / c.parts(), byte = c.first_b + i;
      for (Operands& cta : out.ctas)
        for (unsigned warp = 0; warp < 4; ++warp)
          if (c.parts() == 1 || warp / 2 == n / width)  // in layout B two warps have one half
            cta.in_column(warp * 32 + n % width % 32, kFactorsB + n % width / 32 + byte / 4 * 4, 8 * (byte % 4), 8,
                          f.bits);
      for (unsigned k = i * c.depth / c.factors; k < (i + 1) * c.depth / c.factors; ++k)
        out.b[n * c.depth + k] *= f.value;
    }
  }
  return out;
}

uint32_t descriptor_of(const Case& c) {
  const bool scaled = c.factors != 0;
  return c.descriptor | (c.sparse ? 4u : 0u) | c.n / 8 << 17 | (scaled ? c.m / 128 << 27 : c.m / 16 << 24) |
         c.first_a << 29 | c.first_b << 4 | (scaled && !c.ue4m3 ? 1u << 23 : 0u) | (c.depth == 96 ? 1u << 31 : 0u);
}

std::string multiply_text(const Case& c, uint32_t descriptor, unsigned metadata_at = kMetadata) {
  const auto column = [](unsigned at) { return fmt::format("[%r1+{}]", 64 + at); };
  std::string operands = (c.lane ? "[%r9], " : "[%r1], ") +
                         std::string(c.a_in_memory ? (c.lane ? "[%r10]" : column(kA)) : "%rd10") + ", %rd11, " +
                         (c.sparse ? (c.lane ? "[%r11]" : column(metadata_at)) + ", " : "") + "%r8, ";
  if (c.factors) operands += column(kFactorsA) + ", " + column(kFactorsB) + ", ";
  operands += "%p5";
  if (c.zero_columns) operands += ", %rd13";
  return shared_descriptor("%rd10", 0, c.rows() * 16, 128) +
         shared_descriptor("%rd11", c.b_begin(), c.n / c.ctas() * 16, 128) +
         fmt::format(
             "  mov.u32 %r8, {:#x};\n  mov.u64 %rd13, {:#x};\n  add.u32 %r9, %r1, {};\n  add.u32 %r10, %r1, {};\n"
             "  add.u32 %r11, %r1, {};\n",
             descriptor, c.zero_columns, c.lane << 16, (c.lane << 16) + 64 + kA, (c.lane << 16) + 64 + metadata_at) +
         "  @%p2 tcgen05.mma" + c.words + " " + operands + ";\n";
}

Ran run_text(const Case& c, const Filled& filled, const std::string& text) {
  std::vector<uint32_t> in;
  for (const Operands& cta : filled.ctas) in.insert(in.end(), cta.words.begin(), cta.words.end());
  LaunchShape shape{.grid = {c.ctas()}, .block = {128}};
  shape.cluster = {c.ctas()};
  return run_kernel(text, shape, c.ctas() * 128 * 64, in,
                    {.checks = kCheckStandard & ~kCheckOutputs, .max_steps = 1'000'000});
}

Ran run(const Case& c, const Filled& filled, const std::string& multiply, const std::string& before = "") {
  return run_text(c, filled, kernel_text(c.pair, multiply, before));
}

void expect_product(const Case& c) {
  const Filled filled = fill(c);
  const Ran ran = run(c, filled, multiply_text(c, descriptor_of(c)));
  ASSERT_TRUE(ran.outcome.ok()) << c.words << " " << c.m << "\n" << render(ran.outcome, "test.ptx");
  for (unsigned m = 0; m < c.m; ++m)
    for (unsigned n = 0; n < c.n; ++n) {
      double sum = 0;
      const bool zero = (c.zero && c.zero(n)) || n + c.shift >= c.n;
      for (unsigned k = 0; k < c.depth && !zero; ++k)
        sum += filled.a[m * c.depth + k] * filled.b[(n + c.shift) * c.depth + k];
      if (n + c.shift >= c.n) continue;  // columns past the end of B
      const Spot spot = spot_of(c, m, n);
      const uint32_t word = ran.out[(spot.cta * 128 + spot.lane) * 64 + spot.column];
      const bool integer = c.words.find("kind::i8") != std::string::npos;
      const double found = integer ? static_cast<double>(static_cast<int32_t>(word)) : std::bit_cast<float>(word);
      ASSERT_EQ(found, sum) << c.words << " M " << c.m << ", row " << m << ", column " << n;
    }
}

constexpr uint32_t kToF32 = 1 << 4, kToS32 = 2 << 4;
constexpr uint32_t formats(uint32_t a, uint32_t b) { return a << 7 | b << 10; }

TEST(Tcgen05Products, OfAPairOfCtas) {
  for (const unsigned m : {128u, 256u}) {
    expect_product({".cta_group::2.kind::f16", "f16", "bf16", 16, 16, m, 32, 16, kToF32 | formats(0, 1), true});
    expect_product({".cta_group::2.kind::tf32", "tf32", "tf32", 32, 32, m, 64, 8, kToF32 | formats(2, 2), true});
    expect_product({".cta_group::2.kind::i8", "s8", "u8", 8, 8, m, 32, 32, kToS32 | formats(1, 0), true});
    expect_product({".cta_group::2.kind::f8f6f4", "e2m3", "e4m3", 6, 8, m, 48, 32, kToF32 | formats(3, 0), true});
    expect_product({.words = ".cta_group::2.kind::f16",
                    .a = "f16",
                    .b = "f16",
                    .bits_a = 16,
                    .bits_b = 16,
                    .m = m,
                    .n = 32,
                    .depth = 16,
                    .descriptor = kToF32,
                    .pair = true,
                    .a_in_memory = true});
  }
}

// .ashift: after the product each lane of A but the last of a warp gets the next one's values, for the following
// product.
TEST(Tcgen05Products, OfShiftedRows) {
  for (const bool pair : {false, true})
    for (const bool sparse : {false, true})
      for (const unsigned m : {128u, 256u}) {
        if (m == 256 ? !pair : pair && sparse) continue;
        Case c{.words = fmt::format("{}.cta_group::{}.kind::f8f6f4", sparse ? ".sp" : "", pair ? 2 : 1),
               .a = "e4m3",
               .b = "e5m2",
               .bits_a = 8,
               .bits_b = 8,
               .m = m,
               .n = 32,
               .depth = sparse ? 64u : 32u,
               .descriptor = kToF32 | formats(0, 1),
               .pair = pair,
               .sparse = sparse,
               .a_in_memory = true};
        const Filled filled = fill(c);
        // D = A * B, then D += A' * B.
        std::string multiply = multiply_text(c, descriptor_of(c));
        const std::string second = multiply.substr(multiply.find("  @%p2 tcgen05.mma"));
        multiply.insert(multiply.rfind(" [%r1], [%r1+"), ".ashift");
        multiply += "  setp.eq.u32 %p5, %r0, %r0;\n" + second;
        const Ran ran = run(c, filled, multiply);
        ASSERT_TRUE(ran.outcome.ok()) << c.words << render(ran.outcome, "test.ptx");
        // Metadata does not move, so the kept elements of the next row go to the places of this one.
        const auto shifted = [&](unsigned row) { return row % 32 == 31 ? row : row + 1; };
        for (unsigned row = 0; row < m; ++row)
          for (unsigned n = 0; n < c.n; ++n) {
            double sum = 0;
            for (unsigned k = 0; k < c.depth; ++k) sum += filled.a[row * c.depth + k] * filled.b[n * c.depth + k];
            for (unsigned k = 0; k < c.depth && !sparse; ++k)
              sum += filled.a[shifted(row) * c.depth + k] * filled.b[n * c.depth + k];
            for (unsigned k = 0; k < c.depth / 2 && sparse; ++k)
              sum += filled.kept[shifted(row) * c.depth / 2 + k] *
                     filled.b[n * c.depth + filled.places[row * c.depth / 2 + k]];
            const Spot spot = spot_of(c, row, n);
            ASSERT_EQ(std::bit_cast<float>(ran.out[(spot.cta * 128 + spot.lane) * 64 + spot.column]), sum)
                << c.words << " " << m << ", row " << row << ", column " << n;
          }
      }
}

TEST(Tcgen05Products, WithFactors) {
  for (const bool pair : {false, true})
    for (const unsigned m : {128u, 256u})
      for (const bool a_in_memory : {false, true}) {
        if (!pair && m == 256) continue;
        const std::string group = fmt::format(".cta_group::{}", pair ? 2 : 1);
        Case c{.words = group + ".kind::mxf8f6f4.block_scale.scale_vec::1X",
               .a = "e4m3",
               .b = "e5m2",
               .bits_a = 8,
               .bits_b = 8,
               .m = m,
               .n = 64,
               .depth = 32,
               .descriptor = formats(0, 1),
               .pair = pair,
               .a_in_memory = a_in_memory,
               .factors = 1,
               .first_a = 2,
               .first_b = 3};
        expect_product(c);
        c.words = group + ".kind::mxf8f6f4.block_scale";
        c.a = "e2m1";
        c.bits_a = 4;
        c.descriptor = formats(5, 1);
        expect_product(c);
        c.a = c.b = "e2m1";
        c.bits_a = c.bits_b = 4;
        c.depth = 64;
        c.descriptor = formats(1, 1);
        c.factors = 2;
        c.first_a = 2;
        c.first_b = 0;
        c.words = group + ".kind::mxf4.block_scale.scale_vec::2X";
        expect_product(c);
        c.words = group + ".kind::mxf4nvf4.block_scale.scale_vec::2X";
        expect_product(c);
        c.factors = 4;
        c.first_a = 0;
        c.words = group + ".kind::mxf4nvf4.block_scale.scale_vec::4X";
        expect_product(c);
        c.ue4m3 = true;
        expect_product(c);
      }
}

// Three or six factors for a row or column; those after the fourth byte of a word are four columns further for 128 of
// them.
TEST(Tcgen05Products, OfADepthOf96) {
  for (const bool pair : {false, true})
    for (const bool a_in_memory : {false, true})
      for (const unsigned first : {0u, 1u, 2u, 3u}) {
        const std::string group = fmt::format(".cta_group::{}", pair ? 2 : 1);
        Case c{.words = group + ".kind::mxf4.block_scale.block32",
               .a = "e2m1",
               .b = "e2m1",
               .bits_a = 4,
               .bits_b = 4,
               .m = pair ? 256u : 128u,
               .n = 64,
               .depth = 96,
               .descriptor = formats(1, 1),
               .pair = pair,
               .a_in_memory = a_in_memory,
               .factors = 3,
               .first_a = first,
               .first_b = 3 - first};
        expect_product(c);
        c.words = group + ".kind::mxf4.block_scale";
        expect_product(c);
        c.words = group + ".kind::mxf4nvf4.block_scale.block32";
        expect_product(c);
        if (first % 2) continue;
        c.factors = 6;
        c.first_b = 2 - first;
        c.words = group + ".kind::mxf4nvf4.block_scale.block16";
        expect_product(c);
        c.ue4m3 = true;
        expect_product(c);
      }
}

TEST(Tcgen05Products, OfSparseMatrices) {
  struct Kind {
    std::string name, a, b;
    unsigned bits, depth;
    uint32_t descriptor;
  };
  const std::vector<Kind> kinds = {{"f16", "f16", "f16", 16, 32, kToF32},
                                   {"tf32", "tf32", "tf32", 32, 16, kToF32 | formats(2, 2)},
                                   {"i8", "s8", "s8", 8, 64, kToS32 | formats(1, 1)},
                                   {"f8f6f4", "e5m2", "e4m3", 8, 64, kToF32 | formats(1, 0)}};
  for (const Kind& kind : kinds)
    for (const bool a_in_memory : {false, true})
      for (const auto& [group, m, lane] : std::vector<std::tuple<unsigned, unsigned, unsigned>>{
               {1, 128, 0}, {1, 64, 0}, {1, 64, 16}, {2, 256, 0}, {2, 128, 0}, {2, 128, 16}})
        expect_product({.words = fmt::format(".sp.cta_group::{}.kind::{}", group, kind.name),
                        .a = kind.a,
                        .b = kind.b,
                        .bits_a = kind.bits,
                        .bits_b = kind.bits,
                        .m = m,
                        .n = 32,
                        .depth = kind.depth,
                        .descriptor = kind.descriptor,
                        .pair = group == 2,
                        .sparse = true,
                        .a_in_memory = a_in_memory,
                        .lane = lane});
  for (const bool pair : {false, true})
    for (const unsigned factors : {1u, 2u, 4u}) {
      const std::string kind = factors == 1 ? ".kind::mxf8f6f4" : ".kind::mxf4nvf4";
      expect_product(
          {.words = fmt::format(".sp.cta_group::{}{}.block_scale.scale_vec::{}X", pair ? 2 : 1, kind, factors),
           .a = factors == 1 ? "e4m3" : "e2m1",
           .b = factors == 1 ? "e4m3" : "e2m1",
           .bits_a = factors == 1 ? 8u : 4u,
           .bits_b = factors == 1 ? 8u : 4u,
           .m = pair ? 256u : 128u,
           .n = 64,
           .depth = factors == 1 ? 64u : 128u,
           .descriptor = factors == 1 ? 0 : formats(1, 1),
           .pair = pair,
           .sparse = true,
           .factors = factors});
    }
}

TEST(Tcgen05Products, WithStationaryB) {
  // A of fewer rows than lanes is repeated for each part of D's columns.
  for (const bool a_in_memory : {false, true})
    for (const unsigned m : {32u, 64u, 128u}) {
      Case c{.words = ".ws.cta_group::1.kind::f16.collector::b1::fill",
             .a = "bf16",
             .b = "f16",
             .bits_a = 16,
             .bits_b = 16,
             .m = m,
             .n = 64,
             .depth = 16,
             .descriptor = kToF32 | formats(1, 0),
             .stays = true,
             .a_in_memory = a_in_memory};
      expect_product(c);
      c.words = ".ws.cta_group::1.kind::i8";
      c.a = "u8";
      c.b = "s8";
      c.bits_a = c.bits_b = 8;
      c.depth = 32;
      c.descriptor = kToS32 | formats(0, 1);
      expect_product(c);
      c.words = ".ws.sp.cta_group::1.kind::tf32";
      c.a = c.b = "tf32";
      c.bits_a = c.bits_b = 32;
      c.depth = 16;
      c.descriptor = kToF32 | formats(2, 2);
      c.sparse = true;
      expect_product(c);
      c.words = ".ws.sp.cta_group::1.kind::f8f6f4";
      c.a = c.b = "e4m3";
      c.bits_a = c.bits_b = 8;
      c.depth = 64;
      c.descriptor = kToF32;
      expect_product(c);
    }
}

// The examples of 9.7.16.4.3: masks from column 0 on, 1 means zeros.
TEST(Tcgen05Products, WithZerosForColumns) {
  const auto descriptor = [](std::array<unsigned, 4> starts, std::array<unsigned, 4> first, unsigned skip, unsigned use,
                             unsigned shift) {
    uint64_t bits = uint64_t{1} << 39 | uint64_t{skip} << 40 | uint64_t{use} << 48 | uint64_t{shift} << 56;
    for (unsigned i = 0; i < 4; ++i) bits |= uint64_t{starts[i]} << 8 * i | uint64_t{first[i]} << (32 + i);
    return bits;
  };
  struct Example {
    unsigned m;
    uint64_t descriptor;
    std::vector<std::string> masks;
    unsigned shift = 0;
  };
  const std::vector<Example> examples = {
      {128, uint64_t{4} << 40 | uint64_t{3} << 48, {"0000000"}},
      {128, descriptor({}, {}, 2, 3, 0), {"00001110000111"}},
      {64, descriptor({}, {1, 0, 0, 0}, 2, 3, 0), {"11100001110000111", "00001110000111"}},
      {32,
       descriptor({0, 1, 2, 1}, {1, 1, 0, 0}, 2, 3, 2),
       {"11100001110000", "1100001110000", "001110000111", "0001110000111"},
       2}};
  for (const Example& each : examples) {
    const unsigned width = 64 / static_cast<unsigned>(each.masks.size());
    expect_product({.words = ".ws.cta_group::1.kind::f16",
                    .a = "f16",
                    .b = "f16",
                    .bits_a = 16,
                    .bits_b = 16,
                    .m = each.m,
                    .n = 64,
                    .depth = 16,
                    .descriptor = kToF32,
                    .stays = true,
                    .zero_columns = each.descriptor,
                    .zero =
                        [&](unsigned n) {
                          const std::string& mask = each.masks[n / width];
                          // A period of 7 continues after the end of the example.
                          unsigned i = n % width;
                          while (i >= mask.size()) i -= 7;
                          return mask[i] == '1';
                        },
                    .shift = each.shift});
  }
}

TEST(Tcgen05Products, Mistakes) {
  const Case pair{".cta_group::2.kind::f16", "f16", "f16", 16, 16, 256, 32, 16, kToF32, true};
  const Case scaled{.words = ".cta_group::1.kind::mxf4.block_scale.scale_vec::2X",
                    .a = "e2m1",
                    .b = "e2m1",
                    .bits_a = 4,
                    .bits_b = 4,
                    .m = 128,
                    .n = 64,
                    .depth = 64,
                    .descriptor = formats(1, 1),
                    .factors = 2};
  const Case sparse{.words = ".sp.cta_group::1.kind::f16",
                    .a = "f16",
                    .b = "f16",
                    .bits_a = 16,
                    .bits_b = 16,
                    .m = 128,
                    .n = 32,
                    .depth = 32,
                    .descriptor = kToF32,
                    .sparse = true};
  const Case stays{.words = ".ws.cta_group::1.kind::f16",
                   .a = "f16",
                   .b = "f16",
                   .bits_a = 16,
                   .bits_b = 16,
                   .m = 64,
                   .n = 64,
                   .depth = 16,
                   .descriptor = kToF32,
                   .stays = true};
  const auto fault = [](const Case& c, uint32_t descriptor, const std::string& before = "") {
    const Ran ran = run(c, fill(c), multiply_text(c, descriptor), before);
    return ran.outcome.ok() ? std::string() : render(ran.outcome.faults[0], "test.ptx");
  };
  EXPECT_EQ(fault(pair, descriptor_of(pair)), "");
  EXPECT_THAT(fault(pair, (descriptor_of(pair) & ~(31u << 24)) | 4u << 24), HasSubstr("M is 64, expected 128 or 256"));
  EXPECT_THAT(fault(pair, (descriptor_of(pair) & ~(63u << 17)) | 3u << 17), HasSubstr("N is 24, expected 16 to 256"));
  EXPECT_THAT(fault(scaled, (descriptor_of(scaled) & ~(3u << 27)) | 2u << 27), HasSubstr("M is 256, expected 128"));
  EXPECT_THAT(fault(scaled, descriptor_of(scaled) | 1u << 31), HasSubstr("K is 96, which a product with .block16 or"));
  EXPECT_THAT(fault(scaled, descriptor_of(scaled) | 1u << 29), HasSubstr("2 factors in a row do not begin at byte 1"));
  EXPECT_THAT(fault(scaled, descriptor_of(scaled) & ~(1u << 23)), HasSubstr("factors of ue4m3 belong to"));
  EXPECT_THAT(fault(sparse, descriptor_of(sparse) & ~4u), HasSubstr("that of a product that is not sparse"));
  EXPECT_THAT(fault(sparse, descriptor_of(sparse) | 2u), HasSubstr("sparsity selector 2 is not emulated"));
  EXPECT_THAT(fault(stays, (descriptor_of(stays) & ~(63u << 17)) | 4u << 17), HasSubstr("N is 32, expected 64, 128"));
  EXPECT_THAT(fault(stays, (descriptor_of(stays) & ~(31u << 24)) | 16u << 24), HasSubstr("M is 256, expected 32, 64"));
  Case shifted = stays;
  shifted.zero_columns = uint64_t{33} << 56;
  EXPECT_THAT(fault(shifted, descriptor_of(stays)), HasSubstr("columns of B are shifted by 33"));
  Case integers{".cta_group::1.kind::i8", "s8", "s8", 8, 8, 128, 32, 32, kToS32 | formats(1, 1)};
  EXPECT_EQ(fault(integers, descriptor_of(integers)), "");
  EXPECT_THAT(fault(integers, descriptor_of(integers) | 1u << 13), HasSubstr("integers are not negated"));
}

std::string fault_of(std::string text, const std::string& from, const std::string& to, unsigned ctas) {
  text.replace(text.find(from), from.size(), to);
  LaunchShape shape{.grid = {ctas}, .block = {128}};
  shape.cluster = {ctas};
  const Ran ran = run_kernel(text, shape, size_t{ctas} * 128 * 64, std::vector<uint32_t>(size_t{ctas} * kCtaWords),
                             {.checks = kCheckStandard & ~kCheckOutputs, .max_steps = 1'000'000});
  return ran.outcome.ok() ? std::string() : render(ran.outcome.faults[0], "test.ptx");
}

TEST(Tcgen05Products, MistakesOfPairs) {
  const Case c{".cta_group::2.kind::f16", "f16", "f16", 16, 16, 256, 32, 16, kToF32, true};
  const std::string text = kernel_text(true, multiply_text(c, descriptor_of(c)));
  const std::string alloc = "  tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [place], 128;\n";
  const std::string release = "  tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r1, 128;\n";
  const std::string commit = "  @%p2 tcgen05.commit";
  EXPECT_EQ(fault_of(text, "", "", 2), "");
  EXPECT_THAT(fault_of(text, "", "", 1), HasSubstr("CTA 0 of a cluster of 1 is in no pair"));
  EXPECT_THAT(fault_of(text, "[place], 128", "[place], %r23", 2), HasSubstr("0 columns are no power of two"));
  // The second CTA requests less, omits its part, or exits before the first one multiplies.
  EXPECT_THAT(fault_of(text, alloc,
                       "  shr.u32 %r23, 128, %r22;\n  tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [place], "
                       "%r23;\n",
                       2),
              HasSubstr("64 columns, where the other CTA of the pair allocates 128"));
  EXPECT_THAT(
      fault_of(text, alloc,
               "  setp.ne.u32 %p7, %r22, 0;\n  @%p3 st.shared.u32 [place], 0;\n  @%p7 bra allocated;\n" + alloc, 2),
      HasSubstr("128 columns of tensor memory are allocated by the other CTA of the pair and never by this one"));
  EXPECT_THAT(
      fault_of(text, release, "  setp.eq.u32 %p7, %r22, 0;\n  @%p7 bra gone;\n" + release, 2),
      HasSubstr("128 columns of tensor memory are deallocated by the other CTA of the pair and never by this one"));
  EXPECT_THAT(fault_of(text, release, "", 2), HasSubstr("128 columns of tensor memory are not deallocated"));
  EXPECT_THAT(fault_of(text, commit,
                       "  setp.ne.u32 %p7, %r22, 0;\n  @%p7 bra gone;\n  barrier.cluster.arrive.aligned;\n"
                       "  barrier.cluster.wait.aligned;\n" +
                           commit,
                       2),
              HasSubstr("CTA 1, the other one of the pair, has left"));
}

// Runs instructions of one thread and gives the stored columns from 64 on.
Ran run_on_stored(const Case& c, const Filled& filled, const std::string& instructions) {
  std::string text = kernel_text(c.pair, instructions);
  for (unsigned half = 0; half < 2; ++half) {
    const std::string from = fmt::format("[%r5+{}]", 32 * half);
    text.replace(text.find(from, text.find("tcgen05.ld")), from.size(), fmt::format("[%r5+{}]", 64 + 32 * half));
  }
  return run_text(c, filled, text);
}

// Four rows of 32 bytes, one for each warp, at the given addresses.
TEST(Tcgen05Products, CopyOfFourRows) {
  for (const bool pair : {false, true}) {
    Case c{.words = "",
           .a = "f16",
           .b = "f16",
           .bits_a = 16,
           .bits_b = 16,
           .m = 256,
           .n = 32,
           .depth = 16,
           .descriptor = 0,
           .pair = pair};
    Filled filled;
    filled.ctas.resize(c.ctas());
    for (unsigned i = 0; i < c.ctas(); ++i) {
      for (unsigned row = 0; row < 4; ++row)
        for (unsigned k = 0; k < 16; ++k)
          filled.ctas[i].in_shared(0, 8, row, k, 16, false, 1000 * i + 100 * row + k + 1);
      for (unsigned lane = 0; lane < 128; ++lane)
        for (unsigned column = 0; column < 8; ++column) filled.ctas[i].in_column(lane, column, 0, 32, 7);
    }
    const std::string copy = shared_descriptor("%rd10", 0, 128, 128) +
                             "  add.u32 %r9, %r1, 0x1d0040;\n  @%p2 tcgen05.cp." +
                             fmt::format("cta_group::{}.4x256b [%r9], %rd10;\n", pair ? 2 : 1);
    const Ran ran = run_on_stored(c, filled, copy);
    ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
    for (unsigned cta = 0; cta < c.ctas(); ++cta)
      for (unsigned lane = 0; lane < 128; ++lane)
        for (unsigned column = 0; column < 8; ++column) {
          const uint32_t low = 1000 * cta + 100 * (lane / 32) + 2 * column + 1;
          EXPECT_EQ(ran.out[(cta * 128 + lane) * 64 + column], lane % 32 == 29 ? low | (low + 1) << 16 : 7)
              << cta << " " << lane;
        }
  }
}

// Eight columns of one warp, in both CTAs: each lane gets those of the next.
TEST(Tcgen05Products, ShiftOfPairs) {
  const Case c{"", "f16", "f16", 16, 16, 256, 32, 16, 0, true};
  Filled filled;
  filled.ctas.resize(c.ctas());
  const auto value = [](unsigned cta, unsigned lane, unsigned column) { return 10000 * cta + 50 * lane + column + 1; };
  for (unsigned cta = 0; cta < c.ctas(); ++cta)
    for (unsigned lane = 0; lane < 128; ++lane)
      for (unsigned column = 0; column < 32; ++column)
        filled.ctas[cta].in_column(lane, column, 0, 32, value(cta, lane, column));
  const Ran ran =
      run_on_stored(c, filled, "  add.u32 %r9, %r1, 0x400048;\n  @%p2 tcgen05.shift.cta_group::2.down [%r9];\n");
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  for (unsigned cta = 0; cta < c.ctas(); ++cta)
    for (unsigned lane = 0; lane < 128; ++lane)
      for (unsigned column = 0; column < 32; ++column) {
        const bool moves = lane >= 64 && lane < 95 && column >= 8 && column < 16;
        EXPECT_EQ(ran.out[(cta * 128 + lane) * 64 + column], value(cta, moves ? lane + 1 : lane, column))
            << cta << " " << lane << " " << column;
      }
}

}  // namespace
}  // namespace ptxkit::emulator
