// The decoder for matrix instructions. PTX ISA 9.0, 9.7.14.
#include <algorithm>

#include "analyzer/ptx/facts.hpp"
#include "runtime/emulator/core/float_math.hpp"
#include "runtime/emulator/core/state.hpp"
#include "runtime/emulator/decode/decode.hpp"
#include "runtime/emulator/sanitizer/pending_registers.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Purpose;
using ptx::Type;

}  // namespace

// Finds the registers that products of this function use, as accumulators or for A, and those that tcgen05.ld writes.
void Decoder::find_watched() {
  watched_.clear();
  loaded_.clear();
  for (const ptx::Instruction& instruction : function_->instructions) {
    const bool product = instruction.op == Op::wgmma && function_->has(instruction, Mod::mma_async);
    const bool load = instruction.op == Op::tcgen05 && function_->has(instruction, Mod::ld);
    if (!product && !load) continue;
    instruction_ = &instruction;
    if (!read_operands()) continue;
    for (const ptx::MatchedOperand& operand : operands_) {
      const Purpose purpose = operand.spec.purpose;
      if (load && purpose == Purpose::reduction) loaded_.insert(operand.operand.id);
      if (purpose != Purpose::result && purpose != Purpose::a) continue;
      for (const Operand& each : function_->children(operand.operand))
        if (each.kind == OperandKind::reg) {
          watched_.insert(each.id);
          if (load) loaded_.insert(each.id);
        }
    }
  }
  // Adds the registers that moves make of loaded registers and, in textual order before the wait, those that other
  // instructions compute from them.
  for (size_t before = 0; before != loaded_.size();) {
    before = loaded_.size();
    bool is_open = false;
    for (const ptx::Instruction& instruction : function_->instructions) {
      if (instruction.op == Op::tcgen05)
        is_open = function_->has(instruction, Mod::ld) || (is_open && !function_->has(instruction, Mod::wait_ld));
      for (const auto& [to, from] : moves_of(instruction))
        if (loaded_.contains(from)) loaded_.insert(to);
      if (!is_open) continue;
      for (const auto& [to, from] : computed_by(instruction))
        if (loaded_.contains(from)) loaded_.insert(to);
    }
  }
  watched_.insert(loaded_.begin(), loaded_.end());
}

// The same for an instruction that only computes on registers: each result with each source.
Decoder::Moves Decoder::computed_by(const ptx::Instruction& instruction) const {
  const ptx::Family family = ptx::family(instruction.op);
  if (family != ptx::Family::arithmetic && family != ptx::Family::conversion && family != ptx::Family::comparison &&
      family != ptx::Family::video)
    return {};
  std::vector<ptx::RegId> results, sources;
  ptx::for_each_register(*function_, instruction, [&](uint32_t, const Operand& operand, bool written) {
    (written ? results : sources).push_back(operand.id);
  });
  Moves made;
  for (const ptx::RegId to : results)
    for (const ptx::RegId from : sources) made.emplace_back(to, from);
  return made;
}

// The registers that a `mov` writes, each with the register whose bits it gets. A list of registers packs or unpacks
// them.
Decoder::Moves Decoder::moves_of(const ptx::Instruction& instruction) const {
  Moves moves;
  if (instruction.op != Op::mov || instruction.operand_count != 2) return moves;
  const Operand& to = function_->operand_pool[instruction.first_operand];
  const Operand& from = function_->operand_pool[instruction.first_operand + 1];
  const unsigned targets = element_count(to), sources = element_count(from);
  for (unsigned t = 0; t < targets; ++t)
    for (unsigned s = 0; s < sources; ++s) {
      const Operand target = element(to, t), source = element(from, s);
      if (targets == sources && t != s) continue;
      if (target.kind == OperandKind::reg)
        moves.emplace_back(target.id, source.kind == OperandKind::reg ? source.id : ptx::kNone);
    }
  return moves;
}

