// See memory_sections.hpp: barrier_section, mbarrier_section, matrix_section.
#include <string>
#include <string_view>

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

constexpr std::string_view kWarps = "and.b32 %r5, %thread, 32;\nsetp.eq.u32 %p1, %r5, 0;\n";  // %p1: the first warp

// Reads the word of the other warp's thread, which only a barrier makes visible.
std::string exchange(unsigned at) {
  return fmt::format(
      "xor.b32 %r1, %thread, 33;\nshl.b32 %r1, %r1, 6;\nadd.u32 %r1, %r1, %tile;\nld.shared.b32 %r2, [%r1+{}];\n"
      "st.global.b32 [%to+{}], %r2;\n",
      at + 4, at);
}

std::string bar(const SpelledForm& form, unsigned threads, Section& out) {
  const std::string number = form.number % 2 ? "%r0" : std::to_string(form.number % 16);
  std::string text =
      fmt::format("mov.b32 %r0, {};\n", form.number % 16) + copy_64("global", "%from", "shared", "%cell");
  const std::string count = fmt::format(", {}", threads);
  if (form.has("arrive")) {  // the first warp only arrives
    out.instruction = form.spelling + " " + number + count + ";";
    std::string_view sync = form.form->op == Op::bar ? "bar.sync" : "barrier.sync";
    return text + std::string(kWarps) + "@!%p1 bra waits;\n" + out.instruction +
           fmt::format("\nbra.uni done;\nwaits:\n{} {}{};\n", sync, number, count) + exchange(0) + "done:\n" +
           std::string(kClusterBarrier);
  }
  bool counted = false;
  for (size_t i = form.first; i < form.specs.size(); ++i)
    if (form.specs[i].purpose == Purpose::threads) counted = !form.specs[i].optional || form.number % 3 == 1;
  if (form.has("red")) {
    const bool popc = form.has("popc");
    out.instruction =
        fmt::format("{} {}, {}{}, %p0;", form.spelling, popc ? "%r3" : "%p2", number, counted ? count : "");
    text += "ld.global.b32 %r3, [%from];\nand.b32 %r4, %r3, 3;\nsetp.ne.u32 %p0, %r4, 0;\nsetp.ne.u32 %p2, %r4, 1;\n" +
            out.instruction + "\n" + (popc ? "" : "selp.b32 %r3, 1, 0, %p2;\n") + "st.global.b32 [%to+4], %r3;\n";
    return text + exchange(0) + std::string(kClusterBarrier);
  }
  out.instruction = fmt::format("{} {}{};", form.spelling, number, counted ? count : "");
  return text + out.instruction + "\n" + exchange(0) + std::string(kClusterBarrier);
}

std::string cluster_barrier(const SpelledForm& form, Section& out) {
  out.instruction = form.spelling + ";";
  const bool arrives = form.has("arrive"), relaxed = form.has("relaxed");
  return copy_64("global", "%from", "shared", "%cell") + (relaxed ? "fence.acq_rel.cluster;\n" : "") +
         (arrives ? out.instruction : "barrier.cluster.arrive;") + "\n" +
         (arrives ? "barrier.cluster.wait;" : out.instruction) + "\n" +
         "mapa.shared::cluster.u32 %peer, %cell, %other;\nld.shared::cluster.b32 %r0, [%peer+4];\n"
         "st.global.b32 [%to], %r0;\n" +
         std::string(kClusterBarrier);
}

// Next to a barrier: its only visible effect is that the bytes are there.
std::string fence(const SpelledForm& form, Section& out) {
  out.instruction = form.spelling;
  for (size_t i = form.first; i < form.specs.size(); ++i)
    if (form.specs[i].role == Role::address) out.instruction += " [%cto], 128";
  out.instruction += ";";
  return copy_64("global", "%from", "shared", "%cell") + out.instruction + "\nbar.sync 0;\n" + out.instruction + "\n" +
         exchange(0) + std::string(kClusterBarrier);
}

