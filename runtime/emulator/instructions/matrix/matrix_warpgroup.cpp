// wgmma.mma_async: the 16 rows of one warp of D = A * B (+ D), A in registers or shared memory, B in shared memory. PTX
// ISA 9.0, 9.7.15.
#include <array>

#include <fmt/format.h>

#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/core/limits.hpp"
#include "runtime/emulator/instructions/matrix/matrix_element.hpp"
#include "runtime/emulator/instructions/matrix/shared_matrix.hpp"
#include "runtime/emulator/instructions/memory/access.hpp"
#include "runtime/emulator/sanitizer/pending_registers.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Type;

class WarpgroupProduct {
 public:
  WarpgroupProduct(Warp& warp, const Code& code, const MatrixForm& form)
      : warp_(warp), code_(code), form_(form), refs_(warp.cta->launch->image->refs.data()) {}

  // Returns false after a fault.
  bool run(bool checked) {
    const unsigned n = form_.shape.n, k = form_.shape.k, stored = form_.is_sparse ? k / 2 : k;
    checked_ = checked;
    Matrix a(16, stored), b(k, n);
    if (form_.a_in_shared ? !read(a, form_.a, form_.a_type, form_.a_columns, warp_.index % 4 * 16, true)
                          : !a_from_registers(a))
      return false;
    if (!read(b, form_.b, form_.b_type, form_.b_columns, 0, false)) return false;
    if (form_.is_sparse) a = expand(a, warp_, form_);
    const double sign = form_.a_negated != form_.b_negated ? -1 : 1;
    const uint32_t keeps = *at<const uint32_t>(warp_, form_.use_d) ^ form_.use_d_flip;
    const unsigned per = per_register(form_.d_type);
    for (unsigned reg = 0; reg < form_.d.count; ++reg)
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        uint32_t& word = at<uint32_t>(warp_, refs_[form_.d.first + reg])[lane];
        uint32_t result = 0;
        for (unsigned element = 0; element < per; ++element) {
          const unsigned index = reg * per + element, row = lane / 4 + 8 * (index / 2 % 2),
                         column = index / 4 * 8 + lane % 4 * 2 + index % 2;
          double sum = 0;
          for (unsigned i = 0; i < k; ++i) sum += a(row, i) * b(i, column);
          sum *= sign;
          if (keeps & 1) sum += number(word, element, form_.d_type);
          result |= element_bits(sum, form_) << 16 * element;
        }
        word = result;
      }
    if (undefined_) {
      mark_undefined();
    } else if (checked_ && !(keeps & 1)) {
      // The result does not depend on the old D.
      for (unsigned reg = 0; reg < form_.d.count; ++reg) undefined_lanes(warp_, refs_[form_.d.first + reg]) = 0;
    }
    return true;
  }

 private:
  bool a_from_registers(Matrix& a) {
    const unsigned per = per_register(form_.a_type);
    for (unsigned reg = 0; reg < form_.a.count; ++reg) {
      if (checked_) undefined_ |= undefined_lanes(warp_, refs_[form_.a.first + reg]) != 0;
      for (unsigned lane = 0; lane < kLanes; ++lane)
        for (unsigned element = 0; element < per; ++element)
          a({lane / 4 + 8 * (reg % 2), lane % 4 * per + element + reg / 2 * 4 * per}) =
              number(at<uint32_t>(warp_, refs_[form_.a.first + reg])[lane], element, form_.a_type);
    }
    return true;
  }

  // Reads A (from row `first` on) or B from shared memory.
  bool read(Matrix& out, const RegisterList& list, Type type, bool columns, unsigned first, bool is_a) {
    const SharedMatrix descriptor(at<const uint64_t>(warp_, refs_[list.first])[0]);
    const unsigned bits = ptx::bit_width(type), rows = static_cast<unsigned>(out.values.size()) / out.columns,
                   across = is_a ? rows : out.columns, depth = is_a ? out.columns : rows;
    for (unsigned x = 0; x < across; ++x)
      for (unsigned i = 0; i < depth; ++i) {
        const unsigned place = first + x;
        const uint64_t offset =
            columns ? descriptor.rows_across_k(i, place * bits / 8) : descriptor.rows_along_k(place, i * bits / 8);
        uint32_t word = 0;
        if (!fetch(offset, bits < 8 ? 1 : bits / 8, word)) return false;
        const unsigned element = bits < 8 ? i * bits % 8 / bits : 0;
        (is_a ? out({x, i}) : out({i, x})) = number(word, element, type);
      }
    return true;
  }

  bool fetch(uint64_t offset, unsigned bytes, uint32_t& word) {
    Cta& cta = *warp_.cta;
    if (offset + bytes > cta.shared_bytes) {
      if (checks(cta, kCheckBounds)) {
        report(warp_, {.kind = FaultKind::out_of_bounds,
                       .message = fmt::format("a matrix descriptor reaches {:#x} of .shared, which has {} bytes",
                                              offset, cta.shared_bytes),
                       .has_address = true,
                       .space = ptx::Space::shared,
                       .address = offset,
                       .access_bytes = bytes});
        return false;
      }
      return true;
    }
    std::memcpy(&word, cta.shared + offset, bytes);
    if (!checked_) return true;
    for (unsigned i = 0; i < bytes; ++i) undefined_ |= cta.shared_shadow[offset + i] != 0xff;
    if (cta.history) note_shared_read(warp_, code_, 0, cta, offset, bytes);
    return true;
  }

  void mark_undefined() {
    for (unsigned reg = 0; reg < form_.d.count; ++reg) {
      const Ref ref = refs_[form_.d.first + reg];
      undefined_lanes(warp_, ref) = kAllLanes;
      origin_of(warp_, ref) = 0;
      std::memset(shadow_at<uint8_t>(warp_, ref), 0xff, kLanes * 4);
    }
  }

  Warp& warp_;
  const Code& code_;
  const MatrixForm& form_;
  const Ref* refs_;
  bool checked_ = false, undefined_ = false;
};

template <bool kChecked>
void multiply(Warp& warp, const Code& code, uint32_t) {
  const MatrixForm& form = warp.cta->launch->image->matrices[code.target];
  if constexpr (kChecked) {
    propagate_undefined_matrix(warp, form);
    if (checks(*warp.cta, kCheckRaces)) start_product(warp, form);
  }
  WarpgroupProduct(warp, code, form).run(kChecked);
  spend_on_products(warp, uint64_t{form.shape.m} / 4 * form.shape.n * form.shape.k);
}

}  // namespace

void select_warpgroup_multiply(Code& code) {
  code.run = multiply<false>;
  code.checked = multiply<true>;
}

}  // namespace ptxkit::emulator
