#include "runtime/emulator/sanitizer/counting.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "analyzer/ptx/facts.hpp"
#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::OperandKind;
using ptx::RegId;
using Wide = unsigned __int128;
using LaneValues = std::array<uint64_t, kLanes>;

constexpr size_t kMaxSteps = 256, kMaxDependences = 16;

// The least n with low <= a * n mod m <= high.
std::optional<Wide> first_between(Wide a, Wide m, Wide low, Wide high) {
  if (low == 0) return Wide{0};
  a %= m;
  if (a == 0) return std::nullopt;
  if (2 * a > m) return first_between(m - a, m, m - high, m - low);
  const Wide first = (low + a - 1) / a;
  if (first * a <= high) return first;
  const auto times = first_between(m % a, a, (a - high % a) % a, (a - low % a) % a);
  if (!times) return std::nullopt;
  return (low + m * *times + a - 1) / a;
}

// How a register's value at some place of a round is made of those at its begin.
struct Dependence {
  RegId base = ptx::kNone;  // this one's value and a number that depends on the others; kNone: of the others alone
  std::vector<RegId> depends_on;    // ascending
  std::vector<size_t> comparisons;  // of a predicate
  bool is_unknown = false;

  void join(const Dependence& other) {
    is_unknown |= other.is_unknown;
    for (const RegId each : other.depends_on) add(each);
    if (other.base != ptx::kNone) add(other.base);
    comparisons.insert(comparisons.end(), other.comparisons.begin(), other.comparisons.end());
    is_unknown |= comparisons.size() > kMaxDependences;
  }
  void add(RegId reg) {
    const auto place = std::ranges::lower_bound(depends_on, reg);
    if (place == depends_on.end() || *place != reg) depends_on.insert(place, reg);
    is_unknown |= depends_on.size() > kMaxDependences;
  }
};

// `x` comes back as the base's value and a constant; `y` as it is.
struct Comparison {
  RegId base = ptx::kNone;
  ptx::Comparison relation = ptx::Comparison::none;  // of x to y
  bool is_signed = false;
  unsigned bits = 0;
  LaneValues x{}, y{};
};

// The values x with `x relation y`, as `first` and how many follow it, modulo 2^bits.
struct Range {
  uint64_t first = 0;
  Wide length = 0;
};

std::optional<Range> range_of(ptx::Comparison relation, bool is_signed, unsigned bits, uint64_t y) {
  using ptx::Comparison;
  const Wide all = Wide{1} << bits;
  const uint64_t mask = static_cast<uint64_t>(all - 1), lowest = is_signed ? uint64_t{1} << (bits - 1) : 0;
  const Wide below = (y - lowest) & mask;  // values less than y
  switch (relation) {
    case Comparison::eq:
      return Range{y, 1};
    case Comparison::ne:
      return Range{(y + 1) & mask, all - 1};
    case Comparison::lt:
    case Comparison::lo:
      return Range{lowest, below};
    case Comparison::le:
    case Comparison::ls:
      return Range{lowest, below + 1};
    case Comparison::gt:
    case Comparison::hi:
      return Range{(y + 1) & mask, all - 1 - below};
    case Comparison::ge:
    case Comparison::hs:
      return Range{y, all - below};
    default:
      return std::nullopt;
  }
}

// The relation of y to x where `relation` is that of x to y.
ptx::Comparison swapped(ptx::Comparison relation) {
  using ptx::Comparison;
  static constexpr std::pair<Comparison, Comparison> kPairs[] = {{Comparison::lt, Comparison::gt},
                                                                 {Comparison::le, Comparison::ge},
                                                                 {Comparison::lo, Comparison::hi},
                                                                 {Comparison::ls, Comparison::hs}};
  for (const auto& [one, other] : kPairs) {
    if (relation == one) return other;
    if (relation == other) return one;
  }
  return relation;
}

bool is_integer(ptx::Type type) {
  using ptx::Type;
  switch (type) {
    case Type::u16:
    case Type::u32:
    case Type::u64:
    case Type::s16:
    case Type::s32:
    case Type::s64:
    case Type::b16:
    case Type::b32:
    case Type::b64:
      return true;
    default:
      return false;
  }
}

bool is_signed_integer(ptx::Type type) {
  return type == ptx::Type::s16 || type == ptx::Type::s32 || type == ptx::Type::s64;
}

