// See matrix_cases.hpp.
#include "fkr_tests/device/matrix_cases.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <random>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "runtime/emulator/emulator.hpp"
#include "support/half.hpp"

namespace ptxkit::testing {

namespace {

constexpr std::string_view kHeader = ".version 8.6\n.target sm_90a\n.address_size 64\n";
constexpr uint32_t kMatrixBytes = 48 * 1024;  // A is in the first third, B after it
constexpr uint32_t kBBegin = 16 * 1024;

std::string registers(std::string_view name, unsigned count) {
  std::string list;
  for (unsigned i = 0; i < count; ++i) list += fmt::format("{}%{}{}", i ? ", " : "", name, i);
  return "{" + list + "}";
}

struct Descriptor {
  uint32_t leading_bytes, stride_bytes, swizzle;
  uint64_t bits(uint32_t begin) const {
    return begin >> 4 | uint64_t{leading_bytes >> 4} << 16 | uint64_t{stride_bytes >> 4} << 32 |
           uint64_t{swizzle} << 62;
  }
};

struct Warpgroup {
  std::string_view d, a, b;
  unsigned n;
  Descriptor of_a, of_b;
  unsigned begin = 0;  // of both matrices, in bytes
  bool a_columns = false, b_columns = false, a_in_registers = false;
  bool keeps = true;
  int scale_a = 1, scale_b = 1;
  std::string_view modifier = {};
  int selector = -1;  // sparse
};

unsigned depth_of(std::string_view type) {
  return type == "f16" || type == "bf16" ? 16 : type == "tf32" ? 8 : type == "b1" ? 256 : 32;
}

// Two of four elements, in order; for tf32 one of two.
uint32_t metadata(std::string_view type, std::mt19937& random) {
  static constexpr std::array<uint32_t, 6> kPairs = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe};
  uint32_t word = 0;
  for (unsigned i = 0; i < 8; ++i)
    word |= (type == "tf32" ? random() % 2 ? 0xeu : 0x4u : kPairs[random() % kPairs.size()]) << 4 * i;
  return word;
}

// Threads load the matrices, multiply them, and store D.
MatrixCase warpgroup_case(const Warpgroup& w, std::mt19937& random) {
  const bool sparse = w.selector >= 0, half = w.d == "f16", floating = w.a != "s8" && w.a != "u8" && w.a != "b1";
  const unsigned count = half ? w.n / 4 : w.n / 2, depth = depth_of(w.a) * (sparse ? 2 : 1);
  const std::string_view kind = w.d == "f32" ? "f32" : "b32";
  const std::string shape = fmt::format("m64n{}k{}", w.n, depth);
  MatrixCase out;
  out.name = fmt::format("wgmma{} {} {} {} {}, rows of {}:{} {}:{} {}{}{}", sparse ? ".sp" : "", shape, w.d, w.a, w.b,
                         w.of_a.swizzle, w.of_b.swizzle, w.a_columns ? "columns" : "rows",
                         w.b_columns ? "columns" : "rows", w.a_in_registers ? "A in registers " : "",
                         w.begin ? fmt::format("from byte {} ", w.begin) : "", w.modifier);
  if (sparse) out.name += fmt::format(" selector {}", w.selector);
  out.threads = 128;
  out.in = small_numbers(w.a, kMatrixBytes, random);
  for (unsigned thread = 0; thread < 128; ++thread) {
    const uint32_t word = metadata(w.a, random);
    const auto* raw = reinterpret_cast<const uint8_t*>(&word);
    out.in.insert(out.in.end(), raw, raw + 4);
  }
  out.out_bytes = size_t{128} * count * 4;
  std::string text = std::string(kHeader) + fmt::format(".shared .align 1024 .b8 tile[{}];\n", kMatrixBytes) +
                     ".visible .entry matrix(.param .u64 in, .param .u64 out)\n{\n"
                     ".reg .pred %more, %keeps;\n.reg .b64 %in, %out, %at, %base, %da, %db;\n"
                     ".reg .b32 %thread, %tile, %word, %offset, %to, %e, %small, %a<4>;\n";
  text += fmt::format(".reg .{} %d<{}>;\n", kind, count);
  text += fmt::format(
      "ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nmov.u32 %thread, %tid.x;\nmov.u32 %tile, tile;\n"
      "shl.b32 %offset, %thread, 2;\nmore:\ncvt.u64.u32 %at, %offset;\nadd.u64 %at, %at, %in;\n"
      "ld.global.b32 %word, [%at];\nadd.u32 %to, %tile, %offset;\nst.shared.b32 [%to], %word;\n"
      "add.u32 %offset, %offset, 512;\nsetp.lt.u32 %more, %offset, {0};\n@%more bra more;\n"
      "bar.sync 0;\nfence.proxy.async;\nbar.sync 0;\n"
      "mul.wide.u32 %at, %thread, 16;\nadd.u64 %at, %at, %in;\nld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%at];\n"
      "mul.wide.u32 %at, %thread, 4;\nadd.u64 %at, %at, %in;\nld.global.b32 %e, [%at+{0}];\n"
      "cvt.u64.u32 %base, %tile;\nand.b64 %base, %base, 0x3ffff;\nshr.b64 %base, %base, 4;\n"
      "add.u64 %da, %base, {1:#x};\nadd.u64 %db, %base, {2:#x};\n",
      kMatrixBytes, w.of_a.bits(w.begin), w.of_b.bits(kBBegin + w.begin));
  for (unsigned i = 0; i < count; ++i) {
    text += fmt::format("add.u32 %small, %thread, {};\n", i);
    if (half)
      text += fmt::format("mov.b32 %d{}, 0x3c004000;\n", i);
    else if (kind == "f32")
      text += fmt::format("and.b32 %small, %small, 7;\ncvt.rn.f32.u32 %d{}, %small;\n", i);
    else
      text += fmt::format("mov.b32 %d{}, %small;\n", i);
  }
  text += fmt::format("setp.eq.u32 %keeps, {}, 1;\nwgmma.fence.sync.aligned;\n", w.keeps ? 1 : 0);
  text += fmt::format("wgmma.mma_async{}.sync.aligned.{}{}.{}.{}.{}{} {}, {}, %db{}, %keeps", sparse ? ".sp" : "",
                      shape, w.modifier, w.d, w.a, w.b, w.a == "b1" ? ".and.popc" : "", registers("d", count),
                      w.a_in_registers ? registers("a", 4) : "%da", sparse ? fmt::format(", %e, {}", w.selector) : "");
  if (floating) text += fmt::format(", {}, {}", w.scale_a, w.scale_b);
  if (w.a == "f16" || w.a == "bf16") {
    if (!w.a_in_registers) text += w.a_columns ? ", 1" : ", 0";
    text += w.b_columns ? ", 1" : ", 0";
  }
  text += fmt::format(
      ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nmul.wide.u32 %at, %thread, {};\n"
      "add.u64 %at, %at, %out;\n",
      count * 4);
  for (unsigned i = 0; i < count; ++i) text += fmt::format("st.global.{} [%at+{}], %d{};\n", kind, i * 4, i);
  out.ptx = text + "ret;\n}\n";
  return out;
}

MatrixCase sparse_case(std::string_view a, std::string_view d, unsigned depth, unsigned count, unsigned selector,
                       std::mt19937& random) {
  MatrixCase out;
  out.name = fmt::format("mma.sp m16n8k{} {} {} selector {}", depth, d, a, selector);
  const unsigned results = d == "f16" ? 2 : 4;
  const std::string_view kind = d == "f32" ? "f32" : "b32", of_c = d == "f16" ? "f16" : d == "f32" ? "f32" : "s8";
  out.out_bytes = size_t{32} * results * 4;
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (const auto& part :
         {small_numbers(a == "s4" || a == "u4" ? "s8" : a, 32, random), small_numbers(of_c, 16, random)})
      out.in.insert(out.in.end(), part.begin(), part.end());
    const uint32_t word = metadata(a, random);
    const auto* raw = reinterpret_cast<const uint8_t*>(&word);
    out.in.insert(out.in.end(), raw, raw + 4);
  }
  std::string text = std::string(kHeader) +
                     ".visible .entry matrix(.param .u64 in, .param .u64 out)\n{\n.reg .b64 %in, %out, %at;\n"
                     ".reg .b32 %thread, %e, %a<4>, %b<4>;\n";
  text += fmt::format(".reg .{} %c<4>, %d<4>;\n", kind);
  text +=
      "ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nmov.u32 %thread, %tid.x;\n"
      "mul.wide.u32 %at, %thread, 52;\nadd.u64 %in, %in, %at;\nld.global.b32 %e, [%in+48];\n";
  for (unsigned i = 0; i < 4; ++i)
    text += fmt::format(
        "ld.global.b32 %a{0}, [%in+{1}];\nld.global.b32 %b{0}, [%in+{2}];\nld.global.{4} %c{0}, [%in+{3}];\n", i, 4 * i,
        16 + 4 * i, 32 + 4 * i, kind);
  text += fmt::format("mma.sp::ordered_metadata.sync.aligned.m16n8k{}.row.col.{}.{}.{}.{} {}, {}, {}, {}, %e, {};\n",
                      depth, d, a, a, d, registers("d", results), registers("a", count), registers("b", count),
                      registers("c", results), selector);
  text += fmt::format("mul.wide.u32 %at, %thread, {};\nadd.u64 %out, %out, %at;\n", results * 4);
  for (unsigned i = 0; i < results; ++i) text += fmt::format("st.global.{} [%out+{}], %d{};\n", kind, 4 * i, i);
  out.ptx = text + "ret;\n}\n";
  return out;
}

