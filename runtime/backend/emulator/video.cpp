// Video instructions: arithmetic on bytes, halves or words chosen from the sources, with saturation, a second operation
// or a merge; and their forms on two halves or four bytes at once. PTX ISA 9.0, 9.7.18, whose pseudo-code this is.
#include <algorithm>
#include <string>

#include "runtime/backend/emulator/decode.hpp"
#include "runtime/backend/emulator/state.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Op;
using ptx::Type;

enum class Action : uint8_t {
  add,
  sub,
  absolute_difference,
  min,
  max,
  shift_left,
  shift_right,
  average,
  multiply,
  set
};
enum class Compare : uint8_t { eq, ne, lt, le, gt, ge };
enum class Second : uint8_t { none, add, min, max };

// A scalar form. Parts are numbered 0-3 for bytes, 4-5 for halves, 6 for the whole word.
constexpr uint8_t kWhole = 6;

// The whole instruction, decoded; lives in ProgramImage::videos, Code::target is its index.
int64_t pick(uint32_t word, unsigned part, bool is_signed) {
  const unsigned width = part < 4 ? 8 : part < 6 ? 16 : 32, at = part < 4 ? 8 * part : part < 6 ? 16 * (part - 4) : 0;
  const uint32_t bits = word >> at;
  if (!is_signed) return width == 32 ? bits : bits & ((1u << width) - 1);
  return static_cast<int32_t>(bits << (32 - width)) >> (32 - width);
}

int64_t saturated(int64_t value, unsigned width, bool is_signed) {
  const int64_t top = is_signed ? (int64_t{1} << (width - 1)) - 1 : (int64_t{1} << width) - 1;
  const int64_t bottom = is_signed ? -top - 1 : 0;
  return value > top ? top : value < bottom ? bottom : value;
}

bool compare(Compare by, int64_t a, int64_t b) {
  switch (by) {
    case Compare::eq:
      return a == b;
    case Compare::ne:
      return a != b;
    case Compare::lt:
      return a < b;
    case Compare::le:
      return a <= b;
    case Compare::gt:
      return a > b;
    case Compare::ge:
      return a >= b;
  }
  return false;
}

int64_t act(const VideoForm& form, int64_t a, int64_t b) {
  switch (static_cast<Action>(form.action)) {
    case Action::add:
      return a + b;
    case Action::sub:
      return a - b;
    case Action::absolute_difference:
      return a > b ? a - b : b - a;
    case Action::min:
      return std::min(a, b);
    case Action::max:
      return std::max(a, b);
    case Action::shift_left:
    case Action::shift_right: {
      const auto count = form.wrap ? b & 31 : std::min<int64_t>(b, 32);
      return static_cast<Action>(form.action) == Action::shift_left
                 ? static_cast<int64_t>(static_cast<uint64_t>(a) << count)
                 : a >> count;
    }
    case Action::average:
      return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
    case Action::set:
      return compare(static_cast<Compare>(form.compare), a, b);
    case Action::multiply:
      break;
  }
  return 0;
}

void scalar_form(Warp& warp, const Code& code, uint32_t mask) {
  const VideoForm& form = warp.cta->launch->image->videos[code.target];
  const uint32_t* a = at<const uint32_t>(warp, code.a);
  const uint32_t* b = at<const uint32_t>(warp, code.b);
  const uint32_t* c = at<const uint32_t>(warp, code.c);
  uint32_t* d = at<uint32_t>(warp, code.dst);
  const unsigned part = form.destination;
  const unsigned width = part < 4 ? 8 : part < 6 ? 16 : 32;
  for_lanes(mask, [&](unsigned i) {
    int64_t value = act(form, pick(a[i], form.a[0], form.a_signed), pick(b[i], form.b[0], form.b_signed));
    if (form.saturates) value = saturated(value, width, form.d_signed);
    auto result = static_cast<uint32_t>(value);
    auto less = [&](uint32_t x, uint32_t y) {
      return form.d_signed ? static_cast<int32_t>(x) < static_cast<int32_t>(y) : x < y;
    };
    switch (static_cast<Second>(form.second)) {
      case Second::add:
        result += c[i];
        break;
      case Second::min:
        result = less(c[i], result) ? c[i] : result;
        break;
      case Second::max:
        result = less(result, c[i]) ? c[i] : result;
        break;
      case Second::none:
        if (part == kWhole) break;
        const unsigned at_bit = part < 4 ? 8 * part : 16 * (part - 4);
        const uint32_t field = ((1u << width) - 1) << at_bit;
        result = (c[i] & ~field) | (result << at_bit & field);
    }
    d[i] = result;
  });
}