class Round {
 public:
  Round(Warp& warp, const Fragment& fragment)
      : warp_(warp),
        image_(*warp.cta->launch->image),
        effects_(warp.cta->launch->hang.effects),
        frame_(*fragment.frame),
        function_(image_.module->functions[static_cast<size_t>(frame_.function - image_.functions.data())]),
        mask_(fragment.mask),
        values_(frame_.values, frame_.values + size_t{frame_.function->frame_units} * kUnitBytes),
        saved_frame_(warp.frame),
        carry_(warp.carry),
        pc_(warp.pc),
        active_(warp.active) {
    bind(warp_, fragment.frame);
    warp_.active = mask_;
    for (const auto& [slot, id] : frame_.function->slots) slots_[id] = slot;
  }
  ~Round() {
    std::memcpy(frame_.values, values_.data(), values_.size());
    warp_.carry = carry_;
    warp_.pc = pc_;
    warp_.active = active_;
    if (saved_frame_) bind(warp_, saved_frame_);
  }
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

  // On to `pc`, whatever is on the way.
  bool run_to(uint32_t from, uint32_t pc) {
    for (size_t steps = 0; from != pc; ++steps)
      if (steps == kMaxSteps || !step(from)) return false;
    return true;
  }

  std::optional<CountedLoop> find(uint32_t pc) {
    // Once to know what a round writes, and once more from the same begin.
    const std::vector<uint8_t> begin(frame_.values, frame_.values + values_.size());
    const uint32_t carry = warp_.carry;
    const auto run_round = [&] {
      uint32_t at = pc;
      loop_ = {};
      size_t steps = 0;
      do {
        if (++steps > kMaxSteps || !step(at)) return false;
      } while (at != pc);
      return true;
    };
    if (!run_round()) return std::nullopt;
    const std::map<RegId, Dependence> written = std::move(dependences_);
    std::memcpy(frame_.values, begin.data(), begin.size());
    warp_.carry = carry;
    dependences_.clear();
    comparisons_.clear();
    decisions_ = {};
    for (const auto& [reg, unused] : written) dependences_[reg] = {.base = reg, .depends_on = {}, .comparisons = {}};
    traces_ = true;
    for (const auto& [reg, unused] : written) initial_values_[reg] = value(reg);
    if (!run_round() || loop_.steps == 0) return std::nullopt;
    return count_rounds() ? std::optional(loop_) : std::nullopt;
  }

 private:
  unsigned bits_of(RegId reg) const {
    const ptx::Type type = function_.registers[reg].type;
    return type == ptx::Type::pred ? 1 : 8 * ptx::byte_width(type);
  }

  LaneValues value(RegId reg) const {
    LaneValues all{};
    const uint8_t* const values = frame_.values + size_t{slots_.at(reg)} * kUnitBytes;
    if (bits_of(reg) == 1) {
      uint32_t lanes;
      std::memcpy(&lanes, values, sizeof lanes);
      for_lanes(mask_, [&](unsigned lane) { all[lane] = lanes >> lane & 1; });
      return all;
    }
    const size_t bytes = std::max(2u, bits_of(reg) / 8);
    for_lanes(mask_,
              [&](unsigned lane) { std::memcpy(&all[lane], values + lane * bytes, std::min<size_t>(8, bytes)); });
    return all;
  }

  bool is_same(const LaneValues& a, const LaneValues& b) const {
    bool same = true;
    for_lanes(mask_, [&](unsigned lane) { same &= a[lane] == b[lane]; });
    return same;
  }

  // What no round writes is a constant here.
  Dependence dependence_of(RegId reg) const {
    const auto found = dependences_.find(reg);
    return found == dependences_.end() ? Dependence{} : found->second;
  }

  void collect(const ptx::Operand& operand, std::vector<RegId>& regs) const {
    if (operand.kind == OperandKind::reg) regs.push_back(operand.id);
    if (operand.kind == OperandKind::address && operand.base == ptx::AddressBase::reg) regs.push_back(operand.id);
    for (const ptx::Operand& child : function_.children(operand)) collect(child, regs);
  }

  // The code at `pc`, and where the lanes go from it. False where that is not for this class.
  bool step(uint32_t& pc) {
    if (pc >= image_.codes.size()) return false;
    const Code& code = image_.codes[pc];
    const CodeSite& site = image_.sites[pc];
    const bool shares = pc + 1 < image_.sites.size() && image_.sites[pc + 1].function == site.function &&
                        image_.sites[pc + 1].instruction == site.instruction;
    if (!code.counts || shares || effects_[pc] != Effect::none || site.instruction >= function_.instructions.size())
      return false;
    const ptx::Instruction& instruction = function_.instructions[site.instruction];
    uint32_t exec = mask_;
    if (code.guard != kNoRef) {
      exec &= *at<const uint32_t>(warp_, code.guard) ^ code.guard_flip;
      if (traces_) decisions_.join(dependence_of(instruction.guard.reg));
    }
    ++loop_.steps;
    warp_.pc = pc;
    if (code.kind == Kind::branch) {
      if (exec != 0 && exec != mask_) return false;
      pc = exec == 0 ? pc + 1 : code.target;
      return true;
    }
    ++pc;
    if (code.kind == Kind::yield) return true;
    if (code.kind != Kind::simple) return false;
    if (exec != 0) return run(code, instruction, exec);
    return true;
  }