// fma.rn.oob with each of the 65,536 numbers as first, second and third operand, and as first operand with .relu: it
// determines which NaN is the one of a tensor's outside.
MatrixCase out_of_bounds_case(std::string_view type) {
  MatrixCase out;
  out.name = fmt::format("fma.rn.oob.{} of every number", type);
  out.threads = 1024;
  out.in.resize(16);
  out.out_bytes = size_t{65536} * 8;
  out.ptx = std::string(kHeader) + fmt::format(R"(.visible .entry matrix(.param .u64 in, .param .u64 out)
{{
.reg .pred %p;
.reg .b64 %out, %at;
.reg .b32 %i;
.reg .b16 %a, %x, %y, %d<4>;
ld.param.u64 %out, [out];
mov.u32 %i, %tid.x;
mov.b16 %x, {0};
mov.b16 %y, {1};
again:
cvt.u16.u32 %a, %i;
fma.rn.oob.{2} %d0, %a, %x, %y;
fma.rn.oob.{2} %d1, %x, %a, %y;
fma.rn.oob.{2} %d2, %x, %y, %a;
fma.rn.oob.relu.{2} %d3, %a, %x, %y;
mul.wide.u32 %at, %i, 8;
add.u64 %at, %out, %at;
st.global.v4.b16 [%at], {{%d0, %d1, %d2, %d3}};
add.u32 %i, %i, 1024;
setp.lt.u32 %p, %i, 65536;
@%p bra again;
ret;
}}
)",
                                               type == "f16" ? "0x3e00" : "0x3fc0", type == "f16" ? "0xb400" : "0xbe80",
                                               type);
  return out;
}