// Puts a test before an instruction that names such a register: whether a product still uses it. A move needs no fence:
// compilers put the initial values of the accumulators after it (nvcc 13, CuTe DSL), and ptxas handles that.
void Decoder::watch() {
  if (watched_.empty() || instruction_->op == Op::wgmma) return;
  Code code;
  const Moves computed = computed_by(*instruction_);
  const bool computes = std::ranges::any_of(computed, [&](const auto& each) { return loaded_.contains(each.second); });
  if (instruction_->op == Op::mov || computes) {
    code.list = static_cast<uint32_t>(image_.moved.size());
    const auto ref = [&](ptx::RegId id) {
      return id != ptx::kNone && watched_.contains(id) ? slot(id, 0) : MovedRegister::kUnwatched;
    };
    for (const auto& [to, from] : computes ? computed : moves_of(*instruction_))
      if (watched_.contains(to) || (from != ptx::kNone && watched_.contains(from)))
        image_.moved.push_back({ref(to), ref(from)});
    code.target = static_cast<uint32_t>(image_.moved.size()) - code.list;
    code.sub = computes;
    code.checked = [](Warp& warp, const Code& each, uint32_t) {
      if (checks(*warp.cta, kCheckRaces))
        move_registers(warp, {warp.cta->launch->image->moved.data() + each.list, each.target}, each.sub != 0);
    };
  } else {
    code.list = static_cast<uint32_t>(image_.watched.size());
    ptx::for_each_register(*function_, *instruction_, [&](uint32_t, const Operand& operand, bool written) {
      if (watched_.contains(operand.id)) image_.watched.push_back({slot(operand.id, 0), written});
    });
    if (instruction_->guard && watched_.contains(instruction_->guard.reg))
      image_.watched.push_back({slot(instruction_->guard.reg, 0), false});
    code.target = static_cast<uint32_t>(image_.watched.size()) - code.list;
    code.checked = [](Warp& warp, const Code& each, uint32_t) {
      if (checks(*warp.cta, kCheckRaces))
        watch_registers(warp, warp.cta->launch->image->watched.data() + each.list, each.target);
    };
  }
  if (code.target == 0) return;
  code.counts = false;
  code.undefined = Undefined::handler;
  code.run = [](Warp&, const Code&, uint32_t) {};
  code.guard = instruction_->guard ? slot(instruction_->guard.reg, 0) : kNoRef;
  code.guard_flip = instruction_->guard.negated ? 0xffffffff : 0;
  code.may_reconverge = next_may_reconverge_;
  next_may_reconverge_ = false;
  emit(code);
}

bool Decoder::matrix(Code& code) {
  const Words w = words();
  const Op op = instruction_->op;
  if (op == Op::tcgen05) return tensor_memory(code);
  MatrixForm form;
  form.shape = ptx::shape(*instruction_);
  form.saturates = w.has(Mod::satfinite);
  form.transposes = w.has(Mod::trans);
  form.by_and = w.has(Mod::and_);
  form.is_wmma = op == Op::wmma;
  code.kind = Kind::collective;
  code.sub = static_cast<uint8_t>(Collective::matrix);
  code.d = constant(kAllLanes, 4);  // every lane takes part
  code.undefined = Undefined::handler;
  code.target = static_cast<uint32_t>(image_.matrices.size());
  // The words .row and .col, in order.
  std::vector<bool> columns;
  for (Mod each : w.mods)
    if (each == Mod::row || each == Mod::col) columns.push_back(each == Mod::col);
  if (columns.size() > 0) form.a_columns = columns[0];
  if (columns.size() > 1) form.b_columns = columns[1];
  auto finish = [&] {
    image_.matrices.push_back(form);
    return true;
  };
  if (op == Op::ldmatrix || op == Op::stmatrix) {
    const bool store = op == Op::stmatrix;
    if (!address(code, Purpose::address)) return false;
    form.d = register_list(store ? Purpose::source : Purpose::result);
    const Type packed = instruction_->type();
    if (packed == Type::b16) {
      select_matrix_rows(code, store);
    } else {
      form.packed_bits = packed == Type::b6x16_p32 ? 6 : packed == Type::b4x16_p64 ? 4 : 8;
      select_byte_rows(code, store);
    }
    return finish();
  }
  if (op == Op::movmatrix) {
    form.d = register_list(Purpose::result);
    form.a = register_list(Purpose::source);
    select_transpose(code);
    return finish();
  }
  if (form.is_wmma && !w.has(Mod::mma)) {
    const bool store = w.has(Mod::store);
    form.d_type = instruction_->type();
    form.matrix = w.has(Mod::a) ? 'a' : w.has(Mod::b) ? 'b' : 'c';
    if (!address(code, Purpose::address)) return false;
    form.d = register_list(store ? Purpose::source : Purpose::result);
    form.has_stride = has(Purpose::stride);
    if (form.has_stride) form.stride = source(Purpose::stride);
    select_matrix_elements(code, store);
    return finish();
  }
  if (op == Op::wgmma) return warpgroup(code, form) && finish();
  form.is_sparse = w.has(Mod::sp) || w.has(Mod::sp_ordered_metadata);
  const bool scaled = w.has(Mod::block_scale);
  form.in_bytes = w.has(Mod::kind_f8f6f4) || w.has(Mod::kind_mxf8f6f4);
  // wmma of halves names the types of D and C only.
  const auto& types = instruction_->types;
  if (instruction_->type_count == (scaled ? 5 : 4)) {
    form.d_type = types[0];
    form.a_type = types[1];
    form.b_type = types[2];
    form.c_type = types[3];
  } else if (instruction_->type_count == 2 && form.is_wmma) {
    form.d_type = types[0];
    form.c_type = types[1];
    form.a_type = form.b_type = Type::f16;
  } else {
    return false;
  }
  form.rounding = static_cast<uint8_t>(rounding_of(w));
  form.d = register_list(Purpose::result);
  form.a = register_list(Purpose::a);
  form.b = register_list(Purpose::b);
  form.c = register_list(Purpose::c);
  if (form.is_sparse) sparse(form);
  if (scaled) scales(form);
  select_multiply(code);
  return finish();
}

