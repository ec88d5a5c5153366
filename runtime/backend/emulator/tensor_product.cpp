// tcgen05.mma, dense, of one CTA: D = A * B (+ D), D in tensor memory, A there or in shared memory, B in shared memory.
// PTX ISA 9.0, 9.7.16.10. Products are summed as those of mma: in double precision, rounded once.
#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "runtime/backend/emulator/access.hpp"
#include "runtime/backend/emulator/handlers.hpp"
#include "runtime/backend/emulator/matrix_element.hpp"
#include "runtime/backend/emulator/shared_matrix.hpp"
#include "runtime/backend/emulator/tensor_access.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Type;

// What the 32 bits of the instruction descriptor say; PTX ISA 9.0, 9.7.16.4.2.
struct Instruction {
  uint32_t bits;

  uint32_t field(unsigned first, unsigned count) const { return bits >> first & ((1u << count) - 1); }
  bool is_sparse() const { return field(2, 1); }
  bool saturates() const { return field(3, 1); }
  bool negated() const { return field(13, 1) != field(14, 1); }
  bool a_columns() const { return field(15, 1); }  // M is contiguous
  bool b_columns() const { return field(16, 1); }  // N is
  unsigned n() const { return field(17, 6) << 3; }
  unsigned m() const { return field(24, 5) << 4; }

  Type element(TensorKind kind, uint32_t format) const {
    static constexpr Type kNarrow[] = {Type::e4m3, Type::e5m2, Type::none, Type::e2m3,
                                       Type::e3m2, Type::e2m1, Type::none, Type::none};
    switch (kind) {
      case TensorKind::f16:
        return format == 0 ? Type::f16 : format == 1 ? Type::bf16 : Type::none;
      case TensorKind::tf32:
        return format == 2 ? Type::tf32 : Type::none;
      case TensorKind::f8f6f4:
        return kNarrow[format];
      default:
        return format == 0 ? Type::u8 : format == 1 ? Type::s8 : Type::none;
    }
  }
  Type a(TensorKind kind) const { return element(kind, field(7, 3)); }
  Type b(TensorKind kind) const { return element(kind, field(10, 3)); }
  Type d(TensorKind kind) const {
    const uint32_t format = field(4, 2);
    if (kind == TensorKind::i8) return format == 2 ? Type::s32 : Type::none;
    return format == 1 ? Type::f32 : format == 0 && kind != TensorKind::tf32 ? Type::f16 : Type::none;
  }
};

class TensorProduct {
 public:
  TensorProduct(Warp& warp, const Code& code, const TensorForm& form, unsigned lane)
      : warp_(warp),
        code_(code),
        form_(form),
        lane_(lane),
        is_{at<const uint32_t>(warp, form.instruction)[lane]},
        place_(tensor_place(warp, form.d, lane)),
        a_type_(is_.a(form.kind)),
        b_type_(is_.b(form.kind)) {
    static constexpr unsigned kDepths[] = {16, 8, 32, 32};
    depth_ = kDepths[static_cast<size_t>(form.kind)];
    element_.d_type = is_.d(form.kind);
    element_.saturates = is_.saturates();
    element_.in_bytes = form.kind == TensorKind::f8f6f4;
  }

  void run() {
    if (!fits() || !reach_columns(warp_, lane_, place_.column, is_.n(), true)) return;
    Matrix a(is_.m(), depth_), b(depth_, is_.n());
    if (!(form_.a_in_memory ? a_from_memory(a) : from_shared(a, form_.a_descriptor, a_type_, is_.a_columns(), true)) ||
        !from_shared(b, form_.b_descriptor, b_type_, is_.b_columns(), false))
      return;
    multiply(a, b);
    open_columns(warp_, place_.column, is_.n());
  }

 private:
  bool fits() {
    const auto refuse = [&](std::string why) {
      return tensor_fault(warp_, lane_, fmt::format("instruction descriptor {:#010x}: {}", is_.bits, why));
    };
    if (is_.is_sparse()) return refuse("it is that of a sparse product");
    if (a_type_ == Type::none || b_type_ == Type::none || element_.d_type == Type::none)
      return refuse("its formats are none of the kind");
    const unsigned m = is_.m(), n = is_.n(), step = m == 64 ? 8 : 16;
    if (m != 64 && m != 128) return refuse(fmt::format("M is {}, expected 64 or 128", m));
    if (n < step || n > 256 || n % step) return refuse(fmt::format("N is {}, expected {} to 256 by {}", n, step, step));
    if (place_.lane != 0 && !(m == 64 && place_.lane == 16))
      return refuse(fmt::format("D begins at lane {}", place_.lane));
    const bool packed = ptx::bit_width(a_type_) < 8 || ptx::bit_width(b_type_) < 8;
    if ((packed || form_.kind == TensorKind::tf32) && (is_.a_columns() || is_.b_columns()))
      return refuse("a transposed matrix of this type is not emulated");
    return true;
  }

  // Where row r of A and D lies: of 64 rows each warp's lanes have 16.
  unsigned lane_of(unsigned row) const { return is_.m() == 64 ? place_.lane + row / 16 * 32 + row % 16 : row; }

