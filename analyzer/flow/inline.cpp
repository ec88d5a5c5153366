// First finds, for each function, which bytes of which .param variables it stores and loads; this decides which calls
// can be inlined. A copy of a function then renames registers, labels and tables, and replaces its .param variables by
// one register for each (offset, width).
#include "analyzer/flow/inline.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "analyzer/ptx/isa.hpp"

namespace ptxkit::flow {

using ptx::AddressBase;
using ptx::FunctionId;
using ptx::InstructionId;
using ptx::kNone;
using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;
using ptx::RegId;
using ptx::Space;
using ptx::Type;
using ptx::TypeKind;
using ptx::VariableId;

namespace {

constexpr unsigned kMaxDepth = 16;

// A range of bytes of a .param variable.
struct Part {
  uint64_t offset = 0;
  uint32_t bytes = 0;
  auto operator<=>(const Part&) const = default;
};

// How a function uses one of its .param variables.
struct Usage {
  std::set<Part> stored, loaded;
  bool is_opaque = false;  // its address is taken, or an access does not map to a register
};

// A load or store of a .param variable by name: its parts, and the register or immediate for each.
struct ParameterAccess {
  VariableId variable = kNone;
  bool is_store = false;
  std::vector<std::pair<Part, uint32_t>> parts;  // with its index in the operand pool
};

Type bits_of(uint32_t bytes) {
  return bytes == 8 ? Type::b64 : bytes == 4 ? Type::b32 : bytes == 2 ? Type::u16 : Type::u8;
}

// Parts narrower than 32 bits are held in 32-bit registers.
Type slot_type(uint32_t bytes) { return bytes == 8 ? Type::b64 : Type::b32; }

std::optional<ParameterAccess> parameter_access(const ptx::Function& function, const ptx::Instruction& instruction) {
  const bool is_store = instruction.op == Op::st;
  if ((!is_store && instruction.op != Op::ld) || instruction.space != Space::param || instruction.operand_count != 2)
    return std::nullopt;
  const uint32_t address_index = instruction.first_operand + (is_store ? 0 : 1);
  const uint32_t data_index = instruction.first_operand + (is_store ? 1 : 0);
  const Operand& address = function.operand_pool[address_index];
  const Operand& data = function.operand_pool[data_index];
  if (address.kind != OperandKind::address || address.base != AddressBase::variable) return std::nullopt;
  const uint32_t bytes = ptx::byte_width(instruction.type());
  if (!std::has_single_bit(bytes) || bytes > 8) return std::nullopt;
  ParameterAccess access{.variable = address.id, .is_store = is_store, .parts = {}};
  const uint32_t count = data.kind == OperandKind::vector ? data.child_count : 1;
  const uint32_t first = data.kind == OperandKind::vector ? data.first_child : data_index;
  for (uint32_t i = 0; i < count; ++i) {
    const Operand& item = function.operand_pool[first + i];
    const bool is_word = item.kind == OperandKind::reg && !item.component && !item.value && !item.negated;
    const bool is_number = is_store && (item.kind == OperandKind::integer || item.kind == OperandKind::float32 ||
                                        item.kind == OperandKind::float64);
    if (!is_word && !is_number) return std::nullopt;
    if (is_word && function.registers[item.id].vector != 1) return std::nullopt;
    access.parts.push_back({{address.value + uint64_t{i} * bytes, bytes}, first + i});
  }
  return access;
}

class Inliner {
 public:
  Inliner(const ptx::Module& module, FunctionId kernel) : module_(module), kernel_(kernel) {}

  std::optional<Inlined> run() {
    const ptx::Function& kernel = module_.functions[kernel_];
    if (std::ranges::none_of(kernel.instructions, [](const auto& each) { return each.op == Op::call; }))
      return std::nullopt;
    ptx::Function& out = result_.function;
    out.name = kernel.name;
    out.is_entry = kernel.is_entry;
    out.has_body = kernel.has_body;
    out.linkage = kernel.linkage;
    out.attributes = kernel.attributes;
    out.results = kernel.results;
    out.parameters = kernel.parameters;
    out.at = kernel.at;
    out.end = kernel.end;
    copy({.function = kernel_, .call = kNone, .chain = {kernel_}});
    if (result_.calls.empty()) return std::nullopt;
    return std::move(result_);
  }

