// See memory_sections.hpp.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/names.hpp"
#include "fkr_tests/device/memory_sections.hpp"
#include "fkr_tests/device/spelled_form.hpp"

namespace ptxkit::testing {

namespace {

using ptx::Op;
using ptx::Purpose;
using ptx::Role;
using ptx::Space;
using ptx::Type;

constexpr unsigned kSourceAt = 64, kCompareAt = 128, kCellAt = 192;  // offsets in a row

// How a register is declared and moved.
struct Kept {
  const char* declared;
  const char* moved;
  unsigned bytes;
};

Kept kept(Type type, bool relaxed, unsigned wider) {
  if (type == Type::f32) return {"f32", "f32", 4};
  if (type == Type::f64) return {"f64", "f64", 8};
  if (type == Type::pred) return {"pred", "b32", 4};
  static constexpr std::array<Kept, 3> kWidths = {{{"b16", "b16", 2}, {"b32", "b32", 4}, {"b64", "b64", 8}}};
  const unsigned width = ptx::bit_width(type);
  if (width == 128) return {"b128", "b128", 16};
  const unsigned least = width <= 16 ? 0 : width == 32 ? 1 : 2;
  return kWidths[relaxed ? least + wider % (3 - least) : least];
}

// The memory that an access addresses.
enum class Window { in, out, shared, peer, local, constant, parameter, given, got };

// For memory of another CTA, ptxas 13.0 compiles additions of two halves to one of integers, and 64-bit operations
// other than the addition and the exchange to code that is not atomic: see memory_exception().
bool is_broken_at_peer(const SpelledForm& form) {
  if (form.form->op != Op::atom && form.form->op != Op::red) return false;
  if (form.type() == Type::f16x2 || form.type() == Type::bf16x2) return true;
  return ptx::bit_width(form.type()) == 64 && !form.has("add") && !form.has("exch") && !form.has("cas");
}

Window window_of(const SpelledForm& form) {
  const bool load = form.form->op == Op::ld || form.form->op == Op::ldu;
  const bool atomic = form.form->op == Op::atom || form.form->op == Op::red;
  switch (form.space) {
    case Space::global:
      return load ? Window::in : Window::out;
    case Space::shared:
      return Window::shared;
    case Space::shared_cluster:
      return Window::peer;
    case Space::local:
      return Window::local;
    case Space::constant:
      return Window::constant;
    case Space::param:
      return load ? form.has("param::func") ? Window::got : Window::parameter : Window::given;
    default:
      break;
  }
  // Forms that the ISA allows for global memory only need a generic address in global memory.
  const bool of_global =
      form.has("mmio") || (atomic && form.vector > 1) || std::ranges::any_of(form.words, [](const std::string& word) {
        return word.starts_with("L1::") || word.starts_with("L2::");
      });
  if (form.form->op == Op::ldu || of_global) return load ? Window::in : Window::out;
  static constexpr std::array<Window, 6> kLoads = {Window::in,    Window::shared,   Window::peer,
                                                   Window::local, Window::constant, Window::parameter};
  static constexpr std::array<Window, 4> kStores = {Window::out, Window::shared, Window::peer, Window::local};
  const bool strong = form.has("volatile") || form.has("relaxed") || form.has("acquire") || form.has("release");
  if (load) return kLoads[form.number % (strong ? 3 : 6)];
  if (is_broken_at_peer(form)) return kStores[form.number % 2];
  return kStores[form.number % (atomic || strong ? 3 : 4)];
}

// The text before the instruction, with the generic address or that of the space in %at, and the text after it.
struct Around {
  std::string before, after, address = "[%at+16]";
};

Around around(Window window, bool generic, unsigned number) {
  const auto of_space = [&](std::string_view space) {
    return generic ? fmt::format("cvta.{}.u64 %at, %at;\n", space) : std::string();
  };
  const std::string from = "%from+192", to = "%to+192";
  const std::string lane = "and.b32 %r0, %thread, 15;\nmul.wide.u32 %wide, %r0, 64;\nadd.u64 %at, %at, %wide;\n";
  switch (window) {
    case Window::in:
      return {"add.u64 %at, %from, 192;\n", ""};
    case Window::out:
      return {copy_64("global", from, "global", to) + "add.u64 %at, %to, 192;\n", ""};
    case Window::shared:
      return {copy_64("global", from, "shared", "%cell") + "cvt.u64.u32 %at, %cell;\n" + of_space("shared"),
              copy_64("shared", "%cell", "global", to), generic || number % 2 ? "[%at+16]" : "[%cell+16]"};
    case Window::peer:
      return {copy_64("global", from, "shared", "%cell") + std::string(kClusterBarrier) +
                  "mapa.shared::cluster.u32 %peer, %cell, %other;\ncvt.u64.u32 %at, %peer;\n" +
                  of_space("shared::cluster"),
              std::string(kClusterBarrier) + copy_64("shared", "%cell", "global", to),
              generic || number % 2 ? "[%at+16]" : "[%peer+16]"};
    case Window::local:
      return {"mov.b64 %at, frame;\n" + copy_64("global", from, "local", "%at") + of_space("local"),
              copy_64("local", "frame", "global", to)};
    case Window::constant:
      return {"mov.b64 %at, constants;\n" + lane + of_space("const"), ""};
    case Window::parameter:
      return {"mov.b64 %at, block;\n" + lane + of_space("param"), ""};
    case Window::given:
    case Window::got: {
      const std::string declared = ".param .align 16 .b8 given[64];\n.param .align 16 .b8 got[64];\n";
      const std::string call = "call.uni (got), pass, (given);\n";
      if (window == Window::given) return {declared, call, "[given+16]"};
      return {declared + copy_64("global", from, "param", "given") + call, "", "[got+16]"};
    }
  }
  return {};
}

// All operands but the address, as they are written.
struct Operands {
  std::vector<std::string> written;  // "" in the place of the address
  std::string declarations, loads, stores;
};

Operands operands_of(const SpelledForm& form) {
  Operands out;
  for (size_t i = form.first; i < form.specs.size(); ++i) {
    const ptx::OperandSpec& spec = form.specs[i];
    if (spec.purpose == Purpose::policy) {
      out.written.emplace_back("%policy");
      continue;
    }
    if (spec.role == Role::address) {
      out.written.emplace_back();
      continue;
    }
    if (spec.role == Role::integer) {
      out.written.push_back(std::to_string(spec.low));
      continue;
    }
    const bool destination = spec.purpose == Purpose::result;
    const bool compare = spec.purpose == Purpose::compare;
    const Registers registers = registers_of(spec,
                                             destination ? "d"
                                             : compare   ? "e"
                                                         : "s",
                                             "%from",
                                             destination ? 0
                                             : compare   ? kCompareAt
                                                         : kSourceAt,
                                             form.number);
    out.written.push_back(registers.operand);
    out.declarations += registers.declarations;
    out.loads += registers.loads;
    if (destination) out.stores += registers.stores;
  }
  return out;
}

std::string instruction_text(const SpelledForm& form, const Operands& operands, const std::string& address) {
  std::string text = form.spelling;
  for (size_t i = 0; i < operands.written.size(); ++i)
    text += (i ? ", " : " ") + (operands.written[i].empty() ? address : operands.written[i]);
  return text + ";";
}

// All threads access one place, the cell of the first thread, with operations whose order does not matter.
std::string contended(const SpelledForm& form, Window window, const Operands& operands) {
  const Type type = form.type();
  const bool integer = type != Type::f32 && type != Type::f64 && ptx::bit_width(type) >= 32 && !form.has("noftz") &&
                       !form.has("exch") && !form.has("cas") && form.vector == 1;
  if (!integer || (form.form->op != Op::atom && form.form->op != Op::red)) return {};
  if (window == Window::peer && is_broken_at_peer(form)) return {};
  std::string text(kClusterBarrier);
  const bool generic = !form.has_space;
  if (window == Window::out) {
    // The CTA's own place, if the scope is no larger.
    text += form.has("cta") ? "add.u64 %at, %cto, 192;\n"
                            : "mul.wide.u32 %wide, %rank, %bytes;\nsub.u64 %at, %cto, %wide;\nadd.u64 %at, %at, 192;\n";
  } else if (window == Window::shared) {
    text += "cvt.u64.u32 %at, %tile;\n";
    if (generic) text += "cvta.shared.u64 %at, %at;\n";
  } else {
    text += "mapa.shared::cluster.u32 %peer, %tile, %other;\ncvt.u64.u32 %at, %peer;\n";
    if (generic) text += "cvta.shared::cluster.u64 %at, %at;\n";
  }
  if (form.has("inc") || form.has("dec")) text += "mov.b32 %s0, 77;\n";
  return text + instruction_text(form, operands, "[%at+16]") + "\n" + std::string(kClusterBarrier);
}

}  // namespace

std::string copy_64(std::string_view from_space, std::string_view from, std::string_view to_space,
                    std::string_view to) {
  // A register or a name, with or without an offset.
  const auto place = [](std::string_view address, unsigned more) {
    const size_t plus = address.find('+');
    if (plus != std::string_view::npos)
      more += static_cast<unsigned>(std::stoul(std::string(address.substr(plus + 1))));
    return fmt::format("{}+{}", address.substr(0, plus), more);
  };
  std::string text;
  for (unsigned i = 0; i < 64; i += 16)
    text += fmt::format("ld.{0}.v4.b32 {{%c0, %c1, %c2, %c3}}, [{1}];\nst.{2}.v4.b32 [{3}], {{%c0, %c1, %c2, %c3}};\n",
                        from_space, place(from, i), to_space, place(to, i));
  return text;
}

Registers registers_of(const ptx::OperandSpec& spec, std::string_view name, std::string_view row, unsigned offset,
                       unsigned wider) {
  Registers out;
  const unsigned count = spec.role == Role::vector ? spec.count : 1;
  const Kept each = kept(spec.type, spec.relaxed, wider);
  const bool predicate = std::string_view(each.declared) == "pred";
  out.declarations = fmt::format(".reg .{} %{}<{}>;\n", each.declared, name, count);
  for (unsigned i = 0; i < count; ++i) {
    const unsigned at = offset + i * each.bytes;
    out.operand += fmt::format("{}%{}{}", i ? ", " : "", name, i);
    if (predicate) {
      out.loads += fmt::format("ld.global.b32 %r7, [{}+{}];\nand.b32 %r7, %r7, 1;\nsetp.ne.u32 %{}{}, %r7, 0;\n", row,
                               at, name, i);
      out.stores += fmt::format("selp.b32 %r7, 1, 0, %{}{};\nst.global.b32 [%to+{}], %r7;\n", name, i, at);
    } else {
      out.loads += fmt::format("ld.global.{} %{}{}, [{}+{}];\n", each.moved, name, i, row, at);
      out.stores += fmt::format("st.global.{} [%to+{}], %{}{};\n", each.moved, at, name, i);
    }
  }
  if (spec.role == Role::vector) out.operand = "{" + out.operand + "}";
  return out;
}

Section access_section(const SpelledForm& form) {
  const Window window = window_of(form);
  const Around at = around(window, !form.has_space, form.number);
  const Operands operands = operands_of(form);
  Section out;
  out.instruction = instruction_text(form, operands, at.address);
  out.text = operands.declarations + operands.loads + at.before + out.instruction + "\n" + operands.stores;
  if (window == Window::given) {  // what was passed is read back byte by byte
    out.text += at.after;
    for (unsigned i = 0; i < ptx::byte_width(form.type()) * form.vector; ++i)
      out.text += fmt::format("ld.param.u8 %r0, [got+{}];\nst.global.u8 [%to+{}], %r0;\n", 16 + i, kCellAt + 16 + i);
    return out;
  }
  if (window == Window::got) return out;
  out.text += contended(form, window, operands) + at.after;
  return out;
}

}  // namespace ptxkit::testing
