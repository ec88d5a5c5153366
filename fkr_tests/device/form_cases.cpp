// See form_cases.hpp.
#include "fkr_tests/device/form_cases.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/levels.hpp"
#include "analyzer/ptx/names.hpp"
#include "fkr_tests/unit/analyzer/ptx/form_sample.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::testing {

namespace {

constexpr size_t kSlotBytes = 16;

bool computes_on_registers(ptx::Op op, const std::string& instruction) {
  using ptx::Op;
  static const std::set<Op> others = {
      Op::bar,      Op::barrier,    Op::exit,           Op::ret,          Op::trap,       Op::brkpt,
      Op::bra,      Op::brx,        Op::call,           Op::nanosleep,    Op::membar,     Op::fence,
      Op::pmevent,  Op::setmaxnreg, Op::griddepcontrol, Op::wgmma,        Op::tcgen05,    Op::createpolicy,
      Op::cp,       Op::mbarrier,   Op::wmma,           Op::istypep,      Op::getctarank, Op::mapa,
      Op::isspacep, Op::cvta,       Op::stacksave,      Op::stackrestore, Op::alloca,     Op::clusterlaunchcontrol};
  // sparse forms need valid metadata: matrix_cases
  if (others.contains(op) || instruction.starts_with("mma.sp")) return false;
  static constexpr const char* kParts[] = {"[", "TABLE", "END", "argument"};
  return std::none_of(std::begin(kParts), std::end(kParts),
                      [&](const char* part) { return instruction.find(part) != std::string::npos; });
}

bool runs_on_90(const std::string& target) {
  const ptx::TargetLevel* level = ptx::find_target(target);
  return level != nullptr && (level->sm < 90 ? level->suffix == 0 : level->sm == 90);
}

std::vector<std::string> registers_of(const std::string& instruction) {
  std::vector<std::string> names;
  for (size_t at = instruction.find('%'); at != std::string::npos; at = instruction.find('%', at + 1)) {
    const size_t end = instruction.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789", at + 1);
    std::string name = instruction.substr(at, end - at);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

bool is_approximate(ptx::Op op, const std::string& instruction) {
  using ptx::Op;
  static const std::set<Op> bounded = {Op::sin, Op::cos, Op::lg2, Op::ex2, Op::tanh, Op::rsqrt};
  if (bounded.contains(op)) return true;
  if (op == Op::mma)
    return instruction.find(".s32") == std::string::npos && instruction.find(".f64") == std::string::npos;
  return instruction.find(".approx") != std::string::npos || instruction.find(".full") != std::string::npos;
}

// The letter of a register's name determines its type, and how it is loaded and stored.
struct Width {
  const char* type;
  const char* memory;
  unsigned bytes;
};
Width width_of(const std::string& name) {
  switch (name[1]) {
    case 'b':
      return {"b8", "b8", 1};
    case 'h':
      return {"b16", "b16", 2};
    case 'w':
      return {"b32", "b32", 4};
    case 'f':
      return {"f32", "b32", 4};
    case 'd':
      return {"f64", "b64", 8};
    case 'q':
      return {"b128", "b128", 16};
    default:
      return {"b64", "b64", 8};
  }
}

std::string move_text(const std::string& name, size_t offset, bool store) {
  const Width width = width_of(name);
  if (store && name[1] == 'p')
    return fmt::format("selp.b32 %one, 1, 0, {};\nst.global.b32 [%to+{}], %one;\n", name, offset);
  if (store) return fmt::format("st.global.{} [%to+{}], {};\n", width.memory, offset, name);
  if (name[1] == 'p')
    return fmt::format("ld.global.b32 %one, [%from+{}];\nand.b32 %one, %one, 1;\nsetp.ne.u32 {}, %one, 0;\n", offset,
                       name);
  return fmt::format("ld.global.{} {}, [%from+{}];\n", width.memory, name, offset);
}

bool is_collective(const std::string& instruction) {
  static constexpr const char* kOpcodes[] = {"shfl.", "vote.", "match.", "redux.", "elect."};
  return std::any_of(std::begin(kOpcodes), std::end(kOpcodes),
                     [&](const char* opcode) { return instruction.starts_with(opcode); });
}

constexpr std::array<uint64_t, 28> kEdges64 = {0,
                                               1,
                                               ~uint64_t{0},
                                               uint64_t{1} << 63,
                                               (uint64_t{1} << 63) - 1,
                                               0x00000000ffffffff,
                                               0x3ff0000000000000,
                                               0xbff0000000000000,
                                               0x7ff0000000000000,
                                               0xfff0000000000000,
                                               0x7ff8000000000000,
                                               0x0000000000000001,
                                               0x000fffffffffffff,
                                               0x0010000000000000,
                                               0x7fefffffffffffff,
                                               0x3ff0000000000001,
                                               0x41dfffffffc00000,
                                               0x41e0000000000000,
                                               0x43e0000000000000,
                                               0x3fe0000000000000,
                                               0x4000000000000000,
                                               0x36a0000000000000,
                                               0x47efffffe0000000,
                                               0x7ff0000000000001,
                                               0xfff8000000000000,
                                               0xfff4000000000123,
                                               0x7ffc0000deadbeef,
                                               0xffffffffffffffc0};
constexpr std::array<uint32_t, 36> kEdges32 = {
    0,          1,          0xffffffff, 0x80000000, 0x7fffffff, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
    0x7fc00000, 0xffc00000, 0x7f800001, 0x00000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0x3f000000, 0x3fc00000,
    0x40200000, 0x4b000000, 0x4f000000, 0x4effffff, 0xcf000000, 0x5f000000, 0x33800000, 0x477fe000, 0x477ff000,
    0x387fc000, 0x3c003c00, 0x7c00fc00, 0x80007e00, 0x04000001, 0xffbfffff, 0x7fc12345, 0x00000100, 0x00010005};
constexpr std::array<uint16_t, 20> kEdges16 = {0,      1,      0xffff, 0x8000, 0x7fff, 0x3c00, 0xbc00,
                                               0x7c00, 0xfc00, 0x7e00, 0x03ff, 0x0400, 0x7bff, 0x3800,
                                               0x4200, 0x3f80, 0x7f80, 0x7fc0, 0x007f, 0x0080};

}  // namespace

uint64_t edge_value(std::mt19937_64& random, unsigned bytes) {
  const uint64_t bits = random();
  switch (random() % 4) {
    case 0:
      return bits;
    case 1:
      return bits & 0xff;  // small numbers, for shifts and counts
    default:
      break;
  }
  auto half = [&] { return uint64_t{kEdges16[random() % kEdges16.size()]}; };
  if (bytes == 8) return kEdges64[random() % kEdges64.size()];
  if (bytes == 4 && random() % 2) return half() << 16 | half();
  return bytes == 4 ? kEdges32[random() % kEdges32.size()] : half();
}

std::string_view form_exception(const FormCase& each) {
  if (each.approximate) return "the ISA promises an error bound, no bits";
  // Since compute capability 5.x ptxas compiles video instructions to sequences of others. For the 12 operands, types
  // and operations of each, the results contradict the ISA's pseudo-code, which the emulator follows: 0x80000000 +
  // 0x9c771765 saturates to 0x1c771765; the minimum of two words with their top bits set is always the third operand;
  // .sat of a shift by more than the width gives 0; products of mixed signs are treated as signed.
  static constexpr std::string_view kVideo = "ptxas's sequence contradicts the ISA's pseudo-code";
  static const std::map<std::string_view, std::string_view> kExceptions = {
      {"fns.b32 %w1, %w2, %w3, %w4;", "of a base above 31, which the ISA does not define"},
      {"vadd.u32.s32.u32.sat %w1, %w2, %w3;", kVideo},
      {"vadd.u32.s32.u32.sat %w1, %w2, %w3, %w4;", kVideo},
      {"vabsdiff.u32.s32.u32.sat %w1, %w2, %w3;", kVideo},
      {"vabsdiff.u32.s32.u32.sat %w1, %w2, %w3, %w4;", kVideo},
      {"vabsdiff.s32.u32.s32.min %w1, %w2, %w3, %w4;", kVideo},
      {"vmax.s32.u32.s32.min %w1, %w2, %w3, %w4;", kVideo},
      {"vshl.s32.s32.u32.sat.wrap %w1, %w2, %w3;", kVideo},
      {"vshl.s32.s32.u32.sat.wrap.min %w1, %w2, %w3, %w4;", kVideo},
      {"vshl.u32.s32.u32.sat.clamp %w1, %w2, %w3;", kVideo},
      {"vshl.u32.s32.u32.sat.clamp.add %w1, %w2, %w3, %w4;", kVideo},
      {"vmad.u32.u32.u32.sat %w1, %w2, %w3, %w4;", kVideo},
      {"vmad.s32.u32.s32.sat %w1, %w2, %w3, %w4;", kVideo},
      {"vmad.u32.s32.u32.po.shr15 %w1, %w2, %w3, %w4;", kVideo},
      {"vset.s32.s32.ne.min %w1, %w2, %w3, %w4;", kVideo},
  };
  const auto found = kExceptions.find(each.instruction);
  return found == kExceptions.end() ? std::string_view() : found->second;
}

uint64_t form_hash(std::span<const uint8_t> bytes) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

size_t form_bytes(const FormCase& each) { return each.registers.size() * kSlotBytes * kFormThreads; }

std::vector<FormCase> form_cases() {
  std::vector<FormCase> cases;
  std::set<std::string> seen;
  for (const ptx::Form& form : ptx::all_forms())
    for (unsigned variant = 0; variant < 4; ++variant) {
      const ptx::Sample sample = ptx::make_sample(form, variant);
      if (!computes_on_registers(form.op, sample.instruction) || !runs_on_90(sample.target)) continue;
      if (!seen.insert(sample.instruction).second) continue;
      FormCase each{sample.instruction, registers_of(sample.instruction), is_approximate(form.op, sample.instruction)};
      // Not forms that need an older version or target than the program's.
      if (!each.registers.empty() && ptx::parse(form_program({&each, 1}), "form.ptx").diagnostics.empty())
        cases.push_back(std::move(each));
    }
  return cases;
}

std::string form_program(std::span<const FormCase> cases) {
  std::string text =
      ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry forms(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b64 %in, %out, %from, %to, %row;\n.reg .b32 %thread, %one, %carry;\n"
      "ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nmov.u32 %thread, %tid.x;\n";
  size_t begin = 0;
  for (const FormCase& each : cases) {
    const size_t count = each.registers.size();
    text += fmt::format(
        "mul.wide.u32 %row, %thread, {};\nadd.u64 %row, %row, {};\nadd.u64 %from, %in, %row;\n"
        "add.u64 %to, %out, %row;\n{{\n",
        count * kSlotBytes, begin);
    for (const std::string& name : each.registers)
      text += fmt::format(".reg .{} {};\n", name[1] == 'p' ? "pred" : width_of(name).type, name);
    for (size_t i = 0; i < count; ++i) text += move_text(each.registers[i], i * kSlotBytes, false);
    // A collective names all lanes. An instruction that reads the carry finds one set.
    if (is_collective(each.instruction)) text += fmt::format("mov.b32 {}, -1;\n", each.registers.back());
    if (each.instruction.find("addc.") != std::string::npos || each.instruction.find("subc.") != std::string::npos ||
        each.instruction.find("madc.") != std::string::npos)
      text += "add.cc.u32 %carry, %thread, 0xffffffe0;\n";
    text += each.instruction + "\n";
    for (size_t i = 0; i < count; ++i) text += move_text(each.registers[i], i * kSlotBytes, true);
    text += "}\n";
    begin += form_bytes(each);
  }
  return text + "ret;\n}\n";
}

std::vector<uint8_t> form_inputs(std::span<const FormCase> cases) {
  std::vector<uint8_t> bytes;
  for (const FormCase& each : cases) {
    uint32_t seed = 1;
    for (const char letter : each.instruction) seed = seed * 31 + static_cast<uint8_t>(letter);
    std::mt19937_64 random(seed);
    for (size_t slot = 0; slot < each.registers.size() * kFormThreads; ++slot) {
      const unsigned width = width_of(each.registers[slot % each.registers.size()]).bytes;
      const std::array<uint64_t, 2> value{edge_value(random, width), edge_value(random, width)};
      const auto* raw = reinterpret_cast<const uint8_t*>(value.data());
      bytes.insert(bytes.end(), raw, raw + kSlotBytes);
    }
  }
  return bytes;
}

Result<std::vector<uint8_t>> emulate_forms(std::span<const FormCase> cases) {
  emulator::Device device;
  auto program = emulator::Program::load_text(device, form_program(cases), "forms.ptx");
  if (!program) return tl::unexpected(program.error());
  std::vector<uint8_t> slots = form_inputs(cases);
  auto in = device.allocate(slots.size(), "in"), out = device.allocate(slots.size(), "out");
  if (!in || !out) return fail("no memory for the forms");
  (void)device.write(*in, std::as_bytes(std::span(slots)));
  (void)device.fill(*out, std::byte{0}, slots.size());
  const std::vector<emulator::Argument> arguments{emulator::Argument::of(*in), emulator::Argument::of(*out)};
  auto outcome =
      emulator::launch(*program, "forms", {.block = {kFormThreads}}, arguments, {.checks = emulator::kCheckNone});
  if (!outcome) return tl::unexpected(outcome.error());
  if (!outcome->ok()) return fail(outcome->faults.front().message);
  (void)device.read(*out, std::as_writable_bytes(std::span(slots)));
  return slots;
}

}  // namespace ptxkit::testing
