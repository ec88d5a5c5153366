// Sparse A of mma.sp and wgmma.sp: two of four elements are stored, and metadata selects them. PTX ISA 9.0, 9.7.14.6.
#include "runtime/emulator/instructions/matrix/matrix_element.hpp"

namespace ptxkit::emulator {

namespace {

// Width of an element in bits; forms that keep narrow elements in bytes count them as bytes.
unsigned element_width(const MatrixForm& form) { return form.in_bytes ? 8 : ptx::bit_width(form.a_type); }

// Elements below 8 bits are chosen in pairs; of tf32, one of two is chosen.
struct Chunks {
  unsigned columns, count, unit;
  explicit Chunks(const MatrixForm& form) {
    unit = element_width(form) < 8 ? 2 : 1;
    columns = form.a_type == ptx::Type::tf32 ? 2 : 4 * unit;
    count = form.shape.k / columns;
  }
};

}  // namespace

uint32_t chunk_metadata(Warp& warp, const MatrixForm& form, unsigned row, unsigned chunk) {
  const Ref ref = warp.cta->launch->image->refs[form.metadata.first];
  const unsigned chunks = Chunks(form).count, group = row % 8 * 4, lower = row / 8;
  unsigned lane, place;
  if (element_width(form) >= 16) {
    lane = group + form.selector * (chunks / 4) + chunk / 4;
    place = chunk % 4 + 4 * lower;
  } else {
    lane = group + form.selector * 2 + lower + 2 * (chunk / 8);
    place = chunk % 8;
  }
  return at<uint32_t>(warp, ref)[lane % kLanes] >> 4 * place & 0xf;
}

Matrix expand(const Matrix& compressed, Warp& warp, const MatrixForm& form) {
  const Chunks chunks(form);
  const unsigned kept = chunks.columns / 2, rows = static_cast<unsigned>(compressed.values.size()) / compressed.columns;
  Matrix out(rows, form.shape.k);
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned chunk = 0; chunk < chunks.count; ++chunk) {
      const uint32_t bits = chunk_metadata(warp, form, row, chunk);
      for (unsigned i = 0; i < kept; ++i) {
        // tf32 metadata counts halves of an element: 0100 selects the first, 1110 the second.
        const unsigned which = chunks.columns == 2 ? bits >> 3 & 1 : bits >> 2 * (i / chunks.unit) & 3;
        out({row, chunk * chunks.columns + which * chunks.unit + i % chunks.unit}) = compressed(row, chunk * kept + i);
      }
    }
  return out;
}

}  // namespace ptxkit::emulator
