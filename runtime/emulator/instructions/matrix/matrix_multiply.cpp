// mma and wmma.mma: D = A * B + C over the registers of a warp. PTX ISA 9.0, 9.7.14.
//
// Products of narrow types are exact. They are summed in double precision in the order of k, then C is added and the
// sum is rounded once to the type of D. Hardware sums in other orders and truncates, differently in each generation:
// results with intermediate values of more than 24 significant bits may differ in the last places (docs/emulator.md).
// Integer and f64 forms are exact.
#include <array>
#include <vector>

#include "runtime/emulator/core/float_math.hpp"
#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/instructions/matrix/matrix_element.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Type;

// mma, all shapes but m8n8k4 of halves: lane / 4 is the row of A and C and the column of B. lane % 4 and the register
// count along k (A, B) or along the columns (C, D).
Position a_place(const MatrixForm& form, unsigned lane, unsigned reg, unsigned element) {
  const unsigned per = per_register(form.a_type, form), group = lane / 4, within = lane % 4;
  if (form.shape.m == 8) return {group, within * per + element + reg * 4 * per};
  return {group + 8 * (reg % 2), within * per + element + reg / 2 * 4 * per};
}
Position b_place(const MatrixForm& form, unsigned lane, unsigned reg, unsigned element) {
  const unsigned per = per_register(form.b_type, form);
  return {lane % 4 * per + element + reg * 4 * per, lane / 4};
}
Position c_place(unsigned lane, unsigned reg, unsigned element, unsigned per) {
  const unsigned index = reg * per + element;
  return {lane / 4 + 8 * (index / 2), lane % 4 * 2 + index % 2};
}

// m8n8k4 of halves: four products at once, each by the lanes q..q+3 and q+16..q+19.
bool is_quad(const MatrixForm& form) { return !form.is_wmma && form.shape.k == 4 && form.a_type == Type::f16; }
Position quad_a(const MatrixForm& form, unsigned lane, unsigned index) {
  const unsigned high = lane < 16 ? 0 : 4;
  return form.a_columns ? Position{index % 4 + high, lane % 4} : Position{lane % 4 + high, index};
}
Position quad_b(const MatrixForm& form, unsigned lane, unsigned index) {
  const unsigned high = lane < 16 ? 0 : 4;
  return form.b_columns ? Position{index, lane % 4 + high} : Position{lane % 4, index % 4 + high};
}
Position quad_c(Type type, unsigned lane, unsigned index) {
  const unsigned high = lane < 16 ? 0 : 4;
  if (type == Type::f16) return {lane % 4 + high, index};
  return {(lane & 1) + (index & 2) + high, (index & 4) + (lane & 2) + (index & 1)};
}

class Product {
 public:
  Product(Warp& warp, const MatrixForm& form) : warp_(warp), form_(form), refs_(warp.cta->launch->image->refs.data()) {}

  void run() {
    const unsigned passes = is_quad(form_) ? 4 : 1;
    for (unsigned pass = 0; pass < passes; ++pass) one(is_quad(form_) ? 0x000f000fu << 4 * pass : kAllLanes);
  }

 private:
  template <class Visit>
  void elements(const RegisterList& list, Type type, uint32_t lanes, Visit&& visit) {
    const unsigned per = per_register(type, form_);
    for (unsigned reg = 0; reg < list.count; ++reg)
      for_lanes(lanes, [&](unsigned lane) {
        for (unsigned element = 0; element < per; ++element) visit(lane, reg, element, refs_[list.first + reg]);
      });
  }

  double read(Ref ref, unsigned lane, unsigned element, Type type) {
    if (type == Type::f64) return at<double>(warp_, ref)[lane];
    return number(at<uint32_t>(warp_, ref)[lane], element, type, form_);
  }

  // The ISA leaves the layout of wmma's registers open. Here it is: by lane, register, element, starting again if there
  // are more of them than elements of the matrix. For elements below a byte, B goes by columns, as it lies in memory.
  Position linear(const RegisterList& list, Type type, unsigned lane, unsigned reg, unsigned element, unsigned rows,
                  unsigned columns) const {
    const unsigned per = per_register(type), index = (lane * list.count + reg) * per + element;
    if (&list == &form_.b && ptx::bit_width(type) < 8) return {index % rows, index / rows % columns};
    return {index / columns % rows, index % columns};
  }

  Position place(char matrix, Type type, const RegisterList& list, unsigned lane, unsigned reg,
                 unsigned element) const {
    const unsigned m = form_.shape.m, n = form_.shape.n, k = form_.shape.k, index = reg * per_register(type) + element;
    if (form_.is_wmma)
      return matrix == 'a'   ? linear(list, type, lane, reg, element, m, k)
             : matrix == 'b' ? linear(list, type, lane, reg, element, k, n)
                             : linear(list, type, lane, reg, element, m, n);
    if (is_quad(form_))
      return matrix == 'a'   ? quad_a(form_, lane, index)
             : matrix == 'b' ? quad_b(form_, lane, index)
                             : quad_c(type, lane, index);
    return matrix == 'a'   ? a_place(form_, lane, reg, element)
           : matrix == 'b' ? b_place(form_, lane, reg, element)
                           : c_place(lane, reg, element, per_register(type));
  }

  Matrix gather(char matrix, const RegisterList& list, Type type, unsigned rows, unsigned columns, uint32_t lanes) {
    Matrix out(rows, columns);
    elements(list, type, lanes, [&](unsigned lane, unsigned reg, unsigned element, Ref ref) {
      out(place(matrix, type, list, lane, reg, element)) = read(ref, lane, element, type);
    });
    return out;
  }