  bool run(const Code& code, const ptx::Instruction& instruction, uint32_t exec) {
    using ptx::Family;
    switch (ptx::family(instruction.op)) {
      case Family::arithmetic:
      case Family::conversion:
      case Family::comparison:
      case Family::move:
        break;
      case Family::address:
        if (instruction.op != ptx::Op::cvta) return false;
        break;
      case Family::memory:
        // The place that it reads must stay, and must have been read before: another one may be no memory of the
        // launch.
        if (instruction.op != ptx::Op::ld || !has_been_read(code)) return false;
        for (const RegId reg : sources_of(instruction)) decisions_.join(dependence_of(reg));
        break;
      default:
        return false;
    }
    LaneValues x{}, y{};
    const auto operands = function_.operands(instruction);
    const bool compares = instruction.op == ptx::Op::setp && operands.size() >= 3;
    if (traces_ && compares) {
      x = number(operands[1], instruction);
      y = number(operands[2], instruction);
    }
    Dependence result = result_of(instruction, x, y);
    result.is_unknown |= exec != mask_;
    code.run(warp_, code, exec);
    for (const RegId reg : results_of(instruction)) {
      dependences_[reg] = result;
      dependences_[reg].is_unknown |= bits_of(reg) > 64 || function_.registers[reg].vector != 1;
    }
    return !warp_.cta->stopped;
  }

  bool has_been_read(const Code& code) const {
    if (code.space == ptx::Space::param || code.space == ptx::Space::constant) return true;
    const auto has = [&](const std::vector<PolledRead>& polled_reads) {
      return std::ranges::find(polled_reads, warp_.pc, &PolledRead::pc) != polled_reads.end();
    };
    return has(warp_.search->polled_reads) || has(warp_.search->cycle_reads);
  }

  std::vector<RegId> results_of(const ptx::Instruction& instruction) const {
    std::vector<RegId> regs;
    if (instruction.operand_count != 0) collect(function_.operands(instruction)[0], regs);
    return regs;
  }
  std::vector<RegId> sources_of(const ptx::Instruction& instruction) const {
    std::vector<RegId> regs;
    for (size_t i = 1; i < instruction.operand_count; ++i) collect(function_.operands(instruction)[i], regs);
    return regs;
  }

  LaneValues number(const ptx::Operand& operand, const ptx::Instruction& instruction) const {
    if (operand.kind == OperandKind::reg) return value(operand.id);
    LaneValues all{};
    if (operand.kind != OperandKind::integer) return all;
    const unsigned bits = 8 * ptx::byte_width(instruction.type());
    all.fill(bits >= 64 ? operand.value : operand.value & ((uint64_t{1} << bits) - 1));
    return all;
  }

  Dependence result_of(const ptx::Instruction& instruction, const LaneValues& x, const LaneValues& y) {
    const auto operands = function_.operands(instruction);
    const auto of = [&](size_t i) {
      return operands[i].kind == OperandKind::reg ? dependence_of(operands[i].id) : Dependence{};
    };
    const bool is_plain = results_of(instruction).size() == 1 && operands[0].kind == OperandKind::reg;
    Dependence result;
    switch (instruction.op) {
      case ptx::Op::addc:
      case ptx::Op::subc:
      case ptx::Op::madc:
        result.is_unknown = true;
        return result;
      case ptx::Op::mov:
        if (is_plain && operands.size() == 2 && operands[1].kind == OperandKind::reg) return of(1);
        break;
      case ptx::Op::add:
      case ptx::Op::sub: {
        if (!is_plain || operands.size() != 3 || !is_integer(instruction.type()) ||
            ptx::facts_of(function_, instruction).saturates ||
            bits_of(operands[0].id) != 8 * ptx::byte_width(instruction.type()))
          break;
        Dependence one = of(1), other = of(2);
        if (instruction.op == ptx::Op::add && one.base == ptx::kNone) std::swap(one, other);
        if (one.base == ptx::kNone || other.base != ptx::kNone || bits_of(one.base) != bits_of(operands[0].id)) break;
        one.join(other);
        return one;
      }
      case ptx::Op::setp: {
        if (operands.size() < 3) break;
        const Dependence one = of(1), other = of(2);
        const auto is_number = [&](size_t i) {
          return operands[i].kind == OperandKind::reg || operands[i].kind == OperandKind::integer;
        };
        if ((one.base == ptx::kNone && other.base == ptx::kNone) || !is_number(1) || !is_number(2)) break;
        const bool turns = one.base == ptx::kNone;
        const Dependence &moves = turns ? other : one, &stays = turns ? one : other;
        const unsigned bits = 8 * ptx::byte_width(instruction.type());
        if (stays.base != ptx::kNone || !is_integer(instruction.type()) || bits_of(moves.base) != bits) break;
        const ptx::Comparison relation = ptx::comparison_of(function_, instruction);
        comparisons_.push_back({moves.base, turns ? swapped(relation) : relation, is_signed_integer(instruction.type()),
                                bits, turns ? y : x, turns ? x : y});
        for (const Dependence* each : {&moves, &stays}) {
          Dependence without_base = *each;
          without_base.base = ptx::kNone;
          result.join(without_base);
        }
        for (size_t i = 3; i < operands.size(); ++i) result.join(of(i));
        result.comparisons.push_back(comparisons_.size() - 1);
        return result;
      }
      default:
        break;
    }
    for (const RegId reg : sources_of(instruction)) result.join(dependence_of(reg));
    return result;
  }