// istypep of the addresses of a texture, a surface and a sampler, and of a number that is no address.
MatrixCase pointer_types_case() {
  MatrixCase out;
  out.name = "istypep of addresses of variables";
  out.in.resize(16);
  out.out_bytes = 48;
  out.ptx = std::string(kHeader) +
            ".global .texref t;\n.global .surfref s;\n.global .u64 other;\n"
            ".visible .entry matrix(.param .u64 in, .param .u64 out)\n{\n"
            ".reg .pred %p<3>;\n.reg .b64 %out, %at<4>;\n.reg .b32 %r<3>;\nld.param.u64 %out, [out];\n"
            "mov.u64 %at0, t;\nmov.u64 %at1, s;\nmov.u64 %at2, other;\nmov.u64 %at3, 5;\n";
  out.threads = 1;
  for (unsigned i = 0; i < 4; ++i) {
    static constexpr const char* kTypes[] = {"texref", "surfref", "samplerref"};
    for (unsigned k = 0; k < 3; ++k)
      out.ptx += fmt::format("istypep.{1} %p{2}, %at{0};\nselp.u32 %r{2}, 1, 0, %p{2};\n", i, kTypes[k], k);
    for (unsigned k = 0; k < 3; ++k) out.ptx += fmt::format("st.global.u32 [%out+{}], %r{};\n", 16 * k + 4 * i, k);
  }
  out.ptx += "ret;\n}\n";
  return out;
}

