// tcgen05.mma: D = A * B (+ D), with D in tensor memory, A in tensor or shared memory, B in shared memory; for one CTA
// or a pair, A dense or sparse, with or without scale factors. PTX ISA 9.0, 9.7.16.10. Products are summed as for mma:
// in double precision, rounded once.
//
// The lane and column of an element are those of CUTLASS (cute/atom/mma_traits_sm100_frag.hpp); the ISA only has
// figures.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/core/limits.hpp"
#include "runtime/emulator/instructions/matrix/matrix_element.hpp"
#include "runtime/emulator/instructions/matrix/shared_matrix.hpp"
#include "runtime/emulator/instructions/matrix/tensor_access.hpp"
#include "runtime/emulator/instructions/matrix/tensor_instruction.hpp"
#include "runtime/emulator/instructions/memory/access.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Type;

// The rows of one CTA in its 128 lanes. `quarters`: each warp's lanes hold 16 rows, from lane 0 or 16 on. `parts`: with
// fewer rows than lanes the parts of D's columns lie below each other, and A and its metadata and factors are repeated
// for each part.
enum class RowLayout : uint8_t { whole, quarters, parts };

class TensorProduct {
 public:
  TensorProduct(Warp& warp, const Code& code, const TensorForm& form, unsigned lane)
      : warp_(warp),
        code_(code),
        form_(form),
        lane_(lane),
        is_{at<const uint32_t>(warp, form.instruction)[lane], form.kind},
        place_(tensor_place(warp, form.d, lane)),
        a_type_(is_.a()),
        b_type_(is_.b()) {
    element_.d_type = is_.d();
    element_.saturates = is_.saturates();
    element_.in_bytes = form.kind == TensorKind::f8f6f4 || form.kind == TensorKind::mxf8f6f4;
  }

  void run() {
    ctas_ = ctas_of(warp_, lane_, form_.of_pair);
    if (ctas_.empty() || !fits()) return;
    for (Cta* cta : ctas_)
      if (!check_columns(warp_, *cta, lane_, place_.column, columns(), true)) return;
    Matrix b(depth_, is_.n());
    if (!b_from_shared(b)) return;
    for (unsigned i = 0; i < ctas_.size(); ++i) {
      Cta& cta = *ctas_[i];
      Matrix stored(rows_, form_.is_sparse ? depth_ / 2 : depth_);
      if (!form_.a_in_memory && !a_from_shared(cta, stored)) return;
      for (unsigned part = 0; part < parts_; ++part) {
        if (form_.a_in_memory && !a_from_memory(cta, part, stored)) return;
        Matrix a = stored;
        if ((form_.is_sparse && !expand(cta, part, stored, a)) || (is_.is_scaled() && !read_factors(cta, part))) return;
        multiply(i, part, a, b);
      }
      mark_pending_columns(warp_, cta, place_.column, columns());
      if (form_.shifts_a) shift_lanes(warp_, cta, 0, kTensorLanes, tensor_place(warp_, form_.a, lane_).column);
    }
  }

 private:
  bool fits() {
    const auto refuse = [&](const std::string& why) {
      return tensor_fault(warp_, lane_, fmt::format("instruction descriptor {:#010x}: {}", is_.bits, why));
    };
    if (const std::string why = instruction_error(is_, form_); !why.empty()) return refuse(why);
    depth_ = is_.dense_depth() * (form_.is_sparse ? 2 : 1);
    rows_ = is_.m() / static_cast<unsigned>(ctas_.size());
    layout_ = rows_ == 128                                                 ? RowLayout::whole
              : form_.is_stationary || (form_.of_pair && !form_.is_sparse) ? RowLayout::parts
                                                                           : RowLayout::quarters;
    parts_ = layout_ == RowLayout::parts ? kTensorLanes / rows_ : 1;
    if (place_.lane != 0 && !(layout_ == RowLayout::quarters && place_.lane == 16))
      return refuse(fmt::format("D begins at lane {}", place_.lane));
    if (form_.shifts_a && is_.m() < 128)
      return refuse(fmt::format("rows are shifted where M is 128 or 256, not {}", is_.m()));
    if (!form_.is_stationary || form_.zero_columns == kZeroRef) return true;
    zeros_ = at<const uint64_t>(warp_, form_.zero_columns)[lane_];
    const unsigned most = is_.m() == 32 ? 16 : 32;
    return column_shift(zeros_) <= most ||
           refuse(fmt::format("columns of B are shifted by {}, at most {} are possible", column_shift(zeros_), most));
  }