  // Everything that the decisions depend on stays as it is, or is compared: then the rounds are counted.
  bool count_rounds() {
    loop_.rounds = CountedLoop::kEndless;
    std::vector<RegId> wanted = decisions_.depends_on, seen;
    std::vector<size_t> compared = decisions_.comparisons;
    if (decisions_.is_unknown) return false;
    std::vector<bool> done(comparisons_.size());
    for (;;) {
      if (!wanted.empty()) {
        const RegId reg = wanted.back();
        wanted.pop_back();
        if (std::ranges::find(seen, reg) != seen.end()) continue;
        seen.push_back(reg);
        const Dependence end = dependence_of(reg);
        const bool stays = is_same(value(reg), initial_values_.at(reg));
        if (end.is_unknown || !stays || (end.base != ptx::kNone && end.base != reg)) return false;
        wanted.insert(wanted.end(), end.depends_on.begin(), end.depends_on.end());
        compared.insert(compared.end(), end.comparisons.begin(), end.comparisons.end());
      } else if (!compared.empty()) {
        const size_t index = compared.back();
        compared.pop_back();
        if (done[index]) continue;
        done[index] = true;
        const Comparison& each = comparisons_[index];
        const Dependence end = dependence_of(each.base);
        if (end.is_unknown || end.base != each.base || !count_comparison(each)) return false;
        wanted.insert(wanted.end(), end.depends_on.begin(), end.depends_on.end());
        compared.insert(compared.end(), end.comparisons.begin(), end.comparisons.end());
      } else {
        return true;
      }
    }
  }

  bool count_comparison(const Comparison& each) {
    const LaneValues begin = initial_values_.at(each.base), end = value(each.base);
    const uint64_t all = each.bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << each.bits) - 1;
    bool is_known = true;
    for_lanes(mask_, [&](unsigned lane) {
      const auto range = range_of(each.relation, each.is_signed, each.bits, each.y[lane] & all);
      if (!range) {
        is_known = false;
        return;
      }
      const uint64_t step = (end[lane] - begin[lane]) & all;
      const uint64_t place = (each.x[lane] - range->first) & all;
      // From the next round on: out of the range where it was in it, or into it.
      const bool was_in = place < range->length;
      const Wide whole = Wide{1} << each.bits;
      const auto rounds = was_in ? first_below((place + step - static_cast<uint64_t>(range->length)) & all, step,
                                               each.bits, whole - range->length)
                                 : first_below((place + step) & all, step, each.bits, range->length);
      if (rounds && *rounds != CountedLoop::kEndless) loop_.rounds = std::min(loop_.rounds, *rounds + 1);
    });
    return is_known;
  }

  Warp& warp_;
  const ProgramImage& image_;
  const std::vector<Effect>& effects_;
  const Frame& frame_;
  const ptx::Function& function_;
  const uint32_t mask_;
  const std::vector<uint8_t> values_;
  Frame* const saved_frame_;
  const uint32_t carry_, pc_, active_;
  std::map<RegId, uint32_t> slots_;

  bool traces_ = false;
  CountedLoop loop_;
  std::map<RegId, Dependence> dependences_;
  std::map<RegId, LaneValues> initial_values_;
  std::vector<Comparison> comparisons_;
  Dependence decisions_;
};

}  // namespace

std::optional<uint64_t> first_below(uint64_t start, uint64_t step, unsigned bits, unsigned __int128 length) {
  if (length == 0) return std::nullopt;
  if (start < length) return 0;
  const Wide all = Wide{1} << bits;
  const auto found = first_between(step, all, all - start, all - start + length - 1);
  return found ? std::optional(static_cast<uint64_t>(*found)) : std::nullopt;
}

std::optional<CountedLoop> find_counted_loop(Warp& warp, const Fragment& fragment, uint32_t from, uint32_t pc) {
  if (fragment.wait != Wait::none) return std::nullopt;
  Round round(warp, fragment);
  return round.run_to(from, pc) ? round.find(pc) : std::nullopt;
}

}  // namespace ptxkit::emulator
