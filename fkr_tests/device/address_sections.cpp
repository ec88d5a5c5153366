// See memory_sections.hpp: address_section.
#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "analyzer/ptx/names.hpp"
#include "fkr_tests/device/memory_sections.hpp"
#include "fkr_tests/device/spelled_form.hpp"

namespace ptxkit::testing {

namespace {

using ptx::Op;
using ptx::Space;

constexpr std::string_view kKeep = "st.global.b32 [%to], %r0;\n";

// Puts the address of the thread's bytes in a space, as an address of that space, into %at.
std::string address_in(std::string_view space) {
  const std::string of_lane = "and.b32 %r0, %thread, 15;\nmul.wide.u32 %wide, %r0, 64;\nadd.u64 %at, %at, %wide;\n";
  if (space == "global") return "mov.b64 %at, %from;\n";
  if (space == "local") return "mov.b64 %at, frame;\n" + copy_64("global", "%from", "local", "%at");
  if (space == "const") return "mov.b64 %at, constants;\n" + of_lane;
  if (space.starts_with("param")) return "mov.b64 %at, block;\n" + of_lane;
  const std::string fill = copy_64("global", "%from", "shared", "%cell");
  if (space != "shared::cluster") return fill + "cvt.u64.u32 %at, %cell;\n";
  return fill + std::string(kClusterBarrier) +
         "mapa.shared::cluster.u32 %peer, %cell, %other;\ncvt.u64.u32 %at, %peer;\n";
}

std::string space_word(const SpelledForm& form) {
  for (const std::string& word : form.words)
    if (ptx::find_word(word).kind == ptx::Word::Kind::space) return word;
  return "";
}

// Reads the memory at the address that the instruction makes.
Section conversion(const SpelledForm& form) {
  const std::string space = space_word(form);
  Section out;
  out.instruction = form.spelling + " %made, %at;";
  const std::string load = space.starts_with("param") ? "param" : space;
  out.text = address_in(space);
  if (form.has("to"))
    out.text += fmt::format("cvta.{}.u64 %at, %at;\n{}\nld.{}.b32 %r0, [%made+20];\n", space, out.instruction, load);
  else
    out.text += fmt::format("{}\nld.b32 %r0, [%made+20];\n", out.instruction);
  out.text += kKeep;
  if (space == "shared::cluster") out.text += kClusterBarrier;
  return out;
}

// A generic address in each space; the last is an address in the CTA's own memory, made by mapa.
Section question(const SpelledForm& form) {
  static constexpr std::array<std::string_view, 6> kSpaces = {"global", "local",  "const",
                                                              "param",  "shared", "shared::cluster"};
  Section out;
  out.instruction = form.spelling + " %p0, %at;";
  for (size_t i = 0; i < kSpaces.size(); ++i) {
    out.text += address_in(kSpaces[i]);
    if (kSpaces[i] != "global") out.text += fmt::format("cvta.{}.u64 %at, %at;\n", kSpaces[i]);
    out.text += fmt::format("{}\nselp.b32 %r0, 1, 0, %p0;\nst.global.b32 [%to+{}], %r0;\n", out.instruction, 4 * i);
  }
  out.text +=
      "mapa.shared::cluster.u32 %peer, %cell, %rank;\ncvt.u64.u32 %at, %peer;\ncvta.shared::cluster.u64 %at, %at;\n" +
      fmt::format("{}\nselp.b32 %r0, 1, 0, %p0;\nst.global.b32 [%to+{}], %r0;\n", out.instruction, 4 * kSpaces.size()) +
      std::string(kClusterBarrier);
  return out;
}

// In the other CTA and in the same one.
Section mapping(const SpelledForm& form) {
  Section out;
  const bool narrow = form.type() == ptx::Type::u32, generic = !form.has_space;
  const std::string_view target = form.number % 2 ? "%rank" : "%other";
  const std::string source = generic ? "%at" : narrow ? "%cell" : "%at";
  out.text = copy_64("global", "%from", "shared", "%cell") + std::string(kClusterBarrier) + "cvt.u64.u32 %at, %cell;\n";
  if (generic) out.text += "cvta.shared.u64 %at, %at;\n";
  const std::string map = fmt::format("mapa{}.{} %{}, {}, {};", generic ? "" : ".shared::cluster",
                                      narrow ? "u32" : "u64", narrow ? "peer" : "made", source, target);
  const std::string rank = fmt::format("getctarank{}.{} %r0, %{};", generic ? "" : ".shared::cluster",
                                       narrow ? "u32" : "u64", narrow ? "peer" : "made");
  out.instruction = form.form->op == Op::mapa ? map : rank;
  out.text += map + "\n" + rank + "\n" + std::string(kKeep) +
              fmt::format("ld{}.b32 %r0, [%{}+20];\nst.global.b32 [%to+4], %r0;\n", generic ? "" : ".shared::cluster",
                          narrow ? "peer" : "made") +
              std::string(kClusterBarrier);
  return out;
}

// Changes no byte, except the bytes that `discard` drops; they are written afterwards.
Section hint(const SpelledForm& form) {
  Section out;
  const bool local = form.space == Space::local;
  out.text = local ? "mov.b64 %at, frame;\n" + copy_64("global", "%from", "local", "%at") : "mov.b64 %at, %to;\n";
  const bool sized = form.form->op == Op::applypriority || form.form->op == Op::discard;
  out.instruction = form.spelling + (sized ? " [%at], 128;" : " [%at];");
  if (form.form->op == Op::applypriority) out.text += copy_64("global", "%from", "global", "%to");
  out.text += out.instruction + "\n";
  if (form.form->op == Op::discard) out.text += copy_64("global", "%from", "global", "%to+64");
  out.text += local ? copy_64("local", "frame", "global", "%to") : copy_64("global", "%from", "global", "%to");
  return out;
}

// The ISA does not define the bits of a policy, so it is only used.
Section policy(const SpelledForm& form) {
  Section out;
  if (form.has("cvt"))
    out.instruction = form.spelling + " %made, 0x10f0000000000000;";
  else if (form.has("range"))
    out.instruction = form.spelling + " %made, [%cfrom], 256, 1024;";
  else
    out.instruction = form.spelling + (form.number % 2 ? " %made, 0.25;" : " %made;");
  out.text = out.instruction + "\nld.global.L2::cache_hint.b32 %r0, [%from+20], %made;\n" + std::string(kKeep);
  return out;
}

Section stack(const SpelledForm& form) {
  Section out;
  const std::string save = "stacksave.u64 %save;", make = "alloca.u64 %at, %wide, 16;",
                    restore = "stackrestore.u64 %save;";
  out.instruction = form.form->op == Op::alloca ? make : form.form->op == Op::stacksave ? save : restore;
  out.text = "mov.b64 %wide, 64;\n" + save + "\n" + make + "\n" + copy_64("global", "%from", "local", "%at") +
             copy_64("local", "%at", "global", "%to") + restore + "\n";
  return out;
}

}  // namespace

Section address_section(const SpelledForm& form) {
  switch (form.form->op) {
    case Op::cvta:
      return conversion(form);
    case Op::isspacep:
      return question(form);
    case Op::mapa:
    case Op::getctarank:
      return mapping(form);
    case Op::createpolicy:
      return policy(form);
    case Op::alloca:
    case Op::stacksave:
    case Op::stackrestore:
      return stack(form);
    default:
      return hint(form);
  }
}

}  // namespace ptxkit::testing