// B contains counting halves and is multiplied with a unit matrix, so that D shows from where each element of B was
// read. A loop over descriptors with every swizzle and order, start within 1,024 bytes, and base offset.
MatrixCase base_offset_case() {
  MatrixCase out;
  out.name = "wgmma reads where base offsets say";
  out.threads = 128;
  uint32_t count = 0;
  for (unsigned swizzle = 1; swizzle < 4; ++swizzle)
    for (uint64_t columns = 0; columns < 2; ++columns)
      for (uint32_t line = 0; line < 8; ++line)
        for (uint64_t base = 0; base < 8; ++base, ++count) {
          const uint32_t row = 256u >> swizzle;
          const Descriptor of_b{columns ? 16 * row : 16, 8 * row, swizzle};
          const std::array<uint64_t, 2> each{of_b.bits(128 * line) | base << 49, columns};
          const auto* raw = reinterpret_cast<const uint8_t*>(each.data());
          out.in.insert(out.in.end(), raw, raw + sizeof each);
        }
  out.out_bytes = size_t{count} * 1024;
  const auto multiply = [](int columns) {
    return fmt::format(
        "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {}, %da, %db, %keeps, 1, 1, 0, "
        "{};\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
        registers("d", 8), columns);
  };
  out.ptx = std::string(kHeader) +
            ".shared .align 1024 .b8 tile[16384];\n.visible .entry matrix(.param .u64 in, .param .u64 out)\n{\n"
            ".reg .pred %more, %one, %columns, %keeps;\n.reg .b64 %in, %out, %at, %base, %da, %db, %rest, %order;\n"
            ".reg .b32 %thread, %tile, %i, %to, %row;\n.reg .b16 %half;\n.reg .f32 %d<8>;\n"
            "ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nmov.u32 %thread, %tid.x;\nmov.u32 %tile, tile;\n"
            "mov.u32 %i, %thread;\nfill:\nshl.b32 %to, %i, 1;\nadd.u32 %to, %to, %tile;\ncvt.rn.f16.u32 %half, %i;\n"
            "st.shared.b16 [%to], %half;\nmov.b16 %half, 0;\nst.shared.b16 [%to+12288], %half;\nadd.u32 %i, %i, 128;\n"
            "setp.lt.u32 %more, %i, 2048;\n@%more bra fill;\nbar.sync 0;\n"
            // Row m of A, element m, in atoms of 8 rows of 16 bytes.
            "shr.u32 %row, %thread, 3;\nmul.lo.u32 %to, %row, 384;\nand.b32 %row, %thread, 7;\n"
            "mad.lo.u32 %to, %row, 18, %to;\nadd.u32 %to, %to, %tile;\nmov.b16 %half, 0x3c00;\n"
            "setp.lt.u32 %one, %thread, 16;\n@%one st.shared.b16 [%to+12288], %half;\nbar.sync 0;\nfence.proxy.async;\n"
            "bar.sync 0;\ncvt.u64.u32 %base, %tile;\nand.b64 %base, %base, 0x3ffff;\nshr.b64 %base, %base, 4;\n" +
            fmt::format("add.u64 %da, %base, {:#x};\n", Descriptor{128, 256, 0}.bits(12288)) +
            "setp.ne.u32 %keeps, 0, 0;\nsetp.lt.u32 %one, %thread, 32;\nmul.wide.u32 %at, %thread, 32;\n"
            "add.u64 %out, %out, %at;\nmov.u32 %i, 0;\nnext:\nld.global.v2.u64 {%rest, %order}, [%in];\n"
            "add.u64 %db, %base, %rest;\nsetp.ne.u64 %columns, %order, 0;\n@%columns bra across;\n" +
            multiply(0) + "bra.uni done;\nacross:\n" + multiply(1) +
            "done:\n@%one st.global.v4.f32 [%out], {%d0, %d1, %d2, %d3};\n"
            "@%one st.global.v4.f32 [%out+16], {%d4, %d5, %d6, %d7};\nadd.u64 %out, %out, 1024;\n"
            "add.u64 %in, %in, 16;\nadd.u32 %i, %i, 1;\n" +
            fmt::format("setp.lt.u32 %more, %i, {};\n@%more bra next;\nret;\n}}\n", count);

  return out;
}