// The factors of A and B; each is followed by the byte and the lanes that hold it.
void Decoder::scales(MatrixForm& form) {
  const Words w = words();
  form.scales_are_ue4m3 = instruction_->types[4] == Type::ue4m3;
  form.scale_count = w.has(Mod::kind_mxf8f6f4) ? 1 : w.has(Mod::scale_vec_4X) ? 4 : 2;
  form.scales = add_refs({source(Purpose::scale_a), source(Purpose::scale_b)});
  for (unsigned of_b = 0; of_b < 2; ++of_b) {
    const ptx::MatchedOperand* place = take(of_b ? Purpose::place_b : Purpose::place_a);
    if (place == nullptr) return;
    const auto byte_and_lanes = function_->children(place->operand);
    for (unsigned i = 0; i < 2; ++i) form.scale_place[of_b][i] = source(byte_and_lanes[i], place->spec.type);
  }
}

void Decoder::sparse(MatrixForm& form) {
  form.is_sparse = true;
  form.metadata = register_list(Purpose::metadata);
  form.selector = static_cast<uint8_t>(number(Purpose::selector));
}

// wgmma, with A in registers or, by a descriptor, in shared memory. Each warp of the group computes its 16 rows when it
// executes the instruction. fence, commit_group and wait_group need to order nothing, and are checked
// (warpgroup_order.hpp).
bool Decoder::warpgroup(Code& code, MatrixForm& form) {
  const Words w = words();
  if (!w.has(Mod::mma_async)) {
    code.kind = Kind::simple;
    code.run = [](Warp&, const Code&, uint32_t) {};
    if (w.has(Mod::fence)) {
      code.checked = [](Warp& warp, const Code&, uint32_t) { warp.warpgroup.fence(); };
    } else if (w.has(Mod::commit_group)) {
      code.checked = [](Warp& warp, const Code&, uint32_t) { warp.warpgroup.commit(); };
    } else {
      code.immediate = number(Purpose::immediate);
      code.checked = [](Warp& warp, const Code& each, uint32_t) { warp.warpgroup.wait(each.immediate); };
    }
    return true;
  }
  const ptx::MatchedOperand* a = take(Purpose::a);
  if (a == nullptr) return false;
  const auto& types = instruction_->types;
  form.d_type = form.c_type = types[0];
  form.a_type = types[1];
  form.b_type = types[2];
  form.by_and = true;
  form.a_in_shared = a->spec.role != ptx::Role::vector;
  form.d = form.c = register_list(Purpose::result);
  form.a = register_list(Purpose::a);
  form.b = register_list(Purpose::b);
  if (w.has(Mod::sp)) sparse(form);
  bool flipped = false;
  form.use_d = predicate(Purpose::use_d, flipped);
  form.use_d_flip = flipped ? kAllLanes : 0;
  auto flag = [&](Purpose purpose, uint64_t when) { return has(purpose) && number(purpose) == when; };
  form.a_negated = flag(Purpose::sign_a, ~uint64_t{0});
  form.b_negated = flag(Purpose::sign_b, ~uint64_t{0});
  // "Columns": the leading dimension in memory is M or N.
  form.a_columns = flag(Purpose::transpose_a, 1);
  form.b_columns = flag(Purpose::transpose_b, 1);
  select_warpgroup_multiply(code);
  return true;
}

}  // namespace ptxkit::emulator
