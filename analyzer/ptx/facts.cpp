// Source: PTX ISA 9.0, chapter 9, the syntax of each instruction.
#include "analyzer/ptx/facts.hpp"

#include <algorithm>

namespace ptxkit::ptx {

namespace {

Comparison comparison_of(Mod mod) {
  switch (mod) {
    case Mod::eq:
      return Comparison::eq;
    case Mod::ne:
      return Comparison::ne;
    case Mod::lt:
      return Comparison::lt;
    case Mod::le:
      return Comparison::le;
    case Mod::gt:
      return Comparison::gt;
    case Mod::ge:
      return Comparison::ge;
    case Mod::lo:
      return Comparison::lo;
    case Mod::ls:
      return Comparison::ls;
    case Mod::hi:
      return Comparison::hi;
    case Mod::hs:
      return Comparison::hs;
    case Mod::equ:
      return Comparison::equ;
    case Mod::neu:
      return Comparison::neu;
    case Mod::ltu:
      return Comparison::ltu;
    case Mod::leu:
      return Comparison::leu;
    case Mod::gtu:
      return Comparison::gtu;
    case Mod::geu:
      return Comparison::geu;
    case Mod::num:
      return Comparison::num;
    case Mod::nan:
      return Comparison::nan;
    default:
      return Comparison::none;
  }
}

// Words with one meaning whatever the opcode.
void read_memory_word(Mod mod, Facts& facts) {
  switch (mod) {
    case Mod::relaxed:
      facts.order = Order::relaxed;
      break;
    case Mod::acquire:
      facts.order = Order::acquire;
      break;
    case Mod::release:
      facts.order = Order::release;
      break;
    case Mod::acq_rel:
      facts.order = Order::acq_rel;
      break;
    case Mod::sc:
      facts.order = Order::sc;
      break;
    case Mod::volatile_:
      facts.is_volatile = true;
      break;
    case Mod::mmio:
      facts.is_mmio = true;
      break;
    case Mod::cta:
      facts.scope = Scope::cta;
      break;
    case Mod::cluster:
      facts.scope = Scope::cluster;
      break;
    case Mod::gpu:
    case Mod::gl:
      facts.scope = Scope::gpu;
      break;
    case Mod::sys:
      facts.scope = Scope::sys;
      break;
    case Mod::nc:
      facts.is_read_only = true;
      break;
    case Mod::lu:
    case Mod::cs:
    case Mod::L1_evict_first:
    case Mod::L1_no_allocate:
      facts.hints_last_use = true;
      break;
    case Mod::sat:
      facts.saturates = true;
      break;
    case Mod::approx:
    case Mod::full:
      facts.approximates = true;
      break;
    case Mod::sync:
      facts.is_synchronous = true;
      break;
    default:
      break;
  }
}

Barrier barrier_of(const Function& function, const Instruction& instruction) {
  if (instruction.op != Op::bar && instruction.op != Op::barrier) return {};
  Barrier barrier{Barrier::Level::cta, Barrier::Action::wait};
  for (const Mod mod : function.modifiers(instruction)) {
    if (mod == Mod::warp) barrier.level = Barrier::Level::warp;
    if (mod == Mod::cluster) barrier.level = Barrier::Level::cluster;
    if (mod == Mod::arrive) barrier.action = Barrier::Action::arrive;
    if (mod == Mod::red) barrier.action = Barrier::Action::reduce;
  }
  return barrier;
}

void read_fence(const Function& function, const Instruction& instruction, Facts& facts) {
  for (const Mod mod : function.modifiers(instruction)) {
    if (mod == Mod::proxy) facts.fence = Fence::proxy;
    if (mod == Mod::mbarrier_init) facts.fence = Fence::mbarrier_init;
    const bool is_restricted = mod == Mod::sync_restrict_shared_cta || mod == Mod::sync_restrict_shared_cluster;
    if (is_restricted && facts.fence == Fence::none) facts.fence = Fence::one_space;
  }
  if (facts.fence == Fence::none) facts.fence = Fence::memory;
}

void read_mbarrier(const Function& function, const Instruction& instruction, Facts& facts) {
  using Action = Mbarrier::Action;
  Mbarrier& mbarrier = facts.mbarrier;
  for (const Mod mod : function.modifiers(instruction)) {
    switch (mod) {
      case Mod::init:
        mbarrier.action = Action::init;
        break;
      case Mod::inval:
        mbarrier.action = Action::inval;
        break;
      case Mod::arrive:
        mbarrier.action = Action::arrive;
        break;
      case Mod::arrive_drop:
        mbarrier.action = Action::arrive_drop;
        break;
      case Mod::test_wait:
      case Mod::try_wait:
        mbarrier.action = Action::wait;
        break;
      case Mod::complete_tx:
        mbarrier.action = Action::complete;
        break;
      case Mod::pending_count:
        mbarrier.action = Action::count;
        break;
      case Mod::expect_tx:
        mbarrier.expects_bytes = true;
        break;
      case Mod::noComplete:
        mbarrier.is_partial = true;
        break;
      case Mod::parity:
        mbarrier.by_parity = true;
        break;
      default:
        break;
    }
  }
  if (mbarrier.action == Action::none && mbarrier.expects_bytes) mbarrier.action = Action::expect;
  facts.writes_shared_elsewhere = mbarrier.action != Action::wait && mbarrier.action != Action::count;
}

bool is_shared(Space space) { return space == Space::shared || space == Space::shared_cluster; }

// cp, and st and red where they are asynchronous or bulk.
void read_asynchronous(const Function& function, const Instruction& instruction, Facts& facts) {
  using Step = Asynchronous::Step;
  using Completion = Asynchronous::Completion;
  Asynchronous& copy = facts.asynchronous;
  bool is_bulk = false, is_asynchronous = false;
  Step step = instruction.op == Op::red ? Step::reduce : Step::copy;
  for (const Mod mod : function.modifiers(instruction)) {
    switch (mod) {
      case Mod::async:
        is_asynchronous = true;
        break;
      case Mod::bulk:
        is_bulk = true;
        break;
      case Mod::tensor:
        copy.is_tensor = true;
        break;
      case Mod::multicast_cluster:
        copy.is_multicast = true;
        break;
      case Mod::reduce:
        step = Step::reduce;
        break;
      case Mod::prefetch:
        step = Step::prefetch;
        break;
      case Mod::commit_group:
        step = Step::commit;
        break;
      case Mod::wait_all:
        copy.waits_for_all = true;
        [[fallthrough]];
      case Mod::wait_group:
        step = Step::wait;
        break;
      case Mod::arrive:
        step = Step::arrive;
        break;
      case Mod::mbarrier:
      case Mod::mbarrier_complete_tx_bytes:
        copy.completion = Completion::mbarrier;
        break;
      case Mod::bulk_group:
        copy.completion = Completion::bulk_group;
        break;
      default:
        break;
    }
  }
  const bool moves = step == Step::copy || step == Step::reduce;
  if (is_asynchronous) {
    copy.step = step;
    const bool is_of_thread = instruction.op == Op::cp && copy.completion == Completion::none;
    if (is_of_thread && step != Step::prefetch) copy.completion = is_bulk ? Completion::bulk_group : Completion::group;
  }
  // What cp.async writes by itself, one access says; st.async and red.async to global memory are accesses too.
  const bool is_access = instruction.op == Op::cp ? !is_bulk : instruction.space == Space::global;
  if (!moves || is_access || !(is_bulk || is_asynchronous)) return;
  facts.writes_global_elsewhere = instruction.space == Space::global;
  facts.writes_shared_elsewhere = !facts.writes_global_elsewhere;
}

AtomicOperation atomic_of(const Function& function, const Instruction& instruction) {
  for (const Mod mod : function.modifiers(instruction)) {
    if (mod == Mod::exch) return AtomicOperation::exchange;
    if (mod == Mod::cas) return AtomicOperation::compare_and_swap;
  }
  return AtomicOperation::other;
}

void read_lanes(const Function& function, const Instruction& instruction, Facts& facts) {
  for (const Mod mod : function.modifiers(instruction)) {
    switch (mod) {
      case Mod::all:
        facts.vote = Vote::all;
        break;
      case Mod::any:
        facts.vote = Vote::any;
        break;
      case Mod::uni:
        facts.vote = Vote::uniform;
        break;
      case Mod::ballot:
        facts.vote = Vote::ballot;
        break;
      case Mod::up:
        facts.shuffle = Shuffle::up;
        break;
      case Mod::down:
        facts.shuffle = Shuffle::down;
        break;
      case Mod::bfly:
        facts.shuffle = Shuffle::butterfly;
        break;
      case Mod::idx:
        facts.shuffle = Shuffle::index;
        break;
      default:
        break;
    }
  }
}

// An operand item of a row, such as "policy=a:u64@L2::cache_hint", read for one instruction.
struct RowItem {
  std::string_view name;  // "policy"
  char role = 0;
  bool is_present = true;  // false where it belongs to a modifier that the instruction lacks
  bool is_optional = false;
};

// The next item of `rest`, which loses it.
RowItem read_item(const Function& function, const Instruction& instruction, std::string_view& rest) {
  RowItem item;
  const std::string_view text = next_item(rest);
  const bool has_brackets = text.starts_with('[');
  size_t begin = has_brackets ? 1 : 0, at = begin;
  while (at < text.size() && ((text[at] >= 'a' && text[at] <= 'z') || text[at] == '_')) ++at;
  if (at < text.size() && text[at] == '=') {
    item.name = text.substr(begin, at - begin);
    begin = at + 1;
  }
  item.role = text[begin] == '{' ? text[begin + 1] : text[begin];
  if (has_brackets) return item;
  bool is_pair = false;
  for (at = begin; at < text.size(); ++at) {
    if (text[at] == '?') item.is_optional = !is_pair;  // of a pair: the second half
    if (text[at] == '|') is_pair = true;
    if (text[at] == '(') at = text.find(')', at);
    if (text[at] == '@') {
      item.is_present = function.has(instruction, static_cast<Mod>(find_word(text.substr(at + 1)).id));
      item.is_optional = false;
      break;
    }
  }
  return item;
}

// What an operand is for whose item has no name.
Purpose purpose_of(char role) {
  switch (role) {
    case 'd':
    case 'D':
    case 'w':
    case 'q':
    case 'Q':
    case '_':
      return Purpose::result;
    case 'i':
      return Purpose::immediate;
    case 'b':
    case 'B':
    case 'p':
      return Purpose::predicate;
    case 'm':
    case 'n':
    case 't':
      return Purpose::address;
    case 'o':
      return Purpose::image;
    case 'L':
    case 'T':
      return Purpose::target;
    case 'z':
      return Purpose::depth;
    default:
      return Purpose::source;
  }
}

}  // namespace

Comparison comparison_of(const Function& function, const Instruction& instruction) {
  if (instruction.op != Op::setp && instruction.op != Op::set) return Comparison::none;
  for (const Mod mod : function.modifiers(instruction))
    if (const Comparison found = comparison_of(mod); found != Comparison::none) return found;
  return Comparison::none;
}

Facts facts_of(const Function& function, const Instruction& instruction) {
  Facts facts;
  const auto has = [&](Mod mod) { return function.has(instruction, mod); };
  for (const Mod mod : function.modifiers(instruction)) read_memory_word(mod, facts);
  switch (instruction.op) {
    case Op::set:
    case Op::setp:
      facts.comparison = comparison_of(function, instruction);
      break;
    case Op::mul:
    case Op::mad:
    case Op::madc:
    case Op::mul24:
    case Op::mad24:
      if (has(Mod::hi)) facts.product = Product::high;
      if (has(Mod::wide)) facts.product = Product::wide;
      break;
    case Op::shf:
      facts.shifts_left = has(Mod::l);
      break;
    case Op::ex2:
    case Op::tanh:
      facts.approximates = true;
      break;
    case Op::bar:
    case Op::barrier:
      facts.barrier = barrier_of(function, instruction);
      break;
    case Op::fence:
    case Op::membar:
      read_fence(function, instruction, facts);
      break;
    case Op::mbarrier:
      read_mbarrier(function, instruction, facts);
      break;
    case Op::red:
      facts.atomic = AtomicOperation::other;
      [[fallthrough]];
    case Op::cp:
    case Op::st:
      read_asynchronous(function, instruction, facts);
      break;
    case Op::atom:
      facts.atomic = atomic_of(function, instruction);
      break;
    case Op::vote:
    case Op::match:
    case Op::shfl:
      read_lanes(function, instruction, facts);
      break;
    case Op::mma:
      facts.multiplies_matrices = true;
      break;
    case Op::wmma: {
      facts.multiplies_matrices = has(Mod::mma);
      const bool stores = has(Mod::store);
      facts.writes_global_elsewhere = stores && !is_shared(instruction.space);
      facts.writes_shared_elsewhere = stores && instruction.space != Space::global;
      break;
    }
    case Op::wgmma:
      facts.multiplies_matrices = has(Mod::mma_async);
      break;
    case Op::tcgen05:
      facts.multiplies_matrices = has(Mod::mma);
      facts.writes_shared_elsewhere = has(Mod::alloc) || has(Mod::commit);
      break;
    case Op::clusterlaunchcontrol:
      facts.writes_shared_elsewhere = has(Mod::try_cancel);
      break;
    case Op::multimem:
      facts.writes_global_elsewhere = !has(Mod::ld_reduce);
      break;
    case Op::call:
      facts.writes_global_elsewhere = facts.writes_shared_elsewhere = true;
      break;
    default:
      break;
  }
  return facts;
}

Facts facts_of(const Opcode& opcode) {
  Function function;
  Instruction instruction;
  instruction.op = opcode.op;
  for (const OpcodeWord& each : opcode.words)
    if (each.word.kind == Word::Kind::modifier) function.modifier_pool.push_back(static_cast<Mod>(each.word.id));
  instruction.modifier_count = static_cast<uint8_t>(std::min<size_t>(function.modifier_pool.size(), 255));
  return facts_of(function, instruction);
}

bool is_same_operation(const Function& function, const Instruction& one, const Instruction& other) {
  if (one.op != other.op || one.form != other.form || one.space != other.space ||
      one.second_space != other.second_space || one.vector != other.vector || shape(one) != shape(other) ||
      !std::equal(one.types, one.types + one.type_count, other.types, other.types + other.type_count))
    return false;
  return std::ranges::is_permutation(function.modifiers(one), function.modifiers(other));
}

std::optional<uint32_t> operand_of(const Function& function, const Instruction& instruction, Purpose purpose) {
  if (instruction.form == kNone) return std::nullopt;
  const std::string_view items = all_forms()[instruction.form].operands, wanted = text(purpose);
  const auto is_wanted = [&](const RowItem& item) {
    return item.name.empty() ? purpose_of(item.role) == purpose : item.name == wanted;
  };
  // An operand that may be left out is there where there are more operands than the row asks for.
  std::optional<uint32_t> spare_count;
  const auto count_spare = [&] {
    uint32_t required_count = 0;
    for (std::string_view rest = items; !rest.empty();) {
      const RowItem item = read_item(function, instruction, rest);
      required_count += item.is_present && !item.is_optional;
    }
    return instruction.operand_count > required_count ? instruction.operand_count - required_count : 0;
  };
  uint32_t operand = instruction.first_operand;
  for (std::string_view rest = items; !rest.empty();) {
    const RowItem item = read_item(function, instruction, rest);
    if (!item.is_present) continue;
    if (item.is_optional) {
      if (!spare_count) spare_count = count_spare();
      if (*spare_count == 0) continue;
      --*spare_count;
    }
    if (is_wanted(item)) return operand;
    ++operand;
  }
  return std::nullopt;
}

unsigned destination_count(const Function& function, const Instruction& instruction) {
  if (instruction.op == Op::call) {
    const auto operands = function.operands(instruction);
    return operands.size() > 1 && operands[0].kind == OperandKind::parameters &&
           operands[1].kind != OperandKind::prototype;
  }
  if (instruction.form == kNone) return 0;
  return std::min<unsigned>(all_forms()[instruction.form].destination_count, instruction.operand_count);
}

Accesses accesses_of(const Function& function, InstructionId id) {
  const Instruction& instruction = function.instructions[id];
  Accesses result;
  auto pool = [&](uint32_t i) { return instruction.first_operand + i; };
  auto is_address = [&](uint32_t i) {
    return i < instruction.operand_count && function.operand_pool[pool(i)].kind == OperandKind::address;
  };
  const uint32_t width = byte_width(instruction.type()) * std::max<uint32_t>(instruction.vector, 1);
  auto add = [&](Access access) {
    const Facts facts = facts_of(function, instruction);
    access.instruction = id;
    access.order = facts.order;
    access.scope = facts.scope;
    access.atomic = facts.atomic;
    access.is_plain = facts.is_weak() && access.kind != AccessKind::atomic && instruction.op != Op::cp;
    access.is_volatile = facts.is_volatile;
    access.is_read_only = facts.is_read_only;
    access.hints_last_use = facts.hints_last_use;
    result.items[result.count++] = access;
  };
  // One whose operands are the address and, if it has any, the data at these places.
  auto add_scalar = [&](AccessKind kind, uint32_t address, uint32_t data) {
    if (!is_address(address) || width == 0) return;
    add({.kind = kind,
         .space = instruction.space,
         .width_bytes = width,
         .extent_bytes = width,
         .address = pool(address),
         .data = data < instruction.operand_count ? pool(data) : kNone});
  };
  switch (instruction.op) {
    case Op::ld:
    case Op::ldu:
      if (instruction.space != Space::param) add_scalar(AccessKind::load, 1, 0);
      break;
    case Op::st:
      if (instruction.space != Space::param && instruction.operand_count >= 2) add_scalar(AccessKind::store, 0, 1);
      break;
    case Op::atom:
      add_scalar(AccessKind::atomic, 1, 2);
      break;
    case Op::red:
      add_scalar(AccessKind::atomic, 0, 1);
      break;
    case Op::ldmatrix:
      if (is_address(1))
        add({.kind = AccessKind::load,
             .space = instruction.space,
             .width_bytes = 16,
             .address = pool(1),
             .data = pool(0)});
      break;
    case Op::stmatrix:
      if (is_address(0) && instruction.operand_count > 1)
        add({.kind = AccessKind::store,
             .space = instruction.space,
             .width_bytes = 16,
             .address = pool(0),
             .data = pool(1)});
      break;
    case Op::cp: {
      // cp.async [to], [from], size: both addresses are aligned to the size.
      const Asynchronous copy = facts_of(function, instruction).asynchronous;
      if (copy.step != Asynchronous::Step::copy || copy.completion != Asynchronous::Completion::group) break;
      const auto to = operand_of(function, instruction, Purpose::to);
      const auto from = operand_of(function, instruction, Purpose::from);
      const auto size = operand_of(function, instruction, Purpose::size);
      if (!to || !from || !size) break;
      const Operand& count = function.operand_pool[*size];
      if (count.kind != OperandKind::integer || (count.value != 4 && count.value != 8 && count.value != 16)) break;
      const auto bytes = static_cast<uint32_t>(count.value);
      add({.kind = AccessKind::store,
           .space = Space::shared,
           .width_bytes = bytes,
           .extent_bytes = bytes,
           .address = *to});
      add({.kind = AccessKind::load,
           .space = Space::global,
           .width_bytes = bytes,
           .extent_bytes = bytes,
           .address = *from});
      break;
    }
    default:
      break;
  }
  return result;
}

bool only_writes_destination(const Function& function, const Instruction& instruction) {
  switch (family(instruction.op)) {
    case Family::address:
    case Family::arithmetic:
    case Family::comparison:
    case Family::conversion:
    case Family::move:
    case Family::video:
      return !function.has(instruction, Mod::cc);
    default:
      return instruction.op == Op::ld && facts_of(function, instruction).is_weak();
  }
}

bool ends_thread(const Instruction& instruction) {
  return instruction.op == Op::ret || instruction.op == Op::exit || instruction.op == Op::trap;
}

bool is_branch(const Instruction& instruction) { return instruction.op == Op::bra || instruction.op == Op::brx; }

bool is_cta_barrier(const Function& function, const Instruction& instruction) {
  return barrier_of(function, instruction).is_of_cta();
}

bool is_whole_cta_barrier(const Function& function, const Instruction& instruction) {
  const Barrier barrier = barrier_of(function, instruction);
  // The number of the barrier; of a reduction, the result and the predicate beside it.
  const unsigned least_count = barrier.action == Barrier::Action::reduce ? 3 : 1;
  return barrier.is_of_cta() && instruction.operand_count == least_count;
}

bool is_warp_barrier(const Function& function, const Instruction& instruction) {
  switch (instruction.op) {
    case Op::bar:
    case Op::barrier: {
      const Barrier barrier = barrier_of(function, instruction);
      return barrier.level == Barrier::Level::warp || barrier.is_of_cta();
    }
    case Op::shfl:
    case Op::vote:
    case Op::match:
    case Op::redux:
    case Op::mma:
    case Op::wmma:
    case Op::ldmatrix:
    case Op::stmatrix:
    case Op::movmatrix:
    case Op::elect:
      return facts_of(function, instruction).is_synchronous;
    default:
      return false;
  }
}

}  // namespace ptxkit::ptx