// Half of the threads leave early; the others take one of four paths.
MatrixCase control_case() {
  MatrixCase out;
  out.name = "brx.idx and exit";
  out.in.resize(16);
  out.out_bytes = 128;
  out.ptx = std::string(kHeader) + R"(.visible .entry matrix(.param .u64 in, .param .u64 out)
{
.reg .pred %p;
.reg .b64 %out, %at;
.reg .b32 %thread, %way, %value;
ld.param.u64 %out, [out];
mov.u32 %thread, %tid.x;
mul.wide.u32 %at, %thread, 4;
add.u64 %at, %out, %at;
mov.b32 %value, 7;
st.global.b32 [%at], %value;
and.b32 %way, %thread, 1;
setp.ne.u32 %p, %way, 0;
@%p exit;
shr.u32 %way, %thread, 1;
and.b32 %way, %way, 3;
ways: .branchtargets way0, way1, way2, way3;
brx.idx %way, ways;
way0:
add.u32 %value, %value, 10;
bra.uni way2;
way1:
mul.lo.u32 %value, %thread, 3;
way2:
add.u32 %value, %value, 100;
way3:
st.global.b32 [%at], %value;
ret;
}
)";
  return out;
}

// Registers keep their values while their number is reduced and increased.
MatrixCase register_count_case() {
  MatrixCase out;
  out.name = "setmaxnreg";
  out.threads = 128;
  out.in.resize(16);
  out.out_bytes = 512;
  out.ptx = std::string(kHeader) + R"(.visible .entry matrix(.param .u64 in, .param .u64 out) .reqntid 128
.maxnreg 128
{
.reg .b64 %out, %at;
.reg .b32 %thread, %value;
ld.param.u64 %out, [out];
mov.u32 %thread, %tid.x;
mul.wide.u32 %at, %thread, 4;
add.u64 %at, %out, %at;
mul.lo.u32 %value, %thread, 5;
setmaxnreg.dec.sync.aligned.u32 40;
add.u32 %value, %value, 1;
setmaxnreg.inc.sync.aligned.u32 120;
st.global.b32 [%at], %value;
ret;
}
)";
  return out;
}

// All four parts of a special register at once.
MatrixCase special_parts_case() {
  MatrixCase out;
  out.name = "mov.v4 of special registers";
  out.in.resize(16);
  out.threads = 64;
  out.out_bytes = size_t{64} * 64;
  out.ptx = std::string(kHeader) +
            ".visible .entry matrix(.param .u64 in, .param .u64 out)\n{\n.reg .b64 %out, %at;\n"
            ".reg .b32 %thread, %r<4>;\nld.param.u64 %out, [out];\nmov.u32 %thread, %tid.x;\n"
            "mul.wide.u32 %at, %thread, 64;\nadd.u64 %at, %out, %at;\n";
  unsigned at = 0;
  for (const char* name : {"tid", "ntid", "ctaid", "nctaid"})
    out.ptx +=
        fmt::format("mov.v4.u32 {{%r0, %r1, %r2, %r3}}, %{0};\nst.global.v4.b32 [%at+{1}], {{%r0, %r1, %r2, %r3}};\n",
                    name, 16 * at++);
  out.ptx += "ret;\n}\n";
  return out;
}

}  // namespace

