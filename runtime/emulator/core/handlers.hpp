// Selection of the handler that runs an instruction: one selector for each family. A selector fills in the handlers of
// `code` and the fields they need. It returns false if the emulator does not support the combination of modifiers and
// types; the decoder then refuses the module and names the instruction's place.
#pragma once

#include <span>

#include "analyzer/ptx/names.hpp"
#include "runtime/emulator/core/image.hpp"

namespace ptxkit::ptx {
enum class Comparison : uint8_t;  // analyzer/ptx/facts.hpp
}

namespace ptxkit::emulator {

// The dot-separated words of an instruction, as a set.
struct Words {
  std::span<const ptx::Mod> mods;
  bool has(ptx::Mod mod) const {
    for (ptx::Mod each : mods)
      if (each == mod) return true;
    return false;
  }
};

// Calls f.operator()<T>() with the C++ integer of a PTX type (.b types are unsigned). Returns false for other types.
template <class F>
bool with_integer(ptx::Type type, F&& f) {
  using ptx::Type;
  switch (type) {
    case Type::b16:
    case Type::u16:
      return f.template operator()<uint16_t>();
    case Type::s16:
      return f.template operator()<int16_t>();
    case Type::b32:
    case Type::u32:
      return f.template operator()<uint32_t>();
    case Type::s32:
      return f.template operator()<int32_t>();
    case Type::b64:
    case Type::u64:
      return f.template operator()<uint64_t>();
    case Type::s64:
      return f.template operator()<int64_t>();
    default:
      return false;
  }
}

enum class Rounding : uint8_t { nearest, zero, down, up };

bool select_integer(Code& code, ptx::Op op, ptx::Type type, const Words& words);
bool select_logic(Code& code, ptx::Op op, ptx::Type type, const Words& words);  // and, or, shl, prmt, selp, mov ...
bool select_predicate(Code& code, ptx::Op op);                                  // and.pred, mov.pred ...
// Comparison: setp (flavour 0), set with a 32-bit mask result (1) or 1.0 (2).
bool select_compare(Code& code, ptx::Type type, const Words& words, ptx::Comparison compare, int flavour);
bool select_float(Code& code, ptx::Op op, ptx::Type type, const Words& words);
bool select_half(Code& code, ptx::Op op, ptx::Type type, const Words& words);
bool select_two_singles(Code& code, ptx::Op op, const Words& words);            // .f32x2
bool select_mixed(Code& code, ptx::Op op, ptx::Type from, const Words& words);  // .f32.f16, .f32.bf16
bool select_extremum(Code& code, ptx::Op op, bool three, const Words& words);   // .f32 of three, .abs, .xorsign
// Requires: register_bytes (of the destination) and source_bytes of `code` are set.
bool select_convert(Code& code, ptx::Type to, ptx::Type from, const Words& words);
// dp4a, dp2a.
bool select_dot(Code& code, ptx::Op op, ptx::Type a, ptx::Type b, const Words& words);
bool select_atomic(Code& code, ProgramImage& image, ptx::Mod operation, ptx::Type type);
void select_multiply(Code& code);                         // mma, wmma.mma
void select_warpgroup_multiply(Code& code);               // wgmma.mma_async
void select_matrix_rows(Code& code, bool store);          // ldmatrix, stmatrix
void select_byte_rows(Code& code, bool store);            // the same for bytes
void select_matrix_elements(Code& code, bool store);      // wmma.load, wmma.store
void select_transpose(Code& code);                        // movmatrix
void select_bulk_store(Code& code);                       // st.bulk
void select_masked_store(Code& code);                     // st of a vector with `_`
void select_texture(Code& code, ptx::Op op);              // tex, tld4, txq, suld, sust, sured, suq
void select_image_test(Code& code, ImageUse use);         // istypep
void select_async(Code& code);                            // asynchronous copies; Code::target is the form
void select_tensor(Code& code, TensorAction action);      // tcgen05; Code::target is the form
void select_tensor_multiply(Code& code);                  // tcgen05.mma
void select_query_cancel(Code& code, bool is_canceled);   // clusterlaunchcontrol.query_cancel
void select_mbarrier(Code& code, MbarrierAction action);  // mbarrier instructions
bool select_stack(Code& code, ptx::Op op, bool wide);     // alloca, stacksave, stackrestore
// cvt.rs: sources in `list`, random bits in `d`.
bool select_convert_stochastic(Code& code, ptx::Type to, const Words& words);
// Narrow formats, packed halves, .satfinite, cvt.pack.
bool select_convert_narrow(Code& code, ptx::Type to, ptx::Type from, const Words& words);

// Video instructions, whose VideoForm the decoder makes: scalar forms, vmad, and those on halves or bytes at once.
void video_scalar(Warp& warp, const Code& code, uint32_t mask);
void video_multiply_add(Warp& warp, const Code& code, uint32_t mask);
void video_packed(Warp& warp, const Code& code, uint32_t mask);

}  // namespace ptxkit::emulator
