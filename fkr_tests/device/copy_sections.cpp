// See memory_sections.hpp: copy_section.
#include <array>
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

// Quarters of a CTA's bytes, threads * 64 bytes each: the source in `in` and a target in `out`, another source, the
// final contents of shared memory, and results of threads.
struct Quarters {
  unsigned second, third, fourth;
};
Quarters quarters(unsigned threads) { return {threads * 64, threads * 128, threads * 192}; }

std::string fill_tile() { return copy_64("global", "%tfrom", "shared", "%cell"); }
std::string fill_aim(Quarters at) { return copy_64("global", fmt::format("%tfrom+{}", at.second), "shared", "%aimed"); }
std::string keep(std::string_view shared, unsigned at) {
  return copy_64("shared", shared, "global", fmt::format("%tto+{}", at));
}
constexpr std::string_view kInit =
    "@%leader mbarrier.init.shared.b64 [%bar], {};\nfence.mbarrier_init.release.cluster;\n"
    "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";
// Every thread waits for the first phase; after that the barrier is unused.
std::string await() { return "{\nagain:\nmbarrier.try_wait.parity.shared.b64 %p0, [%bar], 0;\n@!%p0 bra again;\n}\n"; }
std::string forget_barrier() { return std::string(kClusterBarrier) + "@%leader mbarrier.inval.shared.b64 [%bar];\n"; }
std::string init(unsigned count) {
  std::string text(kInit);
  return text.replace(text.find("{}"), 2, std::to_string(count));
}

// cp.async: each thread copies to its own cell.
Section copy_of_threads(const SpelledForm& form, unsigned threads) {
  const Quarters at = quarters(threads);
  Section out;
  static constexpr std::array<unsigned, 3> kSizes = {4, 8, 16};
  const unsigned size = form.has("cg") ? 16 : kSizes[form.number % 3];
  std::string copy = fmt::format("cp.async.ca.shared.global [%cell+16], [%tfrom+{}], 16;", at.second + 16);
  std::string wait = "cp.async.commit_group;\ncp.async.wait_group 0;\n";
  out.text = fill_tile();
  if (form.has("mbarrier")) {
    out.instruction = form.spelling + (form.has_space ? " [%bar];" : " [%at];");
    out.text += "cvt.u64.u32 %at, %bar;\ncvta.shared.u64 %at, %at;\n";
    out.text += init(form.has("noinc") ? threads : threads) + copy + "\n" + out.instruction + "\n";
    if (!form.has("noinc")) out.text += "mbarrier.arrive.shared.b64 %made, [%bar];\n";
    out.text += await() + keep("%cell", at.third) + forget_barrier();
    return out;
  }
  if (form.has("commit_group")) {
    out.instruction = form.spelling + ";";
    out.text += copy + "\n" + out.instruction + "\ncp.async.wait_group 0;\n";
  } else if (form.has("wait_all")) {
    out.instruction = form.spelling + ";";
    out.text += copy + "\n" + out.instruction + "\n";
  } else if (form.has("wait_group")) {  // of two groups, waits for the first
    out.instruction = form.spelling + " 1;";
    out.text += copy + "\ncp.async.commit_group;\n" +
                fmt::format("cp.async.ca.shared.global [%cell+32], [%tfrom+{}], 8;\n", at.second + 32) +
                "cp.async.commit_group;\n" + out.instruction + "\nld.shared.b32 %r0, [%cell+20];\n" +
                fmt::format("st.global.b32 [%tto+{}], %r0;\n", at.fourth) + wait;
  } else {
    out.instruction = fmt::format("{} [%cell+16], [%tfrom+{}], {}", form.spelling, at.second + 16, size);
    for (size_t i = form.first; i < form.specs.size(); ++i) {
      const ptx::OperandSpec& spec = form.specs[i];
      if (spec.purpose == Purpose::source_size && form.number % 2) out.instruction += ", %r0";
      if (spec.purpose == Purpose::ignore) out.instruction += form.number % 2 ? ", !%p0" : ", %p0";
      if (spec.purpose == Purpose::policy) out.instruction += ", %policy";
    }
    out.instruction += ";";
    out.text +=
        fmt::format("rem.u32 %r0, %thread, {};\nand.b32 %r1, %thread, 1;\nsetp.ne.u32 %p0, %r1, 0;\n", size + 1) +
        out.instruction + "\n" + wait;
  }
  out.text += keep("%cell", at.third);
  return out;
}

