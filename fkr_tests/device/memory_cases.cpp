// See memory_cases.hpp.
#include "fkr_tests/device/memory_cases.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "analyzer/ptx/isa.hpp"
#include "fkr_tests/device/form_cases.hpp"
#include "fkr_tests/device/memory_sections.hpp"
#include "fkr_tests/device/spelled_form.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::testing {

namespace {

using ptx::Op;

constexpr Op kOps[] = {
    Op::shfl,         Op::isspacep,  Op::cvta,      Op::mapa,           Op::getctarank, Op::alloca,       Op::stacksave,
    Op::stackrestore, Op::nanosleep, Op::pmevent,   Op::ldmatrix,       Op::stmatrix,   Op::ld,           Op::ldu,
    Op::st,           Op::prefetch,  Op::prefetchu, Op::applypriority,  Op::discard,    Op::createpolicy, Op::atom,
    Op::red,          Op::cp,        Op::bar,       Op::barrier,        Op::membar,     Op::fence,        Op::vote,
    Op::match,        Op::redux,     Op::elect,     Op::griddepcontrol, Op::mbarrier};
constexpr size_t kInstructionsOfACase = 64, kBlockBytes = 1024;

enum class Family { none, access, address, copy, mbarrier, barrier, matrix };

Family family_of(Op op, const SpelledForm& form) {
  switch (op) {
    case Op::ld:
    case Op::ldu:
    case Op::atom:
      return Family::access;
    case Op::st:
    case Op::red:
      return form.has("async") ? Family::copy : Family::access;
    case Op::mapa:
    case Op::getctarank:
      if (form.has_space) return Family::address;
      [[fallthrough]];
    case Op::cvta:
    case Op::alloca:
    case Op::stacksave:
    case Op::stackrestore:
      // Those with 32 bits belong to modules with 32-bit addresses, which no driver for compute capability 9.0 accepts.
      return form.type() == ptx::Type::u32 ? Family::none : Family::address;
    case Op::isspacep:
    case Op::prefetchu:
    case Op::applypriority:
    case Op::discard:
    case Op::createpolicy:
      return Family::address;
    case Op::prefetch:
      return form.has("tensormap") ? Family::none : Family::address;
    case Op::cp:
      return form.has("tensor") ? Family::none : Family::copy;
    case Op::mbarrier:
      return Family::mbarrier;
    case Op::bar:
    case Op::barrier:
    case Op::fence:
    case Op::membar:
    case Op::match:
    case Op::redux:
    case Op::elect:
    case Op::nanosleep:
    case Op::griddepcontrol:
    case Op::pmevent:
      return Family::barrier;
    case Op::vote:
    case Op::shfl:
      return form.has("sync") ? Family::barrier : Family::none;
    case Op::ldmatrix:
    case Op::stmatrix:
      return Family::matrix;
    default:
      return Family::none;
  }
}

// No ISA has eight elements of 8 or 16 bits: ptxas 13.0 crashes with a segmentation fault on such loads, and such
// stores write wrong bytes.
bool is_compiled_wrongly(const SpelledForm& form) {
  return (form.form->op == Op::ld || form.form->op == Op::st) && form.vector == 8;
}

Section section_of(Family family, const SpelledForm& form, unsigned threads) {
  switch (family) {
    case Family::access:
      return access_section(form);
    case Family::address:
      return address_section(form);
    case Family::copy:
      return copy_section(form, threads);
    case Family::mbarrier:
      return mbarrier_section(form, threads);
    case Family::barrier:
      return barrier_section(form, threads);
    case Family::matrix:
      return matrix_section(form, threads);
    case Family::none:
      break;
  }
  return {};
}

std::string constants() {
  std::string text = ".const .align 16 .b32 constants[256] = {";
  for (uint32_t i = 0; i < 256; ++i) text += fmt::format("{}{}", i ? ", " : "", (i + 1) * 0x9e3779b1);
  return text + "};\n";
}

// Two CTAs, each with its rows of `in` and `out`. The rows of the sections follow each other.
std::string program(const std::vector<Section>& sections, unsigned threads) {
  const unsigned cta_bytes = threads * kRowBytes, section_bytes = 2 * cta_bytes;
  std::string text =
      ".version 8.6\n.target sm_90a\n.address_size 64\n" + constants() +
      ".func (.param .align 16 .b8 got[64]) pass(.param .align 16 .b8 given[64])\n{\n.reg .b32 %c<4>;\n" +
      copy_64("param", "given", "param", "got") + "ret;\n}\n" +
      fmt::format(
          ".visible .entry memory(.param .u64 in, .param .u64 out, .param .align 16 .b8 block[{2}]) .reqntid {0}\n"
          ".reqnctapercluster 2\n{{\n.reg .pred %p<4>, %leader;\n.reg .b16 %mask;\n"
          ".reg .b32 %r<8>, %c<4>, %thread, %rank, %other, %tile, %cell, %peer, %aim, %aimed, %paim, %bar, %pbar, "
          "%bytes;\n"
          ".reg .b64 %from, %to, %cfrom, %cto, %tfrom, %tto, %at, %made, %save, %wide, %policy;\n"
          ".shared .align 128 .b8 tile[{1}];\n.shared .align 128 .b8 aim[{1}];\n.shared .align 8 .b64 barrier_word;\n"
          ".local .align 16 .b8 frame[64];\n"
          "mov.u32 %thread, %tid.x;\nmov.u32 %rank, %cluster_ctarank;\nxor.b32 %other, %rank, 1;\n"
          "setp.eq.u32 %leader, %thread, 0;\nmov.u32 %tile, tile;\nmov.u32 %aim, aim;\nmov.u32 %bar, barrier_word;\n"
          "shl.b32 %r0, %thread, 6;\nadd.u32 %cell, %tile, %r0;\nadd.u32 %aimed, %aim, %r0;\n"
          "mapa.shared::cluster.u32 %paim, %aim, %other;\nmapa.shared::cluster.u32 %pbar, %bar, %other;\n"
          "createpolicy.fractional.L2::evict_last.b64 %policy, 0.5;\nmov.b32 %bytes, {3};\n"
          "ld.param.u64 %cfrom, [in];\nld.param.u64 %cto, [out];\nmul.wide.u32 %wide, %rank, {3};\n"
          "add.u64 %cfrom, %cfrom, %wide;\nadd.u64 %cto, %cto, %wide;\n"
          "mul.wide.u32 %wide, %thread, {4};\nadd.u64 %from, %cfrom, %wide;\nadd.u64 %to, %cto, %wide;\n"
          "mul.wide.u32 %wide, %thread, 64;\nadd.u64 %tfrom, %cfrom, %wide;\nadd.u64 %tto, %cto, %wide;\n",
          threads, threads * 64, kBlockBytes, cta_bytes, kRowBytes);
  for (size_t i = 0; i < sections.size(); ++i) {
    text += "{\n" + sections[i].text + "}\n";
    if (i + 1 == sections.size()) break;
    for (const char* name : {"from", "to", "cfrom", "cto", "tfrom", "tto"})
      text += fmt::format("add.u64 %{0}, %{0}, {1};\n", name, section_bytes);
  }
  return text + std::string(kClusterBarrier) + "ret;\n}\n";
}

unsigned element_bytes(const SpelledForm& form) {
  const unsigned width = ptx::bit_width(form.type());
  if (form.has("f16x2") || form.has("bf16x2")) return 2;
  return width == 64 || width == 128 ? 8 : width == 16 ? 2 : 4;
}

void append_inputs(const SpelledForm& form, const std::string& instruction, unsigned threads,
                   std::vector<uint8_t>& in) {
  uint32_t seed = 1;
  for (const char letter : instruction) seed = seed * 31 + static_cast<uint8_t>(letter);
  std::mt19937_64 random(seed);
  const size_t begin = in.size(), size = size_t{2} * threads * kRowBytes;
  in.resize(begin + size);
  const unsigned bytes = element_bytes(form);
  for (size_t at = 0; at < size; at += bytes) {
    const uint64_t value = edge_value(random, bytes);
    std::memcpy(in.data() + begin + at, &value, bytes);
  }
  // For comparisons, half the threads find the value with which they compare.
  for (size_t row = 0; form.has("cas") && row < size; row += 2 * kRowBytes)
    std::memcpy(in.data() + begin + row + 128, in.data() + begin + row + 208, 16);
}

}  // namespace