// vmad: 32-bit product of parts, plus c, scaled; the intermediate result is exact. With something negated it is signed.
void multiply_add(Warp& warp, const Code& code, uint32_t mask) {
  const VideoForm& form = warp.cta->launch->image->videos[code.target];
  const uint32_t* a = at<const uint32_t>(warp, code.a);
  const uint32_t* b = at<const uint32_t>(warp, code.b);
  const uint32_t* c = at<const uint32_t>(warp, code.c);
  uint32_t* d = at<uint32_t>(warp, code.dst);
  __extension__ using s128 = __int128;
  const bool is_signed = form.a_signed || form.b_signed || form.product_negated || form.c_negated;
  for_lanes(mask, [&](unsigned i) {
    s128 product = s128{pick(a[i], form.a[0], form.a_signed)} * pick(b[i], form.b[0], form.b_signed);
    if (form.product_negated) product = -product;
    // -c is ~c + 1, of which ~c has 32 bits: that of the least integer is itself plus 2^32.
    const uint32_t addend = form.c_negated ? ~c[i] : c[i];
    const s128 sum = product + (is_signed ? s128{static_cast<int32_t>(addend)} : s128{addend}) +
                     (form.plus_one || form.c_negated ? 1 : 0);
    auto result = static_cast<int64_t>(sum >> form.shift);
    if (form.saturates) result = saturated(result, 32, is_signed);
    d[i] = static_cast<uint32_t>(result);
  });
}

// Two halves or four bytes: sources are picked from a (first numbers) and b (the others).
void packed_form(Warp& warp, const Code& code, uint32_t mask) {
  const VideoForm& form = warp.cta->launch->image->videos[code.target];
  const uint32_t* a = at<const uint32_t>(warp, code.a);
  const uint32_t* b = at<const uint32_t>(warp, code.b);
  const uint32_t* c = at<const uint32_t>(warp, code.c);
  uint32_t* d = at<uint32_t>(warp, code.dst);
  const unsigned width = 32u / form.parts, first = form.parts == 2 ? 4 : 0;
  auto source = [&](unsigned i, unsigned number, bool is_signed) {
    return pick(number < form.parts ? a[i] : b[i], first + number % form.parts, is_signed);
  };
  for_lanes(mask, [&](unsigned i) {
    uint32_t result = form.second ? c[i] : 0;
    for (unsigned k = 0; k < form.parts; ++k) {
      const bool chosen = form.destination >> k & 1;
      const uint32_t field = (width == 16 ? 0xffffu : 0xffu) << (k * width & 31);
      if (!chosen) {
        if (!form.second) result |= c[i] & field;
        continue;
      }
      int64_t value = act(form, source(i, form.a[k], form.a_signed), source(i, form.b[k], form.b_signed));
      if (form.saturates) value = saturated(value, width, form.d_signed);
      if (form.second)
        result += static_cast<uint32_t>(value);
      else
        result |= static_cast<uint32_t>(value) << k * width & field;
    }
    d[i] = result;
  });
}