// cp.async.bulk and cp.reduce.async.bulk: the first thread copies for all.
Section copy_of_bulk(const SpelledForm& form, unsigned threads) {
  const Quarters at = quarters(threads);
  const unsigned most = threads * 64 - 32;
  const unsigned size = 16 * (1 + form.number * 23 % (most / 16));
  const std::string bytes = form.number % 2 ? "%r0" : std::to_string(size);
  Section out;
  out.text = fmt::format("mov.b32 %r0, {};\n", size);
  const std::string hint = form.has("L2::cache_hint") ? ", %policy" : "";
  const std::string store = fmt::format("cp.async.bulk.global.shared::cta.bulk_group [%cto+16], [%tile+16], {};", size);
  // A target in global memory is initialised with bytes of `in`.
  const std::string fill = fill_tile() + fill_aim(at) +
                           copy_64("global", fmt::format("%tfrom+{}", at.second), "global", "%tto") +
                           "fence.proxy.async;\n" + std::string(kClusterBarrier);
  const std::string end = std::string(kClusterBarrier) + keep("%aimed", at.third) + std::string(kClusterBarrier);
  if (form.has("prefetch")) {
    out.instruction = fmt::format("{} [%cfrom+16], {}{};", form.spelling, bytes, hint);
    out.text += "@%leader " + out.instruction + "\n" + fill_tile() + keep("%cell", at.third);
    return out;
  }
  if (form.has("commit_group") || form.has("wait_group")) {
    out.instruction = form.spelling + (form.has("wait_group") ? " 0;" : ";");
    const std::string commit = form.has("commit_group") ? out.instruction : "cp.async.bulk.commit_group;";
    const std::string wait = form.has("wait_group") ? out.instruction : "cp.async.bulk.wait_group 0;";
    out.text += fill + "@%leader " + store + "\n@%leader " + commit + "\n@%leader " + wait + "\n" + end;
    return out;
  }
  if (form.has("bulk_group")) {
    out.instruction = fmt::format("{} [%cto+16], [%tile+16], {}{};", form.spelling, bytes, hint);
    out.text += fill + "@%leader " + out.instruction +
                "\n@%leader cp.async.bulk.commit_group;\n@%leader cp.async.bulk.wait_group 0;\n" + end;
    return out;
  }
  // To shared memory, with a barrier at the destination that counts the bytes.
  const bool from_global = form.has("global"), multicast = form.has("multicast::cluster");
  const bool to_peer = form.has("shared::cluster") && !multicast && (!from_global || form.number % 2);
  const std::string to = to_peer ? "%paim" : "%aim", barrier = to_peer ? "%pbar" : "%bar";
  out.instruction = fmt::format("{} [{}+16], [{}+16], {}, [{}]{}{};", form.spelling, to,
                                from_global ? "%cfrom" : "%tile", bytes, barrier, multicast ? ", %mask" : "", hint);
  out.text += fill + "mov.b16 %mask, 3;\n" + init(1) +
              fmt::format("@%leader mbarrier.arrive.expect_tx.shared.b64 %made, [%bar], {};\n", size) +
              std::string(kClusterBarrier) + "setp.eq.and.u32 %p1, %rank, 0, %leader;\n" +
              (multicast ? "@%p1 " : "@%leader ") + out.instruction + "\n" + await() + keep("%aimed", at.third) +
              forget_barrier();
  return out;
}

// st.async and red.async: each thread writes to the other CTA, whose barrier counts the bytes.
Section remote(const SpelledForm& form, unsigned threads) {
  const Quarters at = quarters(threads);
  Section out;
  const bool here = !form.has("shared::cluster") && form.has_space;
  const unsigned bytes = ptx::bit_width(form.type()) / 8 * form.vector;
  const ptx::OperandSpec* value = nullptr;
  for (size_t i = form.first; i < form.specs.size(); ++i)
    if (form.specs[i].purpose == Purpose::source) value = &form.specs[i];
  if (value == nullptr) return out;
  const Registers registers = registers_of(*value, "s", "%tfrom", at.second, 0);
  const std::string target = here ? "%cell" : "%peer", barrier = here ? "%bar" : "%pbar";
  const bool generic = !form.has_space;
  out.instruction = fmt::format("{} [{}+16], {}, [{}];", form.spelling, generic ? "%at" : target, registers.operand,
                                generic ? "%made" : barrier);
  out.text = registers.declarations + registers.loads + fill_tile() + init(1) +
             fmt::format("@%leader mbarrier.arrive.expect_tx.shared.b64 %made, [%bar], {};\n", bytes * threads) +
             std::string(kClusterBarrier) + "mapa.shared::cluster.u32 %peer, %cell, %other;\n";
  if (generic)
    out.text +=
        "cvt.u64.u32 %at, %peer;\ncvta.shared::cluster.u64 %at, %at;\ncvt.u64.u32 %made, %pbar;\n"
        "cvta.shared::cluster.u64 %made, %made;\n";
  out.text += out.instruction + "\n" + await() + keep("%cell", at.third) + forget_barrier();
  return out;
}

}  // namespace

Section copy_section(const SpelledForm& form, unsigned threads) {
  if (form.form->op != Op::cp) return remote(form, threads);
  return form.has("bulk") ? copy_of_bulk(form, threads) : copy_of_threads(form, threads);
}

}  // namespace ptxkit::testing