std::span<const Op> memory_ops() { return kOps; }

std::vector<MemoryCase> memory_cases(Op op) {
  std::vector<MemoryCase> cases;
  for (const ptx::Form& form : ptx::forms_of(op)) {
    // Every combination for atomics, except with cache hints and vectors.
    const bool atomic = form.op == Op::atom || form.op == Op::red;
    const bool hinted = form.modifiers.find("cache_hint") != std::string_view::npos;
    const std::vector<SpelledForm> spelled = spell_form(form, atomic && !hinted ? 640 : 64);
    std::vector<Section> sections;
    MemoryCase each;
    unsigned part = 0;
    const auto finish = [&] {
      if (sections.empty()) return;
      each.name = fmt::format("{} {} ({})", text(form.op), form.modifiers, form.operands);
      if (++part > 1) each.name += fmt::format(", part {}", part);
      each.ptx = program(sections, each.threads);
      cases.push_back(std::move(each));
      each = MemoryCase();
      sections.clear();
    };
    for (const SpelledForm& one : spelled) {
      const Family family = family_of(form.op, one);
      if (family == Family::none || is_compiled_wrongly(one)) continue;
      each.threads = family == Family::barrier ? 64 : 32;
      Section section = section_of(family, one, each.threads);
      append_inputs(one, section.instruction, each.threads, each.in);
      each.instructions.push_back(section.instruction);
      sections.push_back(std::move(section));
      if (sections.size() == kInstructionsOfACase) finish();
    }
    finish();
  }
  return cases;
}