std::vector<uint8_t> small_numbers(std::string_view type, size_t size_bytes, std::mt19937& random) {
  static constexpr std::array<float, 7> kValues = {0, 1, -1, 2, -2, 0.5F, -0.5F};
  std::vector<uint8_t> bytes(size_bytes);
  const auto put = [&](size_t at, auto value) { std::memcpy(bytes.data() + at, &value, sizeof value); };
  const size_t step = type == "f64" ? 8 : type == "tf32" || type == "f32" ? 4 : type == "f16" || type == "bf16" ? 2 : 1;
  for (size_t at = 0; at < size_bytes; at += step) {
    const float value = kValues[random() % kValues.size()];
    const auto bits = std::bit_cast<uint32_t>(value);
    const uint32_t exponent = bits << 1 ? (bits >> 23 & 0xff) - 127 : 0;  // the mantissa is 0
    const auto eighth = [&](unsigned bias, unsigned mantissa) {
      return static_cast<uint8_t>(bits << 1 ? (bits >> 31) << 7 | (exponent + bias) << mantissa : 0);
    };
    if (type == "f64")
      put(at, double{value});
    else if (type == "f32")
      put(at, bits);
    else if (type == "tf32")
      put(at, bits | (random() & 0x1fff));  // the low bits are ignored
    else if (type == "bf16")
      put(at, static_cast<uint16_t>(bits >> 16));
    else if (type == "f16")
      put(at, std::bit_cast<uint16_t>(static_cast<Half>(value)));
    else
      bytes[at] = type == "e4m3" ? eighth(7, 3) : type == "e5m2" ? eighth(15, 2) : static_cast<uint8_t>(random());
  }
  return bytes;
}