struct Row {
  Op op;
  Action action;
  uint8_t parts;
};
constexpr Row kRows[] = {
    {Op::vadd, Action::add, 1},
    {Op::vsub, Action::sub, 1},
    {Op::vabsdiff, Action::absolute_difference, 1},
    {Op::vmin, Action::min, 1},
    {Op::vmax, Action::max, 1},
    {Op::vshl, Action::shift_left, 1},
    {Op::vshr, Action::shift_right, 1},
    {Op::vmad, Action::multiply, 1},
    {Op::vset, Action::set, 1},
    {Op::vadd2, Action::add, 2},
    {Op::vsub2, Action::sub, 2},
    {Op::vavrg2, Action::average, 2},
    {Op::vabsdiff2, Action::absolute_difference, 2},
    {Op::vmin2, Action::min, 2},
    {Op::vmax2, Action::max, 2},
    {Op::vset2, Action::set, 2},
    {Op::vadd4, Action::add, 4},
    {Op::vsub4, Action::sub, 4},
    {Op::vavrg4, Action::average, 4},
    {Op::vabsdiff4, Action::absolute_difference, 4},
    {Op::vmin4, Action::min, 4},
    {Op::vmax4, Action::max, 4},
    {Op::vset4, Action::set, 4},
};

// The selector of an operand, "b2", "h1", "h10", "b7654"; empty without.
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
  form.action = static_cast<uint8_t>(row->action);
  form.parts = row->parts;
  const bool sets = row->action == Action::set;
  auto type_signed = [&](unsigned i) { return i < instruction_->type_count && instruction_->types[i] == Type::s32; };
  form.d_signed = !sets && type_signed(0);
  form.a_signed = type_signed(sets ? 0 : 1);
  form.b_signed = type_signed(sets ? 1 : 2);
  form.saturates = w.has(Mod::sat);
  form.wrap = w.has(Mod::wrap);
  form.plus_one = w.has(Mod::po);
  form.shift = w.has(Mod::shr7) ? 7 : w.has(Mod::shr15) ? 15 : 0;
  static constexpr std::pair<Mod, Compare> kCompares[] = {{Mod::eq, Compare::eq}, {Mod::ne, Compare::ne},
                                                          {Mod::lt, Compare::lt}, {Mod::le, Compare::le},
                                                          {Mod::gt, Compare::gt}, {Mod::ge, Compare::ge}};
  for (auto [mod, by] : kCompares)
    if (w.has(mod)) form.compare = static_cast<uint8_t>(by);
  form.second = static_cast<uint8_t>(w.has(Mod::add)   ? Second::add
                                     : w.has(Mod::min) ? Second::min
                                     : w.has(Mod::max) ? Second::max
                                                       : Second::none);
  place(code);
  const ptx::MatchedOperand* result = take(ptx::Purpose::result);
  const auto sources = take_all(ptx::Purpose::source);
  if (result == nullptr || sources.size() < 2) return false;
  const ptx::Operand &d = result->operand, &a = sources[0]->operand, &b = sources[1]->operand;
  form.product_negated = a.negated != b.negated;
  form.c_negated = sources.size() > 2 && sources[2]->operand.negated;
  bool known = true;
  if (row->parts == 1) {
    form.destination = form.a[0] = form.b[0] = kWhole;
    known = select_part(selector(d), form.destination) && select_part(selector(a), form.a[0]) &&
            select_part(selector(b), form.b[0]);
    code.run = row->action == Action::multiply ? multiply_add : scalar_form;
  } else {
    for (uint8_t k = 0; k < row->parts; ++k) {
      form.a[k] = k;
      form.b[k] = static_cast<uint8_t>(row->parts + k);
    }
    known = select_parts(selector(a), row->parts, form.a) && select_parts(selector(b), row->parts, form.b);
    const std::string mask = selector(d);
    form.destination = mask.empty() ? 0xf : 0;
    for (size_t i = 1; i < mask.size(); ++i) form.destination |= static_cast<uint8_t>(1u << (mask[i] - '0'));
    code.run = packed_form;
  }
  code.target = static_cast<uint32_t>(image_.videos.size());
  image_.videos.push_back(form);
  return known;
}

}  // namespace ptxkit::emulator