std::vector<uint8_t> memory_parameter() {
  std::vector<uint8_t> bytes(kBlockBytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 + i / 256);
  return bytes;
}

Result<std::vector<uint8_t>> emulate_memory(const MemoryCase& each) {
  emulator::Device device({.memory_bytes = uint64_t{64} << 20});
  auto program = emulator::Program::load_text(device, each.ptx, "memory.ptx");
  if (!program) return tl::unexpected(program.error());
  auto in = device.allocate(each.in.size(), "in"), out = device.allocate(each.in.size(), "out");
  if (!in || !out) return fail("no memory for the case");
  (void)device.write(*in, std::as_bytes(std::span(each.in)));
  (void)device.fill(*out, std::byte{0}, each.in.size());
  const std::vector<uint8_t> block = memory_parameter();
  emulator::Argument parameter;
  const auto bytes = std::as_bytes(std::span(block));
  parameter.bytes.assign(bytes.begin(), bytes.end());
  const std::vector<emulator::Argument> arguments{emulator::Argument::of(*in), emulator::Argument::of(*out), parameter};
  auto outcome = emulator::launch(*program, "memory", {.grid = {2}, .block = {each.threads}}, arguments);
  if (!outcome) return tl::unexpected(outcome.error());
  if (!outcome->ok()) return fail(emulator::render(outcome->faults.front(), "memory.ptx"));
  std::vector<uint8_t> left(each.in.size());
  (void)device.read(*out, std::as_writable_bytes(std::span(left)));
  return left;
}

std::string_view memory_exception(std::string_view instruction) {
  const auto has = [&](std::string_view part) { return instruction.find(part) != std::string_view::npos; };
  const bool atomic = instruction.starts_with("atom") || instruction.starts_with("red");
  if (atomic && has(".shared::cluster.") && has("f16x2 "))
    return "ptxas 13.0 adds integers where the halves lie in another CTA's memory";
  if (has(".param::func.") && has(".b128") && instruction.starts_with("ld"))
    return "ptxas 13.0 loads the lower 8 of the 16 bytes";
  if (instruction.starts_with("alloca") || instruction.starts_with("stack"))
    return "ptxas 13.0 keeps the stack in registers beside a .local array, and what lies 16 bytes further comes back";
  return {};
}

std::string memory_hashes(const MemoryCase& each, std::span<const uint8_t> out) {
  std::string text;
  for (size_t i = 0; i < each.instructions.size(); ++i)
    text += fmt::format("{:06x}", form_hash(out.subspan(i * each.section_bytes(), each.section_bytes())) & 0xffffff);
  return text;
}

}  // namespace ptxkit::testing