 private:
  struct Copy {
    FunctionId function = kNone;
    uint32_t call = kNone;          // index in result_.calls
    std::vector<FunctionId> chain;  // from the kernel to `function`
    std::map<std::pair<VariableId, Part>, RegId> slots = {};
    std::set<VariableId> in_registers = {};
    std::map<InstructionId, FunctionId> followed = {};
    uint32_t first_register = 0, first_label = 0, first_table = 0;
    uint32_t end_label = kNone;
  };

  const std::map<VariableId, Usage>& usages(FunctionId id) {
    const auto [place, added] = usages_.try_emplace(id);
    if (!added) return place->second;
    auto& found = place->second;
    const ptx::Function& function = module_.functions[id];
    std::vector<bool> is_plain(function.operand_pool.size(), false);  // operands that name a variable as supported
    for (const ptx::Instruction& instruction : function.instructions) {
      if (const auto access = parameter_access(function, instruction)) {
        is_plain[instruction.first_operand + (access->is_store ? 0 : 1)] = true;
        Usage& usage = found[access->variable];
        for (const auto& [part, operand] : access->parts) (access->is_store ? usage.stored : usage.loaded).insert(part);
      } else if (instruction.op == Op::call) {
        const ptx::CallParts parts = ptx::call_parts(function, instruction);
        for (const Operand* list : {parts.results, parts.arguments})
          for (uint32_t i = 0; list && i < list->child_count; ++i)
            is_plain[list->first_child + i] = !is_of_signature(id, function.operand_pool[list->first_child + i].id);
      }
    }
    for (uint32_t i = 0; i < function.operand_pool.size(); ++i) {
      const Operand& operand = function.operand_pool[i];
      const bool names = operand.kind == OperandKind::symbol ||
                         (operand.kind == OperandKind::address && operand.base == AddressBase::variable);
      if (names && !is_plain[i]) found[operand.id].is_opaque = true;
    }
    return found;
  }

  const Usage* usage_of(FunctionId function, VariableId variable) {
    const auto& all = usages(function);
    const auto found = all.find(variable);
    return found == all.end() ? nullptr : &found->second;
  }

  FunctionId callee_of(const ptx::Function& function, const ptx::Instruction& instruction) const {
    const ptx::CallParts parts = ptx::call_parts(function, instruction);
    if (!parts.target || parts.target->kind != OperandKind::function) return kNone;
    FunctionId callee = parts.target->id;
    for (const ptx::Alias& alias : module_.aliases)
      if (alias.alias == callee) callee = alias.aliasee;
    const ptx::Function& body = module_.functions[callee];
    return body.has_body && !body.is_entry && !body.instructions.empty() ? callee : kNone;
  }

  // Whether the writing side writes every part that the reading side reads.
  bool passes(FunctionId from, const Operand& actual, FunctionId reader, VariableId read, bool is_result) {
    const Usage* usage = usage_of(reader, read);
    if (usage && usage->is_opaque) return false;
    if (!usage || usage->loaded.empty()) return true;
    if (actual.kind == OperandKind::symbol) {
      const Usage* written = usage_of(from, actual.id);
      return written && !written->is_opaque && std::ranges::includes(written->stored, usage->loaded);
    }
    const bool is_whole = usage->loaded.size() == 1 && usage->loaded.begin()->offset == 0;
    return is_whole && (actual.kind == OperandKind::integer || actual.kind == OperandKind::reg) && !is_result;
  }

  bool can_follow(FunctionId caller, const ptx::Instruction& instruction, FunctionId callee) {
    const ptx::Function& function = module_.functions[caller];
    const ptx::Function& body = module_.functions[callee];
    const ptx::CallParts parts = ptx::call_parts(function, instruction);
    const uint32_t arguments = parts.arguments ? parts.arguments->child_count : 0;
    const uint32_t results = parts.results ? parts.results->child_count : 0;
    if (arguments != body.parameters.size() || results != body.results.size()) return false;
    auto is_word = [&](VariableId id) {
      return module_.variables[id].space == Space::param && !module_.variables[id].is_unsized;
    };
    for (uint32_t i = 0; i < arguments; ++i) {
      const Operand& actual = function.operand_pool[parts.arguments->first_child + i];
      if (!is_word(body.parameters[i]) || !passes(caller, actual, callee, body.parameters[i], false)) return false;
    }
    for (uint32_t i = 0; i < results; ++i) {
      const Operand& actual = function.operand_pool[parts.results->first_child + i];
      if (!is_word(body.results[i]) || actual.kind != OperandKind::symbol) return false;
      Operand written;
      written.kind = OperandKind::symbol;
      written.id = body.results[i];
      if (!passes(callee, written, caller, actual.id, true)) return false;
    }
    return true;
  }

