// Programs of wmma from the ISA table: A, B and C are loaded and multiplied, D is stored. The ISA does not define which
// lane has which element; the matrices must be the GPU's bit for bit.
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/names.hpp"
#include "fkr_tests/device/matrix_cases.hpp"
#include "fkr_tests/device/spelled_form.hpp"

namespace ptxkit::testing {

namespace {

using ptx::Type;

constexpr unsigned kMatrixBytes = 4096;  // of each matrix

struct Shape {
  unsigned m = 0, n = 0, k = 0;
};
Shape shape_of(const SpelledForm& form) {
  Shape shape;
  for (const std::string& word : form.words)
    if (std::sscanf(word.c_str(), "m%un%uk%u", &shape.m, &shape.n, &shape.k) == 3) break;
  return shape;
}

// A matrix in memory. Its lines are rows or columns.
struct Matrix {
  std::string_view type;
  bool by_columns = false;
  unsigned rows = 0, columns = 0;
  bool padded = false;  // 16 bytes between lines, and the stride is an operand
  std::string stride() const {
    const unsigned bits = ptx::bit_width(ptx::find_type(type));
    return padded ? fmt::format(", {}", (by_columns ? rows : columns) + 128 / bits) : "";
  }
};

std::string list(std::string_view name, unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i) text += fmt::format("{}%{}{}", i ? ", " : "", name, i);
  return "{" + text + "}";
}

std::vector<uint8_t> values(std::string_view type, std::mt19937& random) {
  if (type != "s32")
    return small_numbers(type == "s4" || type == "u4" || type == "b1" ? "s8" : type, kMatrixBytes, random);
  std::vector<uint8_t> bytes(kMatrixBytes);  // a third of them near each limit
  for (size_t at = 0; at < bytes.size(); at += 4) {
    const auto near = static_cast<uint32_t>(random() % 500), place = static_cast<uint32_t>(random() % 3);
    const uint32_t value = place == 0 ? near : place == 1 ? 0x7fffffff - near : 0x80000000 + near;
    std::memcpy(&bytes[at], &value, 4);
  }
  return bytes;
}

MatrixCase wmma_case(const SpelledForm& form, std::mt19937& random) {
  const Shape shape = shape_of(form);
  std::vector<std::string_view> layouts, types;
  for (const std::string& word : form.words) {
    if (word == "row" || word == "col") layouts.push_back(word);
    if (ptx::find_word(word).kind == ptx::Word::Kind::type) types.push_back(word);
  }
  const std::string_view of_a = types.size() == 4 ? types[1] : "f16";
  const unsigned turn = form.number;
  const Matrix a{of_a, layouts[0] == "col", shape.m, shape.k, turn % 2 == 1},
      b{of_a, layouts[1] == "col", shape.k, shape.n, turn % 4 == 2},
      c{types.back(), turn % 3 == 1, shape.m, shape.n, turn % 3 == 0},
      d{types.front(), turn % 3 == 2, shape.m, shape.n, turn % 5 > 2};
  static constexpr const char* kSpaces[] = {"", ".global", ".shared", ".shared::cta"};
  const std::string space = kSpaces[turn % 4];
  const bool shared = turn % 4 > 1;
  std::string shape_word = fmt::format("m{}n{}k{}", shape.m, shape.n, shape.k);

  MatrixCase out;
  out.name = form.spelling + (space.empty() ? ", generic" : ", " + space.substr(1));
  for (const Matrix* each : {&a, &b, &c}) {
    const std::vector<uint8_t> bytes = values(each->type, random);
    out.in.insert(out.in.end(), bytes.begin(), bytes.end());
  }
  out.out_bytes = kMatrixBytes;
  std::vector<const ptx::OperandSpec*> fragments;
  for (size_t i = form.first; i < form.specs.size(); ++i) fragments.push_back(&form.specs[i]);
  static constexpr const char* kNames[] = {"d", "a", "b", "c"};
  std::string declarations;
  for (unsigned i = 0; i < 4; ++i) {
    const Type type = fragments[i]->type;
    declarations += fmt::format(".reg .{} %{}<{}>;\n",
                                type == Type::f32   ? "f32"
                                : type == Type::f64 ? "f64"
                                                    : "b32",
                                kNames[i], fragments[i]->count);
  }
  const auto load = [&](const Matrix& matrix, unsigned which, unsigned at) {
    return fmt::format("wmma.load.{}.sync.aligned.{}.{}{}.{} {}, [%at+{}]{};\n", kNames[which],
                       matrix.by_columns ? "col" : "row", shape_word, space, matrix.type,
                       list(kNames[which], fragments[which]->count), at, matrix.stride());
  };
  out.ptx =
      ".version 8.6\n.target sm_90a\n.address_size 64\n.shared .align 128 .b8 tile[16384];\n"
      ".visible .entry matrix(.param .u64 in, .param .u64 out)\n{\n.reg .pred %more;\n.reg .b64 %in, %out, %at, %to, "
      "%i;\n"
      ".reg .b32 %thread, %word;\n" +
      declarations + "ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nmov.u32 %thread, %tid.x;\n";
  if (shared)
    out.ptx += fmt::format(
        "mul.wide.u32 %i, %thread, 4;\nfill:\nadd.u64 %at, %in, %i;\nld.global.b32 %word, [%at];\nmov.u64 %to, tile;\n"
        "add.u64 %to, %to, %i;\nst.shared.b32 [%to], %word;\nadd.u64 %i, %i, 128;\nsetp.lt.u64 %more, %i, {};\n"
        "@%more bra fill;\nbar.sync 0;\nmov.u64 %at, tile;\nadd.u64 %to, %at, {};\n",
        3 * kMatrixBytes, 3 * kMatrixBytes);
  else
    out.ptx += "mov.u64 %at, %in;\nmov.u64 %to, %out;\n";
  out.ptx +=
      load(a, 1, 0) + load(b, 2, kMatrixBytes) + load(c, 3, 2 * kMatrixBytes) +
      fmt::format("{} {}, {}, {}, {};\n", form.spelling, list("d", fragments[0]->count), list("a", fragments[1]->count),
                  list("b", fragments[2]->count), list("c", fragments[3]->count)) +
      fmt::format("wmma.store.d.sync.aligned.{}.{}{}.{} [%to], {}{};\n", d.by_columns ? "col" : "row", shape_word,
                  space, d.type, list("d", fragments[0]->count), d.stride());
  // Shared memory that D does not cover is initialised.
  if (shared) {
    const unsigned lines = d.by_columns ? shape.n : shape.m, line = d.by_columns ? shape.m : shape.n;
    const unsigned bytes = ptx::byte_width(ptx::find_type(d.type)),
                   distance = (line + (d.padded ? 16 / bytes : 0)) * bytes;
    out.ptx += "bar.sync 0;\n";
    for (unsigned i = 0; i < lines; ++i)
      out.ptx += fmt::format(
          "mul.wide.u32 %i, %thread, 4;\nsetp.lt.u64 %more, %i, {0};\nadd.u64 %i, %i, {1};\nadd.u64 %at, %to, %i;\n"
          "@%more ld.shared.b32 %word, [%at];\nadd.u64 %at, %out, %i;\n@%more st.global.b32 [%at], %word;\n",
          line * bytes, i * distance);
  }
  out.ptx += "ret;\n}\n";
  return out;
}

}  // namespace

void add_wmma_cases(std::vector<MatrixCase>& cases) {
  std::mt19937 random(70);
  for (const ptx::Form& form : ptx::forms_of(ptx::Op::wmma)) {
    if (!form.modifiers.starts_with(".mma")) continue;
    for (const SpelledForm& each : spell_form(form, 64)) cases.push_back(wmma_case(each, random));
  }
}

}  // namespace ptxkit::testing