  bool a_from_memory(Matrix& a) {
    const TensorPlace from = tensor_place(warp_, form_.a, lane_);
    const unsigned bits = std::max(8u, ptx::bit_width(a_type_)), per = 32 / bits, columns = depth_ / per;
    if (from.lane != place_.lane)
      return tensor_fault(warp_, lane_, fmt::format("A begins at lane {} and D at lane {}", from.lane, place_.lane));
    if (!reach_columns(warp_, lane_, from.column, columns, true)) return false;
    const TensorMemory& memory = *warp_.cta->tensor_memory;
    for (unsigned row = 0; row < is_.m(); ++row)
      for (unsigned k = 0; k < depth_; ++k) {
        const size_t index = TensorMemory::cell(lane_of(row), from.column + k / per);
        a({row, k}) = number(memory.cells[index], k % per, a_type_, element_);
        undefined_ |= !memory.defined[index];
      }
    return true;
  }

  // A or B. Elements of 4 and 6 bits lie in rows of 16 bytes for each 16 of them, from the lowest bit on.
  bool from_shared(Matrix& out, uint32_t descriptor, Type type, bool columns, bool is_a) {
    const uint64_t bits = at<const uint64_t>(warp_, descriptor)[lane_];
    if (bits >> 61 & 1 || bits >> 49 & 0xf)
      return tensor_fault(warp_, lane_,
                          fmt::format("matrix descriptor {:#018x}: base offsets, absolute distances and chunks of 32 "
                                      "bytes are not emulated",
                                      bits));
    const SharedMatrix matrix(bits);
    const unsigned width = ptx::bit_width(type), across = is_a ? is_.m() : is_.n();
    for (unsigned x = 0; x < across; ++x)
      for (unsigned k = 0; k < depth_; ++k) {
        double value = 0;
        if (width >= 8) {
          const unsigned bytes = width / 8;
          uint32_t word = 0;
          if (!fetch(columns ? matrix.rows_across_k(k, x * bytes) : matrix.rows_along_k(x, k * bytes), bytes, word))
            return false;
          value = number(word, 0, type);
        } else {
          uint32_t low = 0, high = 0;
          const unsigned first = k % 16 * width, row = k / 16 * 16;
          if (!fetch(matrix.rows_along_k(x, row + first / 8), 1, low) ||
              (first % 8 + width > 8 && !fetch(matrix.rows_along_k(x, row + first / 8 + 1), 1, high)))
            return false;
          const uint32_t part = (low | high << 8) >> first % 8 & ((1u << width) - 1);
          value = number(type == Type::e2m1 ? part << 2 : part, 0, type, element_);
        }
        (is_a ? out({x, k}) : out({k, x})) = value;
      }
    return true;
  }

  bool fetch(uint64_t offset, unsigned bytes, uint32_t& word) {
    Cta& cta = *warp_.cta;
    if (offset + bytes > cta.shared_bytes) {
      report(warp_, {.kind = FaultKind::out_of_bounds,
                     .message = fmt::format("a matrix descriptor reaches {:#x} of .shared, which has {} bytes", offset,
                                            cta.shared_bytes),
                     .lane = lane_,
                     .has_address = true,
                     .space = ptx::Space::shared,
                     .address = offset,
                     .access_bytes = bytes});
      return false;
    }
    std::memcpy(&word, cta.shared + offset, bytes);
    if (!cta.launch->checked) return true;
    for (unsigned i = 0; i < bytes; ++i) undefined_ |= cta.shared_shadow[offset + i] != 0xff;
    if (cta.history) note_shared_read(warp_, code_, lane_, cta, offset, bytes);
    return true;
  }

  void multiply(const Matrix& a, const Matrix& b) {
    const Ref* refs = warp_.cta->launch->image->refs.data();
    const uint32_t keeps = (*at<const uint32_t>(warp_, form_.keeps_d) ^ form_.keeps_d_flip) >> lane_ & 1;
    TensorMemory& memory = *warp_.cta->tensor_memory;
    const Type d_type = element_.d_type;
    for (unsigned row = 0; row < is_.m(); ++row) {
      const unsigned lane = lane_of(row);
      if (form_.disabled.count > lane / 32 &&
          at<const uint32_t>(warp_, refs[form_.disabled.first + lane / 32])[lane_] >> lane % 32 & 1)
        continue;
      for (unsigned column = 0; column < is_.n(); ++column) {
        const size_t index = TensorMemory::cell(lane, place_.column + column);
        double sum = 0;
        for (unsigned k = 0; k < depth_; ++k) sum += a(row, k) * b(k, column);
        if (is_.negated()) sum = -sum;
        if (keeps) sum += std::ldexp(number(memory.cells[index], 0, d_type), -int{form_.scale});
        memory.cells[index] = element_bits(sum, element_);
        memory.defined[index] = !undefined_ && (!keeps || memory.defined[index]);
      }
    }
  }

  Warp& warp_;
  const Code& code_;
  const TensorForm& form_;
  unsigned lane_;
  Instruction is_;
  TensorPlace place_;
  Type a_type_, b_type_;
  unsigned depth_ = 0;
  MatrixForm element_;
  bool undefined_ = false;
};

// One thread gives the whole product.
void multiply(Warp& warp, const Code& code, uint32_t mask) {
  const TensorForm& form = warp.cta->launch->image->tensors[code.target];
  for_lanes(mask, [&](unsigned lane) {
    if (!warp.cta->stopped) TensorProduct(warp, code, form, lane).run();
  });
}

}  // namespace

void select_tensor_multiply(Code& code) { code.run = multiply; }

}  // namespace ptxkit::emulator