// Every second lane, with values that name none of the others.
std::string half_warp(const SpelledForm& form, Section& out) {
  std::string text =
      "and.b32 %r5, %thread, 1;\nsetp.eq.u32 %p1, %r5, 0;\nmov.b32 %r6, 0x55555555;\nld.global.b32 %r0, [%from];\n"
      "ld.global.b64 %wide, [%from+8];\nmov.b32 %r1, -7;\nand.b32 %r2, %r0, 28;\nmov.b32 %r3, 31;\n"
      "setp.ne.u32 %p0, %r2, 8;\nsetp.ne.u32 %p2, %r2, 12;\n";
  const bool wide = form.has("b64");
  const std::string value = wide ? "%wide" : "%r0";
  switch (form.form->op) {
    case Op::bar:
      out.instruction = form.spelling + " %r6;";
      return text + copy_64("global", "%from", "shared", "%cell") + "@!%p1 bra skip;\n" + out.instruction +
             "\nxor.b32 %r1, %thread, 2;\nshl.b32 %r1, %r1, 6;\nadd.u32 %r1, %r1, %tile;\nld.shared.b32 %r2, [%r1+4];\n"
             "st.global.b32 [%to], %r2;\nskip:\n" +
             std::string(kClusterBarrier);
    case Op::vote:
      out.instruction = form.has("ballot") ? form.spelling + " %r1, %p0, %r6;" : form.spelling + " %p2, %p0, %r6;";
      break;
    case Op::match:
      text += "and.b64 %wide, %wide, 12;\nand.b32 %r0, %r0, 12;\n";
      out.instruction = fmt::format("{} %r1{}, {}, %r6;", form.spelling, form.has("all") ? "|%p2" : "", value);
      break;
    case Op::redux:
      out.instruction = form.spelling + " %r1, %r0, %r6;";
      break;
    case Op::elect:
      out.instruction = form.spelling + " %r1|%p2, %r6;";
      break;
    default:
      out.instruction = fmt::format("{} %r1|%p2, %r0, {}, {}, %r6;", form.spelling, form.has("idx") ? "%r2" : "6",
                                    form.has("up") ? "0" : "31");
      break;
  }
  return text + "@!%p1 bra skip;\n" + out.instruction +
         "\nskip:\nselp.b32 %r2, 1, 0, %p2;\nst.global.b32 [%to], %r1;\nst.global.b32 [%to+4], %r2;\nbar.sync 0;\n";
}

// Its only visible effect is that the program continues.
std::string plain(const SpelledForm& form, Section& out) {
  out.instruction = form.spelling;
  for (size_t i = form.first; i < form.specs.size(); ++i)
    out.instruction += form.specs[i].role == Role::integer ? fmt::format(" {}", form.specs[i].low) : " 100";
  out.instruction += ";";
  return out.instruction + "\n" + copy_64("global", "%from", "global", "%to");
}

std::string results(std::string_view predicate, unsigned at) {
  return fmt::format("selp.b32 %r7, 1, 0, {};\n@%leader st.global.b32 [%tto+{}], %r7;\n", predicate, at);
}

}  // namespace

Section barrier_section(const SpelledForm& form, unsigned threads) {
  Section out;
  switch (form.form->op) {
    case Op::bar:
    case Op::barrier:
      out.text = form.has("warp")      ? half_warp(form, out)
                 : form.has("cluster") ? cluster_barrier(form, out)
                                       : bar(form, threads, out);
      break;
    case Op::fence:
    case Op::membar:
      out.text = fence(form, out);
      break;
    case Op::vote:
    case Op::match:
    case Op::redux:
    case Op::elect:
    case Op::shfl:
      out.text = half_warp(form, out);
      break;
    default:
      out.text = plain(form, out);
      break;
  }
  return out;
}