  double dot(const Matrix& a, const Matrix& b, double c, unsigned row, unsigned column) const {
    const unsigned k_count = form_.shape.k;
    if (form_.a_type == Type::b1) {
      double sum = c;
      for (unsigned k = 0; k < k_count; ++k) {
        const bool x = a(row, k) != 0, y = b(k, column) != 0;
        sum += form_.by_and ? x && y : x != y;
      }
      return sum;
    }
    if (form_.a_type == Type::f64) {
      double sum = c;
      for (unsigned k = 0; k < k_count; ++k) {
        const double next = std::fma(a(row, k), b(k, column), sum);
        sum = next == next ? next : nan_of<Math::fma>(a(row, k), b(k, column), sum);
      }
      return sum;
    }
    double sum = 0;
    if (form_.scale_count == 0) {
      for (unsigned k = 0; k < k_count; ++k) sum += a(row, k) * b(k, column);
      return sum + c;
    }
    const unsigned block = k_count / form_.scale_count;
    for (unsigned i = 0; i < form_.scale_count; ++i) {
      double part = 0;
      for (unsigned k = i * block; k < (i + 1) * block; ++k) part += a(row, k) * b(k, column);
      sum += part * scale(0, row, i) * scale(1, column, i);
    }
    return sum + c;
  }

  // Factor `i` of a row of A or a column of B. A quad of lanes holds the factors of one row of the upper half and one
  // of the lower half of A, or of one column of B, in the lanes and bytes that the instruction names.
  double scale(unsigned of_b, unsigned index, unsigned i) const {
    const unsigned byte = at<const uint16_t>(warp_, form_.scale_place[of_b][0])[0];
    const unsigned lanes = at<const uint16_t>(warp_, form_.scale_place[of_b][1])[0];
    const unsigned lane = of_b ? 4 * index + lanes % 4 : 4 * (index % 8) + 2 * (lanes % 2) + index / 8;
    const uint32_t word = at<const uint32_t>(warp_, refs_[form_.scales.first + of_b])[lane];
    return factor_value(word >> 8 * ((byte + i) % 4) & 0xff, form_.scales_are_ue4m3);
  }

  void one(uint32_t lanes) {
    const unsigned m = form_.shape.m, n = form_.shape.n, k = form_.shape.k;
    const Matrix a = form_.is_sparse ? expand(gather('a', form_.a, form_.a_type, m, k / 2, lanes), warp_, form_)
                                     : gather('a', form_.a, form_.a_type, m, k, lanes),
                 b = gather('b', form_.b, form_.b_type, k, n, lanes),
                 c = gather('c', form_.c, form_.c_type, m, n, lanes);
    const HostRounding host(static_cast<Rounding>(form_.rounding));
    Matrix d(m, n);
    for (unsigned row = 0; row < m; ++row)
      for (unsigned column = 0; column < n; ++column) d({row, column}) = dot(a, b, c(row, column), row, column);
    elements(form_.d, form_.d_type, lanes, [&](unsigned lane, unsigned reg, unsigned element, Ref ref) {
      const double value = d(place('d', form_.d_type, form_.d, lane, reg, element));
      if (form_.d_type == Type::f64) {
        at<double>(warp_, ref)[lane] = value;
        return;
      }
      uint32_t& word = at<uint32_t>(warp_, ref)[lane];
      if (form_.d_type == Type::f16)
        word = element ? (word & 0xffff) | element_bits(value, form_) << 16
                       : (word & 0xffff0000) | element_bits(value, form_);
      else
        word = element_bits(value, form_);
    });
  }

  Warp& warp_;
  const MatrixForm& form_;
  const Ref* refs_;
};

}  // namespace

double number(uint32_t word, unsigned element, Type type, const MatrixForm& form) {
  const bool narrow = type == Type::e3m2 || type == Type::e2m3 || type == Type::e2m1;
  if (!narrow) return number(word, element, type);
  const uint32_t part = form.in_bytes ? word >> 8 * element & 0xff : word >> 4 * element & 0xf;
  if (type == Type::e2m1) return scalar::widen(form.in_bytes ? part >> 2 & 0xf : part, scalar::kE2m1);
  return scalar::widen(part & 0x3f, type == Type::e3m2 ? scalar::kE3m2 : scalar::kE2m3);
}

void propagate_undefined_matrix(Warp& warp, const MatrixForm& form) {
  const Ref* refs = warp.cta->launch->image->refs.data();
  uint32_t undefined = 0, origin = 0;
  for (const RegisterList& list : {form.a, form.b, form.c, form.metadata, form.scales})
    for (uint32_t i = 0; i < list.count; ++i) {
      const Ref ref = refs[list.first + i];
      undefined |= undefined_lanes(warp, ref);
      if (undefined_lanes(warp, ref)) origin = origin_of(warp, ref);
    }
  for (uint32_t i = 0; i < form.d.count; ++i) {
    const Ref ref = refs[form.d.first + i];
    undefined_lanes(warp, ref) = undefined ? kAllLanes : 0;
    if (!undefined) continue;
    origin_of(warp, ref) = origin;
    std::memset(shadow_at<uint8_t>(warp, ref), 0xff, kLanes * (form.d_type == Type::f64 ? 8 : 4));
  }
}

namespace {

template <bool kChecked>
void multiply(Warp& warp, const Code& code, uint32_t) {
  const MatrixForm& form = warp.cta->launch->image->matrices[code.target];
  if constexpr (kChecked) propagate_undefined_matrix(warp, form);
  Product(warp, form).run();
}

}  // namespace

void select_multiply(Code& code) {
  code.run = multiply<false>;
  code.checked = multiply<true>;
}

}  // namespace ptxkit::emulator