  unsigned columns() const { return is_.n() / parts_; }
  // Blocks of K that have one factor each.
  unsigned block_count() const { return form_.factor_count * (depth_ == 96 ? 3 : 2) / 2; }

  // The lane of a CTA's row of D, and of A, for a part of D's columns.
  unsigned lane_of(unsigned row, unsigned part) const {
    switch (layout_) {
      case RowLayout::quarters:
        return place_.lane + row / 16 * 32 + row % 16;
      case RowLayout::parts:
        return row + part * rows_;
      default:
        return row;
    }
  }

  // A cell of A, B or their factors.
  uint32_t cell(const Cta& cta, unsigned lane, unsigned column) {
    const size_t index = TensorMemory::cell(lane, column);
    defined_ &= cta.tensor_memory->defined[index] != 0;
    return cta.tensor_memory->cells[index];
  }

  bool a_from_memory(Cta& cta, unsigned part, Matrix& a) {
    const TensorPlace from = tensor_place(warp_, form_.a, lane_);
    const unsigned bits = is_.is_packed() ? 4 : std::max(8u, ptx::bit_width(a_type_)), per = 32 / bits;
    if (from.lane != place_.lane)
      return tensor_fault(warp_, lane_, fmt::format("A begins at lane {} and D at lane {}", from.lane, place_.lane));
    if (!check_columns(warp_, cta, lane_, from.column, a.columns / per, true)) return false;
    for (unsigned row = 0; row < rows_; ++row)
      for (unsigned k = 0; k < a.columns; ++k)
        a({row, k}) = number(cell(cta, lane_of(row, part), from.column + k / per), k % per, a_type_, element_);
    return true;
  }

  bool a_from_shared(Cta& cta, Matrix& a) {
    return from_shared(cta, form_.a_descriptor, a_type_, is_.a_columns(), a.columns, 0, rows_,
                       [&](unsigned row, unsigned k, double value) { a({row, k}) = value; });
  }

  // Each CTA of a pair holds half of the columns.
  bool b_from_shared(Matrix& b) {
    const auto each = is_.n() / static_cast<unsigned>(ctas_.size());
    const unsigned shift = column_shift(zeros_);
    for (unsigned i = 0; i < ctas_.size(); ++i)
      for (unsigned n = 0; n < each; ++n)
        if (!is_zero_column(zeros_, is_.m(), is_.n(), n) &&
            !from_shared(*ctas_[i], form_.b_descriptor, b_type_, is_.b_columns(), depth_, n + shift, 1,
                         [&](unsigned, unsigned k, double value) { b({k, i * each + n}) = value; }))
          return false;
    return true;
  }