std::vector<MatrixCase> matrix_cases() {
  std::mt19937 random(20);
  std::vector<MatrixCase> cases;
  const auto add = [&](const Warpgroup& each) { cases.push_back(warpgroup_case(each, random)); };
  // Distances that have a meaning, and the one that a swizzle ignores.
  static constexpr std::array<Descriptor, 4> kRows = {{{128, 272, 0}, {16, 2048, 1}, {32, 512, 2}, {16, 256, 3}}};
  static constexpr std::array<Descriptor, 4> kColumns = {
      {{1024, 128, 0}, {4096, 1024, 1}, {2048, 512, 2}, {512, 256, 3}}};
  for (unsigned i = 0; i < 4; ++i) {
    add({"f32", "f16", "f16", 64, kRows[i], kRows[(i + 1) % 4]});
    add({"f32", "bf16", "bf16", 128, kColumns[i], kColumns[(i + 1) % 4], 0, true, true});
    add({"f32", "f16", "f16", 32, kRows[i], kColumns[i], 0, false, true});
  }
  const Descriptor plain{128, 256, 0}, wide{16, 1024, 1};
  add({"f32", "f16", "f16", 8, plain, plain});
  add({"f32", "f16", "f16", 256, plain, plain});
  add({"f16", "f16", "f16", 64, plain, plain, 0, false, false, false, true, -1, 1});
  add({"f32", "bf16", "bf16", 40, plain, plain, 0, false, false, false, true, 1, -1});
  add({"f32", "f16", "f16", 64, plain, plain, 0, false, false, false, false});
  add({"f32", "f16", "f16", 64, plain, plain, 0, false, false, true});
  add({"f32", "f16", "f16", 64, wide, wide, 32});
  add({"f32", "f16", "f16", 64, wide, wide, 96});
  for (const auto& [a, b, d] : std::initializer_list<std::array<std::string_view, 3>>{{"tf32", "tf32", "f32"},
                                                                                      {"e4m3", "e4m3", "f32"},
                                                                                      {"e5m2", "e5m2", "f16"},
                                                                                      {"s8", "s8", "s32"},
                                                                                      {"u8", "u8", "s32"},
                                                                                      {"b1", "b1", "s32"}}) {
    add({d, a, b, 64, plain, wide});
    add({d, a, b, 24, wide, plain, 0, false, false, true});
  }
  add({"s32", "u8", "s8", 64, plain, plain});
  add({"s32", "s8", "s8", 64, plain, plain, 0, false, false, false, true, 1, 1, ".satfinite"});
  for (const int selector : {0, 1}) {
    add({"f32", "f16", "f16", 64, plain, plain, 0, false, false, selector == 1, true, 1, 1, "", selector});
    add({"f32", "tf32", "tf32", 64, plain, wide, 0, false, false, selector == 0, true, 1, 1, "", selector});
  }
  add({"f32", "e4m3", "e4m3", 64, plain, plain, 0, false, false, false, true, 1, 1, "", 0});
  add({"s32", "s8", "s8", 64, wide, plain, 0, false, false, true, true, 1, 1, "", 0});
  struct Sparse {
    std::string_view a, d;
    unsigned depth, count, selectors;
  };
  for (const Sparse& each : std::initializer_list<Sparse>{{"f16", "f32", 16, 2, 4},
                                                          {"f16", "f16", 32, 4, 2},
                                                          {"bf16", "f32", 32, 4, 2},
                                                          {"tf32", "f32", 8, 2, 4},
                                                          {"tf32", "f32", 16, 4, 2},
                                                          {"s8", "s32", 32, 2, 2},
                                                          {"u8", "s32", 64, 4, 1},
                                                          {"s4", "s32", 64, 2, 2},
                                                          {"u4", "s32", 128, 4, 1},
                                                          {"e4m3", "f32", 64, 4, 1},
                                                          {"e5m2", "f32", 64, 4, 1}})
    for (unsigned selector = 0; selector < each.selectors; ++selector)
      cases.push_back(sparse_case(each.a, each.d, each.depth, each.count, selector, random));
  for (const std::string_view type : {"f16", "bf16"}) cases.push_back(out_of_bounds_case(type));
  cases.push_back(pointer_types_case());
  cases.push_back(base_offset_case());
  // After the others, whose bytes are recorded.
  for (const bool in_registers : {false, true}) {
    if (in_registers) {
      add({"f16", "f16", "f16", 64, plain, plain, 0, false, false, true});
      add({"f32", "bf16", "bf16", 64, plain, plain, 0, false, false, true});
      add({"f32", "e4m3", "e4m3", 64, plain, plain, 0, false, false, true, true, 1, 1, "", 0});
    } else {
      add({"s32", "u8", "u8", 64, plain, plain, 0, false, false, false, true, 1, 1, "", 0});
    }
    add({"f16", "f16", "f16", 64, plain, plain, 0, false, false, in_registers, true, 1, 1, "", 1});
    add({"f32", "bf16", "bf16", 64, plain, plain, 0, false, false, in_registers, true, 1, 1, "", 0});
    add({"f16", "e5m2", "e5m2", 64, plain, plain, 0, false, false, in_registers, true, 1, 1, "", 0});
  }
  for (const Sparse& each :
       std::initializer_list<Sparse>{{"f16", "f16", 16, 2, 4}, {"f16", "f32", 32, 4, 2}, {"bf16", "f32", 16, 2, 4}})
    for (unsigned selector = 0; selector < each.selectors; ++selector)
      cases.push_back(sparse_case(each.a, each.d, each.depth, each.count, selector, random));
  add_wmma_cases(cases);
  cases.push_back(control_case());
  cases.push_back(register_count_case());
  cases.push_back(special_parts_case());
  return cases;
}

Result<std::vector<uint8_t>> emulate_matrix(const MatrixCase& each) {
  emulator::Device device;
  auto program = emulator::Program::load_text(device, each.ptx, "matrix.ptx");
  if (!program) return tl::unexpected(program.error());
  auto in = device.allocate(each.in.size(), "in"), out = device.allocate(each.out_bytes, "out");
  if (!in || !out) return fail("no memory for the matrices");
  (void)device.write(*in, std::as_bytes(std::span(each.in)));
  (void)device.fill(*out, std::byte{0}, each.out_bytes);
  const std::vector<emulator::Argument> arguments{emulator::Argument::of(*in), emulator::Argument::of(*out)};
  auto outcome =
      emulator::launch(*program, "matrix", {.block = {each.threads}}, arguments, {.checks = emulator::kCheckNone});
  if (!outcome) return tl::unexpected(outcome.error());
  if (!outcome->ok()) return fail(outcome->faults.front().message);
  std::vector<uint8_t> bytes(each.out_bytes);
  (void)device.read(*out, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

}  // namespace ptxkit::testing
