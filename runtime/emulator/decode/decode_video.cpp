// The decoder for video instructions. PTX ISA 9.0, 9.7.18.
#include <string>

#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/decode/decode.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Op;
using ptx::Type;

struct Row {
  Op op;
  VideoAction action;
  uint8_t parts;
};
constexpr Row kRows[] = {
    {Op::vadd, VideoAction::add, 1},
    {Op::vsub, VideoAction::sub, 1},
    {Op::vabsdiff, VideoAction::absolute_difference, 1},
    {Op::vmin, VideoAction::min, 1},
    {Op::vmax, VideoAction::max, 1},
    {Op::vshl, VideoAction::shift_left, 1},
    {Op::vshr, VideoAction::shift_right, 1},
    {Op::vmad, VideoAction::multiply, 1},
    {Op::vset, VideoAction::set, 1},
    {Op::vadd2, VideoAction::add, 2},
    {Op::vsub2, VideoAction::sub, 2},
    {Op::vavrg2, VideoAction::average, 2},
    {Op::vabsdiff2, VideoAction::absolute_difference, 2},
    {Op::vmin2, VideoAction::min, 2},
    {Op::vmax2, VideoAction::max, 2},
    {Op::vset2, VideoAction::set, 2},
    {Op::vadd4, VideoAction::add, 4},
    {Op::vsub4, VideoAction::sub, 4},
    {Op::vavrg4, VideoAction::average, 4},
    {Op::vabsdiff4, VideoAction::absolute_difference, 4},
    {Op::vmin4, VideoAction::min, 4},
    {Op::vmax4, VideoAction::max, 4},
    {Op::vset4, VideoAction::set, 4},
};

// The selector of an operand, "b2", "h1", "h10", "b7654"; empty if there is none.
std::string selector(const ptx::Operand& operand) {
  std::string text;
  if (operand.component == 's')
    for (uint64_t rest = operand.value; rest & 0xff; rest >>= 8) text += static_cast<char>(rest & 0xff);
  return text;
}

bool select_part(const std::string& text, uint8_t& part) {
  if (text.empty()) return true;
  if (text.size() != 2 || text[1] < '0') return false;
  part = static_cast<uint8_t>(text[1] - '0' + (text[0] == 'h' ? 4 : 0));
  return part < (text[0] == 'h' ? 6 : 4);
}

// The digits of a selector, lowest part last: "h32" gives parts 2, 3.
bool select_parts(const std::string& text, uint8_t parts, uint8_t (&out)[4]) {
  if (text.empty()) return true;
  if (text.size() != size_t{parts} + 1) return false;
  for (unsigned k = 0; k < parts; ++k) {
    const char digit = text[parts - k];
    if (digit < '0' || digit >= '0' + 2 * parts) return false;
    out[k] = static_cast<uint8_t>(digit - '0');
  }
  return true;
}

}  // namespace

bool Decoder::video(Code& code) {
  const Row* row = nullptr;
  for (const Row& each : kRows)
    if (each.op == instruction_->op) row = &each;
  if (!row) return false;
  const Words w = words();
  VideoForm form;
  form.action = row->action;
  form.parts = row->parts;
  const bool sets = row->action == VideoAction::set;
  auto type_signed = [&](unsigned i) { return i < instruction_->type_count && instruction_->types[i] == Type::s32; };
  form.d_signed = !sets && type_signed(0);
  form.a_signed = type_signed(sets ? 0 : 1);
  form.b_signed = type_signed(sets ? 1 : 2);
  form.saturates = w.has(Mod::sat);
  form.wrap = w.has(Mod::wrap);
  form.plus_one = w.has(Mod::po);
  form.shift = w.has(Mod::shr7) ? 7 : w.has(Mod::shr15) ? 15 : 0;
  static constexpr std::pair<Mod, VideoCompare> kCompares[] = {
      {Mod::eq, VideoCompare::eq}, {Mod::ne, VideoCompare::ne}, {Mod::lt, VideoCompare::lt},
      {Mod::le, VideoCompare::le}, {Mod::gt, VideoCompare::gt}, {Mod::ge, VideoCompare::ge}};
  for (auto [mod, by] : kCompares)
    if (w.has(mod)) form.compare = by;
  form.secondary = w.has(Mod::add)   ? SecondaryOperation::add
                   : w.has(Mod::min) ? SecondaryOperation::min
                   : w.has(Mod::max) ? SecondaryOperation::max
                                     : SecondaryOperation::none;
  place(code);
  const ptx::MatchedOperand* result = take(ptx::Purpose::result);
  const auto sources = take_all(ptx::Purpose::source);
  if (result == nullptr || sources.size() < 2) return false;
  const ptx::Operand &d = result->operand, &a = sources[0]->operand, &b = sources[1]->operand;
  form.product_negated = a.negated != b.negated;
  form.c_negated = sources.size() > 2 && sources[2]->operand.negated;
  bool known = true;
  if (row->parts == 1) {
    form.destination = form.a[0] = form.b[0] = kWholeWord;
    known = select_part(selector(d), form.destination) && select_part(selector(a), form.a[0]) &&
            select_part(selector(b), form.b[0]);
    code.run = row->action == VideoAction::multiply ? video_multiply_add : video_scalar;
  } else {
    for (uint8_t k = 0; k < row->parts; ++k) {
      form.a[k] = k;
      form.b[k] = static_cast<uint8_t>(row->parts + k);
    }
    known = select_parts(selector(a), row->parts, form.a) && select_parts(selector(b), row->parts, form.b);
    const std::string mask = selector(d);
    form.destination = mask.empty() ? 0xf : 0;
    for (size_t i = 1; i < mask.size(); ++i) form.destination |= static_cast<uint8_t>(1u << (mask[i] - '0'));
    code.run = video_packed;
  }
  code.target = static_cast<uint32_t>(image_.videos.size());
  image_.videos.push_back(form);
  return known;
}

}  // namespace ptxkit::emulator