  // Reads rows of A or columns of B. Each 16 elements of 4 or 6 bits take a row of 16 bytes, from the lowest bit on; in
  // a packed kind they lie without gaps.
  template <class Put>
  bool from_shared(Cta& cta, uint32_t descriptor, Type type, bool across_k, unsigned depth, unsigned first,
                   unsigned count, Put&& put) {
    const uint64_t bits = at<const uint64_t>(warp_, descriptor)[lane_];
    if (const std::string why = matrix_descriptor_error(bits, form_.kind, across_k); !why.empty())
      return tensor_fault(warp_, lane_, fmt::format("matrix descriptor {:#018x}: {}", bits, why));
    const SharedMatrix matrix(bits);
    const unsigned width = ptx::bit_width(type);
    const auto fetch = [&](uint64_t offset, unsigned bytes, uint32_t& word) {
      return fetch_shared(warp_, code_, cta, lane_, offset, bytes, word, defined_);
    };
    for (unsigned x = first; x < first + count; ++x)
      for (unsigned k = 0; k < depth; ++k) {
        uint32_t word = 0, more = 0;
        if (width >= 8) {
          const unsigned bytes = width / 8;
          if (!fetch(across_k ? matrix.rows_across_k(k, x * bytes) : matrix.rows_along_k(x, k * bytes), bytes, word))
            return false;
          put(x - first, k, number(word, 0, type));
          continue;
        }
        const unsigned along = is_.is_packed() ? k * width : k / 16 * 128 + k % 16 * width;
        if (!fetch(matrix.rows_along_k(x, along / 8), 1, word) ||
            (along % 8 + width > 8 && !fetch(matrix.rows_along_k(x, along / 8 + 1), 1, more)))
          return false;
        const uint32_t element = (word | more << 8) >> along % 8 & ((1u << width) - 1);
        put(x - first, k, number(type == Type::e2m1 && element_.in_bytes ? element << 2 : element, 0, type, element_));
      }
    return true;
  }

  // Expands sparse A with its zeros. Metadata has one bit for each k (tf32 two, packed kinds half a bit). For elements
  // of 16 bits and more, the halves of a word belong to rows 8 apart and the halves of K to lanes 8 apart; for smaller
  // ones a row has two words.
  bool expand(Cta& cta, unsigned part, const Matrix& stored, Matrix& a) {
    const bool wide = form_.kind == TensorKind::f16 || form_.kind == TensorKind::tf32;
    const unsigned chunk = form_.kind == TensorKind::tf32 ? 2 : is_.is_packed() ? 8 : 4, kept = chunk / 2;
    const TensorPlace place = tensor_place(warp_, form_.metadata, lane_);
    if (place.lane != place_.lane)
      return tensor_fault(warp_, lane_,
                          fmt::format("metadata begins at lane {} and D at lane {}", place.lane, place_.lane));
    const unsigned column = wide ? (place.column & ~1u) + is_.selector() : place.column;
    if (!check_columns(warp_, cta, lane_, column, wide ? 1 : 2, true)) return false;
    a = Matrix(rows_, depth_);
    for (unsigned row = 0; row < rows_; ++row)
      for (unsigned i = 0; i < depth_ / chunk; ++i) {
        const unsigned half = depth_ / chunk / 2;  // in chunks
        const uint32_t word = wide ? cell(cta, lane_of(row & ~15u, part) + row % 8 + i / half * 8, column)
                                   : cell(cta, lane_of(row, part), column + i / 8);
        const uint32_t bits = word >> (wide ? i % half * 4 + row / 8 % 2 * 16 : i % 8 * 4) & 0xf;
        for (unsigned k = 0; k < kept; ++k) {
          // tf32 counts halves of an element: 0100 selects the first, 1110 the second. Packed elements are selected in
          // pairs.
          const unsigned which = chunk == 2   ? bits >> 3 & 1
                                 : chunk == 8 ? (bits >> k / 2 * 2 & 3) * 2 + k % 2
                                              : bits >> 2 * k & 3;
          a({row, i * chunk + which}) = stored(row, i * kept + k);
        }
      }
    return true;
  }

  // Factors lie in words of up to four: the lanes of a warp hold 32 rows or columns, the next column the next 32. Every
  // warp has the factors of all rows and, if D is in parts, those of its part's columns.
  bool read_factors(Cta& cta, unsigned part) {
    const auto words = [](unsigned count) { return (count + 31) / 32; };
    for (const bool of_b : {false, true}) {
      TensorPlace place = tensor_place(warp_, of_b ? form_.scale_b : form_.scale_a, lane_);
      place.lane &= 0x3fff;  // CUTLASS puts the first byte into the upper bits
      const unsigned count = of_b ? columns() : rows_, first = of_b ? is_.b_factors() : is_.a_factors();
      if (place.lane != 0)
        return tensor_fault(warp_, lane_, fmt::format("factors begin at lane {}, expected 0", place.lane));
      // After the fourth byte of a word, factors continue four columns further for each 128 rows.
      const unsigned blocks = block_count(), next = (count + 127) / 128 * 4, last = (first + blocks - 1) / 4;
      if (!check_columns(warp_, cta, lane_, place.column, last * next + words(count), true)) return false;
      for (unsigned warp = 0; warp < 4; ++warp) {
        if (layout_ == RowLayout::parts && warp * 32 / rows_ != part) continue;
        auto& factors = factors_[of_b][warp];
        factors.clear();
        for (unsigned i = 0; i < count; ++i) {
          for (unsigned k = first; k < first + blocks; ++k) {
            const uint32_t word = cell(cta, warp * 32 + i % 32, place.column + i / 32 + k / 4 * next);
            factors.push_back(factor_value(word >> k % 4 * 8 & 0xff, !is_.has_ue8m0()));
          }
        }
      }
    }
    return true;
  }