  bool is_of_signature(FunctionId function, VariableId id) const {
    const ptx::Function& f = module_.functions[function];
    return std::ranges::find(f.parameters, id) != f.parameters.end() ||
           std::ranges::find(f.results, id) != f.results.end();
  }

  // Chooses the calls of this copy to inline. A variable that a kept call takes or returns must stay in memory, and so
  // must the other calls that use it.
  void choose_calls(Copy& copy) {
    const ptx::Function& function = module_.functions[copy.function];
    auto for_each_variable = [&](InstructionId id, auto&& visit) {
      const ptx::CallParts parts = ptx::call_parts(function, function.instructions[id]);
      for (const Operand* list : {parts.results, parts.arguments})
        for (uint32_t i = 0; list && i < list->child_count; ++i) {
          const Operand& actual = function.operand_pool[list->first_child + i];
          if (actual.kind == OperandKind::symbol) visit(actual.id);
        }
    };
    std::set<VariableId> kept;
    for (InstructionId id = 0; id < function.instructions.size(); ++id) {
      const ptx::Instruction& instruction = function.instructions[id];
      if (instruction.op != Op::call) continue;
      const FunctionId callee = callee_of(function, instruction);
      const bool recurs = std::ranges::find(copy.chain, callee) != copy.chain.end();
      const size_t size = callee == kNone ? 0 : module_.functions[callee].instructions.size();
      if (callee != kNone && !recurs && copy.chain.size() < kMaxDepth && added_ + size <= Inlined::kMaxInstructions &&
          can_follow(copy.function, instruction, callee)) {
        copy.followed.emplace(id, callee);
        added_ += size;
      } else {
        for_each_variable(id, [&](VariableId variable) { kept.insert(variable); });
      }
    }
    for (bool again = true; again;) {
      again = false;
      for (auto call = copy.followed.begin(); call != copy.followed.end();) {
        bool shares = false;
        for_each_variable(call->first, [&](VariableId variable) { shares = shares || kept.contains(variable); });
        if (!shares) {
          ++call;
          continue;
        }
        for_each_variable(call->first, [&](VariableId variable) { kept.insert(variable); });
        added_ -= module_.functions[call->second].instructions.size();
        call = copy.followed.erase(call);
        again = true;
      }
    }
    for (const auto& [id, callee] : copy.followed)
      for_each_variable(id, [&](VariableId variable) { copy.in_registers.insert(variable); });
    if (copy.call == kNone) return;
    for (const auto* list : {&function.parameters, &function.results})
      copy.in_registers.insert(list->begin(), list->end());
  }

  RegId slot(Copy& copy, VariableId variable, Part part) {
    const auto [place, added] = copy.slots.try_emplace({variable, part}, static_cast<RegId>(0));
    if (added) {
      place->second = static_cast<RegId>(result_.function.registers.size());
      ptx::Register made;
      made.base = module_.variables[variable].name;
      made.type = slot_type(part.bytes);
      result_.function.registers.push_back(made);
    }
    return place->second;
  }

  void emit(ptx::Instruction instruction, Inlined::Origin origin) {
    result_.function.instructions.push_back(instruction);
    result_.origins.push_back(origin);
  }

  uint32_t push(const Operand& operand) {
    result_.function.operand_pool.push_back(operand);
    return static_cast<uint32_t>(result_.function.operand_pool.size() - 1);
  }

  static Operand of_register(RegId id, ptx::Offset at) {
    Operand operand;
    operand.kind = OperandKind::reg;
    operand.id = id;
    operand.at = at;
    return operand;
  }

  // All rows of mov, of cvt and of bra write the same operands, so the first row stands for them.
  static uint32_t first_row(Op op) { return static_cast<uint32_t>(ptx::forms_of(op).data() - ptx::all_forms().data()); }