// The first thread of a CTA takes a barrier of 40 arrivals through two phases and queries it in between.
Section mbarrier_section(const SpelledForm& form, unsigned threads) {
  const unsigned fourth = threads * 192;
  Section out;
  const bool remote = form.has("shared::cluster") && !form.has("test_wait") && !form.has("try_wait");
  const std::string here = form.has_space ? "[%bar]" : "[%at]", barrier = remote ? "[%pbar]" : here;
  bool counted = false, sink = false;
  for (size_t i = form.first; i < form.specs.size(); ++i) {
    const ptx::OperandSpec& spec = form.specs[i];
    sink |= spec.role == Role::sink;
    if (spec.purpose == Purpose::source && (!spec.optional || form.number % 2)) counted = true;
  }
  const bool drops = form.has("arrive_drop"), expects = form.has("expect_tx"),
             waits = form.has("test_wait") || form.has("try_wait");
  const bool arrives = form.has("arrive") || drops;
  const unsigned first = arrives ? counted && !expects ? 5 : 1 : 0;
  std::string text =
      "cvt.u64.u32 %at, %bar;\ncvta.shared.u64 %at, %at;\nmov.b32 %r0, 5;\nmov.b64 %made, 0;\n"
      "mov.b32 %r1, 64;\nmov.b32 %r2, 40;\nmov.b32 %r3, 0;\n";
  unsigned kept = fourth;
  const auto keep_count = [&](std::string_view state) {
    const std::string line =
        fmt::format("mbarrier.pending_count.b64 %r7, {};\nst.global.b32 [%tto+{}], %r7;\n", state, kept);
    kept += 4;
    return line;
  };
  const auto ask = [&](unsigned phase) {
    const std::string line =
        fmt::format("mbarrier.test_wait.parity.shared.b64 %p0, [%bar], {};\n", phase) + results("%p0", kept);
    kept += 4;
    return line;
  };
  const auto arrive = [&](unsigned count) {
    return fmt::format("mbarrier.arrive.shared.b64 %made, [%bar], {};\n", count) + keep_count("%made");
  };
  const std::string init = "mbarrier.init.shared.b64 [%bar], 40;\n";
  if (form.has("init"))
    out.instruction = fmt::format("{} {}, {};", form.spelling, here, form.number % 2 ? "%r2" : "40");
  else if (form.has("inval"))
    out.instruction = fmt::format("{} {};", form.spelling, here);
  else if (form.has("pending_count"))
    out.instruction = form.spelling + " %r7, %made;";
  else if (waits)
    out.instruction = fmt::format("{} %p1, {}, {}{};", form.spelling, here,
                                  form.has("parity") ? form.number % 2 ? "%r3" : "0" : "%made",
                                  form.has("try_wait") && form.number % 3 == 1 ? ", 1000" : "");
  else if (arrives)
    out.instruction = fmt::format("{} {}, {}{};", form.spelling, sink ? "_" : "%made", barrier,
                                  expects   ? ", %r1"
                                  : counted ? form.number % 4 > 1 ? ", %r0" : ", 5"
                                            : "");
  else
    out.instruction = fmt::format("{} {}, %r1;", form.spelling, barrier);

  std::string after;
  text += "@!%leader bra ready;\n" + (form.has("init") ? out.instruction + "\n" : init);
  if (form.has("inval")) text += out.instruction + "\n" + init;
  text += "ready:\nfence.mbarrier_init.release.cluster;\n" + std::string(kClusterBarrier) + "@!%leader bra done;\n";
  if (form.has("complete_tx") && !arrives) {  // the transactions that it completes are expected first
    text += fmt::format("mbarrier.expect_tx.relaxed.cluster.{}.b64 {}, 64;\n",
                        remote ? "shared::cluster" : "shared::cta", remote ? "[%pbar]" : "[%bar]");
  }
  if (arrives || form.has("expect_tx") || form.has("complete_tx")) text += out.instruction + "\n";
  if (arrives && !sink) text += keep_count("%made");
  // The other CTA's leader may have been the one that arrived.
  text += "done:\n" + std::string(kClusterBarrier) + "@!%leader bra over;\n";
  text += arrive(40 - first - 1);
  if (waits) text += out.instruction + "\n" + results("%p1", kept), kept += 4;
  if (form.has("pending_count"))
    text += out.instruction + fmt::format("\nst.global.b32 [%tto+{}], %r7;\n", kept), kept += 4;
  text += ask(0);
  text += "mbarrier.arrive.shared.b64 %save, [%bar];\n" + keep_count("%save");
  if (expects) text += ask(0) + "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%bar], 64;\n";
  text += ask(0);
  if (waits) text += out.instruction + "\n" + results("%p1", kept), kept += 4;
  text += arrive(40 - (drops ? first : 0) - 1) + ask(1) + arrive(1) + ask(1);
  text += "mbarrier.inval.shared.b64 [%bar];\nover:\n" + std::string(kClusterBarrier);
  out.text = text;
  return out;
}

Section matrix_section(const SpelledForm& form, unsigned threads) {
  Section out;
  // Rows of 16 bytes, 64 bytes apart, in irregular order. A generic address if the form names no space.
  std::string text = copy_64("global", "%tfrom", "shared", "%cell") + copy_64("global", "%tfrom", "shared", "%aimed") +
                     "bar.sync 0;\nmul.lo.u32 %r0, %thread, 11;\nand.b32 %r0, %r0, 31;\nshl.b32 %r0, %r0, 6;\n"
                     "add.u32 %r0, %r0, %tile;\ncvt.u64.u32 %at, %r0;\n";
  const std::string address = form.has_space ? "[%r0+16]" : "[%at+16]";
  if (!form.has_space) text += "cvta.shared.u64 %at, %at;\n";
  const ptx::OperandSpec* matrix = nullptr;
  for (size_t i = form.first; i < form.specs.size(); ++i)
    if (form.specs[i].role == Role::vector) matrix = &form.specs[i];
  if (matrix == nullptr) return out;
  const bool load = form.form->op == Op::ldmatrix;
  const Registers registers = registers_of(*matrix, "s", "%tfrom", threads * 64, 0);
  out.instruction =
      form.spelling + " " + (load ? registers.operand + ", " + address : address + ", " + registers.operand) + ";";
  text += registers.declarations + registers.loads + out.instruction + "\nbar.sync 0;\n";
  for (unsigned i = 0; load && i < matrix->count; ++i)
    text += fmt::format("st.global.b32 [%tto+{}], %s{};\n", threads * 192 + 4 * i, i);
  if (!load) text += copy_64("shared", "%cell", "global", fmt::format("%tto+{}", threads * 128));
  out.text = text + "bar.sync 0;\n";
  return out;
}

}  // namespace ptxkit::testing
