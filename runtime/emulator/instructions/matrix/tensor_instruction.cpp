// See tensor_instruction.hpp.
#include "runtime/emulator/instructions/matrix/tensor_instruction.hpp"

#include <fmt/format.h>

namespace ptxkit::emulator {

using ptx::Type;

unsigned TensorInstruction::dense_depth() const {
  switch (kind) {
    case TensorKind::f16:
      return 16;
    case TensorKind::tf32:
      return 8;
    case TensorKind::mxf4:
    case TensorKind::mxf4nvf4:
      return field(31, 1) ? 96 : 64;
    default:
      return 32;
  }
}

Type TensorInstruction::element(uint32_t format) const {
  static constexpr Type kNarrow[] = {Type::e4m3, Type::e5m2, Type::none, Type::e2m3,
                                     Type::e3m2, Type::e2m1, Type::none, Type::none};
  switch (kind) {
    case TensorKind::f16:
      return format == 0 ? Type::f16 : format == 1 ? Type::bf16 : Type::none;
    case TensorKind::tf32:
      return format == 2 ? Type::tf32 : Type::none;
    case TensorKind::f8f6f4:
    case TensorKind::mxf8f6f4:
      return kNarrow[format];
    case TensorKind::i8:
      return format == 0 ? Type::u8 : format == 1 ? Type::s8 : Type::none;
    default:
      return format == 1 ? Type::e2m1 : Type::none;
  }
}

Type TensorInstruction::d() const {
  if (is_scaled()) return Type::f32;
  const uint32_t format = field(4, 2);
  if (kind == TensorKind::i8) return format == 2 ? Type::s32 : Type::none;
  return format == 1 ? Type::f32 : format == 0 && kind != TensorKind::tf32 ? Type::f16 : Type::none;
}

namespace {

std::string shape_error(const TensorInstruction& is, const TensorForm& form) {
  const unsigned m = is.m(), n = is.n();
  if (form.is_stationary) {
    const unsigned most = form.is_sparse ? 128 : 256;
    if (m != 32 && m != 64 && m != 128) return fmt::format("M is {}, expected 32, 64 or 128", m);
    if (n != 64 && n != 128 && n != most) return fmt::format("N is {}, expected 64, 128 or {}", n, most);
    return {};
  }
  const bool only_most = is.is_scaled() && (!form.of_pair || form.is_sparse);
  const unsigned most = form.of_pair ? 256 : 128, least = only_most ? most : most / 2;
  if (m != least && m != most)
    return only_most ? fmt::format("M is {}, expected {}", m, most)
                     : fmt::format("M is {}, expected {} or {}", m, least, most);
  unsigned step = form.of_pair ? 16 : 8;
  if (is.kind == TensorKind::i8 && (form.of_pair || n > 32)) step *= 2;
  if (n == 0 || n > 256 || n % step) return fmt::format("N is {}, expected {} to 256 by {}", n, step, step);
  return {};
}

}  // namespace

std::string instruction_error(const TensorInstruction& is, const TensorForm& form) {
  if (is.is_sparse() != form.is_sparse)
    return is.is_sparse() ? "it is that of a sparse product" : "it is that of a product that is not sparse";
  const Type a = is.a(), b = is.b();
  if (a == Type::none || b == Type::none || is.d() == Type::none) return "its kind does not have these formats";
  if (std::string shape = shape_error(is, form); !shape.empty()) return shape;
  if (is.dense_depth() == 96 && (form.is_sparse || form.names_factors || is.m() != (form.of_pair ? 256 : 128)))
    return fmt::format("K is 96, which a {} with .block16 or .block32 has where M is {}",
                       form.is_sparse ? "dense product" : "product", form.of_pair ? 256 : 128);
  if ((ptx::bit_width(a) < 8 && is.a_columns()) || (ptx::bit_width(b) < 8 && is.b_columns()))
    return "elements of 4 and 6 bits cannot be transposed";
  if (is.kind == TensorKind::i8 && (is.field(13, 1) || is.field(14, 1))) return "integers are not negated";
  if (form.is_sparse && !is.is_scaled()) {
    const bool of_bytes = is.kind == TensorKind::f8f6f4 || is.kind == TensorKind::i8;
    if (of_bytes && is.selector()) return fmt::format("sparsity selector {}: bytes have 0 only", is.selector());
    if (is.selector() > 1)
      return fmt::format("sparsity selector {} is not emulated: the ISA shows its columns in figures only",
                         is.selector());
  }
  if (!is.is_scaled()) return {};
  for (const unsigned first : {is.a_factors(), is.b_factors()})
    if (const unsigned step = is.dense_depth() == 96 ? form.factor_count / 2 : form.factor_count; first % step)
      return fmt::format("{} factors in a row do not begin at byte {} of a word",
                         is.dense_depth() == 96 ? step * 3 : step, first);
  if (!is.has_ue8m0() && !(is.kind == TensorKind::mxf4nvf4 && form.factor_count == 4))
    return "factors of ue4m3 belong to .kind::mxf4nvf4 with blocks of 16";
  return {};
}

std::string matrix_descriptor_error(uint64_t descriptor, TensorKind kind, bool across_k) {
  const auto swizzle = static_cast<unsigned>(descriptor >> 61);
  const bool wide_chunks = swizzle == 1;
  if (swizzle == 3 || swizzle == 5 || swizzle == 7) return fmt::format("there is no swizzle mode {}", swizzle);
  if (wide_chunks && !(across_k && kind == TensorKind::tf32))
    return "chunks of 32 bytes belong to transposed matrices of tf32";
  if (across_k && kind == TensorKind::tf32 && !wide_chunks)
    return "transposed matrices of tf32 lie in chunks of 32 bytes";
  if (descriptor >> 52 & 1 && (swizzle != 2 || across_k || descriptor >> 49 & 7))
    return "a second address belongs to rows along K that are swizzled in spans of 128 bytes, without a base offset";
  return {};
}

// The fields are as in the ISA's examples; its table swaps the two spans.
bool is_zero_column(uint64_t descriptor, unsigned m, unsigned n, unsigned column) {
  const auto field = [&](unsigned first, uint64_t mask) { return static_cast<unsigned>(descriptor >> first & mask); };
  if (!field(39, 1)) return false;
  const unsigned width = n / (m == 128 ? 1 : m == 64 ? 2 : 4), part = column / width;
  const unsigned zeros = field(40, 0xff) + 1, used = field(48, 0xff) + 1;
  const unsigned place = (column % width + field(8 * part, 0xff)) % (zeros + used);
  return field(32 + part, 1) ? place < zeros : place >= used;
}

}  // namespace ptxkit::emulator