  // `to = from`, both at least as wide as the part's type. `like` supplies place, guard and location.
  void move(const ptx::Instruction& like, const Operand& to, const Operand& from, Type type, Inlined::Origin origin) {
    const auto& registers = result_.function.registers;
    const unsigned to_width = ptx::bit_width(registers[to.id].type), width = ptx::bit_width(type);
    const unsigned from_width = from.kind == OperandKind::reg ? ptx::bit_width(registers[from.id].type) : width;
    ptx::Instruction made;
    made.guard = like.guard;
    made.at = like.at;
    made.opcode_at = like.opcode_at;
    made.location = like.location;
    if (to_width == width && from_width == width) {
      made.op = Op::mov;
      made.spelling = "mov";
      made.types[made.type_count++] = width == 64 ? Type::b64 : width == 32 ? Type::b32 : Type::b16;
    } else {
      const bool is_signed = ptx::kind(type) == TypeKind::signed_int;
      made.op = Op::cvt;
      made.spelling = "cvt";
      made.types[made.type_count++] = to_width == 64   ? (is_signed ? Type::s64 : Type::u64)
                                      : to_width == 32 ? (is_signed ? Type::s32 : Type::u32)
                                                       : (is_signed ? Type::s16 : Type::u16);
      made.types[made.type_count++] = width == 64   ? Type::u64
                                      : width == 32 ? (is_signed ? Type::s32 : Type::u32)
                                      : width == 16 ? (is_signed ? Type::s16 : Type::u16)
                                                    : (is_signed ? Type::s8 : Type::u8);
    }
    made.form = first_row(made.op);
    made.first_operand = push(to);
    push(from);
    made.operand_count = 2;
    emit(made, origin);
  }

  void branch(const ptx::Instruction& like, uint32_t label, bool negate_guard, Inlined::Origin origin) {
    ptx::Instruction made;
    made.op = Op::bra;
    made.spelling = "bra";
    made.form = first_row(made.op);
    made.guard = like.guard;
    if (negate_guard) made.guard.negated = !made.guard.negated;
    made.at = like.at;
    made.opcode_at = like.opcode_at;
    made.location = like.location;
    Operand target;
    target.kind = OperandKind::label;
    target.id = label;
    target.at = like.at;
    made.first_operand = push(target);
    made.operand_count = 1;
    emit(made, origin);
  }

  Operand renamed(const Copy& copy, Operand operand) const {
    const bool is_register =
        operand.kind == OperandKind::reg || (operand.kind == OperandKind::address && operand.base == AddressBase::reg);
    if (is_register) operand.id += copy.first_register;
    if (operand.kind == OperandKind::label) operand.id += copy.first_label;
    if (operand.kind == OperandKind::prototype) operand.id += copy.first_table;
    return operand;
  }

  // Copies operands with their children, which follow all operands of one level.
  uint32_t copy_operands(const Copy& copy, uint32_t first, uint32_t count) {
    const ptx::Function& function = module_.functions[copy.function];
    const uint32_t begin = static_cast<uint32_t>(result_.function.operand_pool.size());
    for (uint32_t i = 0; i < count; ++i) push(renamed(copy, function.operand_pool[first + i]));
    for (uint32_t i = 0; i < count; ++i) {
      const Operand& operand = function.operand_pool[first + i];
      if (!operand.child_count) continue;
      const uint32_t children = copy_operands(copy, operand.first_child, operand.child_count);
      result_.function.operand_pool[begin + i].first_child = children;
    }
    return begin;
  }

  void copy_instruction(const Copy& copy, const ptx::Instruction& from, Inlined::Origin origin) {
    const ptx::Function& function = module_.functions[copy.function];
    ptx::Function& out = result_.function;
    ptx::Instruction made = from;
    if (made.guard) made.guard.reg += copy.first_register;
    made.first_operand = copy_operands(copy, from.first_operand, from.operand_count);
    made.first_modifier = static_cast<uint32_t>(out.modifier_pool.size());
    const auto modifiers = function.modifiers(from);
    out.modifier_pool.insert(out.modifier_pool.end(), modifiers.begin(), modifiers.end());
    emit(made, origin);
  }