  // Column n of B is column `n - part * columns()` of this part of D.
  double dot(const Matrix& a, const Matrix& b, unsigned row, unsigned n, unsigned part) const {
    const unsigned blocks = std::max(1u, block_count()), depth = depth_ / blocks;
    const unsigned warp = lane_of(row, part) / 32;
    double sum = 0;
    for (unsigned i = 0; i < blocks; ++i) {
      double block = 0;
      for (unsigned k = i * depth; k < (i + 1) * depth; ++k) block += a(row, k) * b(k, n);
      sum += form_.factor_count == 0
                 ? block
                 : block * factors_[0][warp][row * blocks + i] * factors_[1][warp][(n - part * columns()) * blocks + i];
    }
    return is_.negated() ? -sum : sum;
  }

  void multiply(unsigned cta_of_pair, unsigned part, const Matrix& a, const Matrix& b) {
    const Ref* refs = warp_.cta->launch->image->refs.data();
    const uint32_t keeps = (*at<const uint32_t>(warp_, form_.use_d) ^ form_.use_d_flip) >> lane_ & 1;
    TensorMemory& memory = *ctas_[cta_of_pair]->tensor_memory;
    spend_on_products(warp_, uint64_t{rows_} * columns() * depth_);
    for (unsigned row = 0; row < rows_; ++row) {
      const unsigned lane = lane_of(row, part), word = cta_of_pair * 4 + lane / 32;
      if (form_.disabled.count > word &&
          at<const uint32_t>(warp_, refs[form_.disabled.first + word])[lane_] >> lane % 32 & 1)
        continue;
      for (unsigned column = 0; column < columns(); ++column) {
        const size_t index = TensorMemory::cell(lane, place_.column + column);
        double sum = dot(a, b, row, part * columns() + column, part);
        if (keeps) sum += std::ldexp(number(memory.cells[index], 0, element_.d_type), -int{form_.scale});
        memory.cells[index] = element_bits(sum, element_);
        memory.defined[index] = defined_ && (!keeps || memory.defined[index]);
      }
    }
  }

  Warp& warp_;
  const Code& code_;
  const TensorForm& form_;
  unsigned lane_;
  TensorInstruction is_;
  TensorPlace place_;
  Type a_type_, b_type_;
  std::vector<Cta*> ctas_;  // one or a pair, by rank
  RowLayout layout_ = RowLayout::whole;
  unsigned depth_ = 0, rows_ = 0, parts_ = 1;  // rows: of one CTA; parts: of D's columns
  uint64_t zeros_ = 0;                         // zero-column mask descriptor
  MatrixForm element_;
  std::array<std::array<std::vector<double>, 4>, 2> factors_;  // of A and B, by warp
  bool defined_ = true;
};

// One thread issues the whole product.
void multiply(Warp& warp, const Code& code, uint32_t mask) {
  const TensorForm& form = warp.cta->launch->image->tensors[code.target];
  for_lanes(mask, [&](unsigned lane) {
    if (!warp.cta->stopped) TensorProduct(warp, code, form, lane).run();
  });
}

}  // namespace

void select_tensor_multiply(Code& code) { code.run = multiply; }

}  // namespace ptxkit::emulator