  void enter(Copy& caller, InstructionId id, FunctionId callee) {
    const ptx::Function& function = module_.functions[caller.function];
    const ptx::Function& body = module_.functions[callee];
    const ptx::Instruction& call = function.instructions[id];
    const ptx::CallParts parts = ptx::call_parts(function, call);
    const Inlined::Origin made{caller.function, id, caller.call, true};
    ptx::Instruction place = call;
    place.guard = {};

    Copy inner{.function = callee, .call = static_cast<uint32_t>(result_.calls.size()), .chain = caller.chain};
    inner.chain.push_back(callee);
    result_.calls.push_back({caller.function, id, callee, caller.call});
    inner.end_label = static_cast<uint32_t>(result_.function.labels.size());
    result_.function.labels.emplace_back().at = call.at;
    if (call.guard) {
      ptx::Instruction guarded = call;
      guarded.guard.reg += caller.first_register;
      branch(guarded, inner.end_label, true, made);
    }
    for (uint32_t i = 0; i < body.parameters.size(); ++i) {
      const Usage* usage = usage_of(callee, body.parameters[i]);
      if (!usage) continue;
      const Operand actual = renamed(caller, function.operand_pool[parts.arguments->first_child + i]);
      for (const Part& part : usage->loaded) {
        const Operand to = of_register(slot(inner, body.parameters[i], part), call.at);
        const bool is_variable = actual.kind == OperandKind::symbol;
        move(place, to, is_variable ? of_register(slot(caller, actual.id, part), call.at) : actual,
             is_variable ? slot_type(part.bytes) : bits_of(part.bytes), made);
      }
    }
    copy(inner);
    result_.function.labels[inner.end_label].target = static_cast<InstructionId>(result_.function.instructions.size());
    for (uint32_t i = 0; i < body.results.size(); ++i) {
      const VariableId actual = function.operand_pool[parts.results->first_child + i].id;
      const Usage* usage = usage_of(caller.function, actual);
      if (!usage) continue;
      for (const Part& part : usage->loaded)
        move(place, of_register(slot(caller, actual, part), call.at),
             of_register(slot(inner, body.results[i], part), call.at), slot_type(part.bytes), made);
    }
  }

  void copy(Copy&& outermost) { copy(outermost); }

  void copy(Copy& copy) {
    const ptx::Function& function = module_.functions[copy.function];
    ptx::Function& out = result_.function;
    choose_calls(copy);
    copy.first_register = static_cast<uint32_t>(out.registers.size());
    copy.first_label = static_cast<uint32_t>(out.labels.size());
    copy.first_table = static_cast<uint32_t>(out.tables.size());
    const uint32_t first_declaration = static_cast<uint32_t>(out.register_declarations.size());
    out.register_declarations.insert(out.register_declarations.end(), function.register_declarations.begin(),
                                     function.register_declarations.end());
    for (ptx::Register each : function.registers) {
      if (each.declaration != kNone) each.declaration += first_declaration;
      out.registers.push_back(each);
    }
    out.variables.insert(out.variables.end(), function.variables.begin(), function.variables.end());
    out.labels.insert(out.labels.end(), function.labels.begin(), function.labels.end());
    for (ptx::Table table : function.tables) {
      if (table.kind == ptx::Table::Kind::branch_targets)
        for (uint32_t& target : table.targets) target += copy.first_label;
      out.tables.push_back(std::move(table));
    }
    std::vector<InstructionId> now_at(function.instructions.size() + 1);
    for (InstructionId id = 0; id < function.instructions.size(); ++id) {
      now_at[id] = static_cast<InstructionId>(out.instructions.size());
      const ptx::Instruction& instruction = function.instructions[id];
      const Inlined::Origin origin{copy.function, id, copy.call, false};
      ptx::Instruction place = instruction;
      if (place.guard) place.guard.reg += copy.first_register;
      if (const auto callee = copy.followed.find(id); callee != copy.followed.end()) {
        enter(copy, id, callee->second);
      } else if (instruction.op == Op::ret && copy.call != kNone) {
        // The last `ret` falls through to the code after the call.
        if (instruction.guard || id + 1 < function.instructions.size()) branch(place, copy.end_label, false, origin);
      } else if (const auto access = parameter_access(function, instruction);
                 access && copy.in_registers.contains(access->variable)) {
        for (const auto& [part, operand] : access->parts) {
          const Operand word = of_register(slot(copy, access->variable, part), instruction.at);
          const Operand data = renamed(copy, function.operand_pool[operand]);
          if (access->is_store)
            move(place, word, data, bits_of(part.bytes), origin);
          else
            move(place, data, word,
                 ptx::kind(instruction.type()) == TypeKind::signed_int ? instruction.type() : bits_of(part.bytes),
                 origin);
        }
      } else {
        copy_instruction(copy, instruction, origin);
      }
    }
    now_at.back() = static_cast<InstructionId>(out.instructions.size());
    for (uint32_t i = 0; i < function.labels.size(); ++i)
      out.labels[copy.first_label + i].target = now_at[std::min<size_t>(function.labels[i].target, now_at.size() - 1)];
  }

  const ptx::Module& module_;
  FunctionId kernel_;
  Inlined result_;
  size_t added_ = 0;
  std::map<FunctionId, std::map<VariableId, Usage>> usages_;
};

}  // namespace

std::optional<Inlined> inline_calls(const ptx::Module& module, FunctionId kernel) {
  return Inliner(module, kernel).run();
}

}  // namespace ptxkit::flow
