// The memory half of Trace: addresses, loads and stores, atomics, checks, markers.
//
// Atomics, ordered accesses and fences are inline PTX: LLVM 19's backend drops orders and scopes of atomicrmw.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>

#include "builder/error.hpp"
#include "builder/trace_state.hpp"
#include "support/check.hpp"

namespace ptxkit::dsl {
namespace {

llvm::IntegerType* address_type(Trace::State& s, Space space) {
  return is_wide(space) ? s.b.getInt64Ty() : s.b.getInt32Ty();
}

llvm::Value* byte_offset(Trace::State& s, llvm::Value* pointer, llvm::Value* bytes) {
  return s.b.CreateGEP(s.b.getInt8Ty(), pointer, bytes);
}

// The pointer less its remainder, which the backend turns into one `and`. Not llvm.ptrmask: LLVM 19's GVN takes its
// result for the pointer itself, and reads bytes at p out of the word at p & -4
// (Semantics.UnalignedBytewiseAndRoundedReads).
llvm::Value* rounded_down(Trace::State& s, Space space, llvm::Value* pointer, std::size_t align) {
  llvm::Value* remainder = s.b.CreateAnd(s.b.CreatePtrToInt(pointer, address_type(s, space)), align - 1);
  return byte_offset(s, pointer, s.b.CreateNeg(remainder));
}

llvm::Value* emit_load(Trace::State& s, Space space, llvm::Type* type, std::size_t align, llvm::Value* pointer) {
  llvm::LoadInst* load = s.b.CreateAlignedLoad(type, pointer, llvm::Align(align));
  // ReadOnly memory does not change while the kernel runs: ld.global.nc.
  if (space == Space::ReadOnly)
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(s.context, {}));
  return load;
}

const char* ptx_space(Space space) { return space == Space::Shared ? "shared" : "global"; }
const char* ptx_scope(Scope scope) { return scope == Scope::Cta ? "cta" : scope == Scope::Gpu ? "gpu" : "sys"; }
const char* ptx_order(Order order) {
  constexpr const char* names[] = {"relaxed", "acquire", "release", "acq_rel"};
  return names[static_cast<unsigned>(order)];
}
char constraint(llvm::Type* type) { return type->getPrimitiveSizeInBits() == 64 ? 'l' : 'r'; }

// Inline PTX that reads or writes memory: $0 is the result (if any), then the arguments.
llvm::Value* memory_assembly(Trace::State& s, const std::string& text, llvm::Type* result,
                             const std::vector<llvm::Value*>& arguments) {
  std::string constraints;
  if (!result->isVoidTy()) constraints += std::string("=") + constraint(result) + ",";
  std::vector<llvm::Type*> types;
  for (llvm::Value* argument : arguments) {
    types.push_back(argument->getType());
    constraints += std::string(1, constraint(argument->getType())) + ",";
  }
  constraints += "~{memory}";
  return s.b.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(result, types, false), text, constraints, true),
                        arguments);
}

llvm::Value* address_number(Trace::State& s, Space space, Value pointer, Where where) {
  return s.b.CreatePtrToInt(s.node(pointer, where), address_type(s, space));
}

}  // namespace

Value Trace::parameter(std::size_t index) { return {state_->function->getArg(static_cast<unsigned>(index)), 0}; }

Value Trace::offset(Space space, Value pointer, Scalar index_type, u64 scale, Value index, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Type* type = address_type(s, space);
  llvm::Value* wide = is_signed(index_type) ? s.b.CreateSExtOrTrunc(s.node(index, where), type)
                                            : s.b.CreateZExtOrTrunc(s.node(index, where), type);
  return s.value(byte_offset(s, s.node(pointer, where), s.b.CreateMul(wide, llvm::ConstantInt::get(type, scale))));
}

Value Trace::offset(Space space, Value pointer, i64 bytes, Where where) {
  State& s = *state_;
  s.at(where);
  return s.value(byte_offset(s, s.node(pointer, where), llvm::ConstantInt::getSigned(address_type(s, space), bytes)));
}

Value Trace::address(Space space, Value pointer, Where where) {
  State& s = *state_;
  s.at(where);
  return s.value(address_number(s, space, pointer, where));
}

Value Trace::load(Space space, Scalar scalar, std::size_t align, Value pointer, Where where) {
  State& s = *state_;
  s.at(where);
  return s.value(emit_load(s, space, s.type(scalar), align, s.node(pointer, where)));
}

void Trace::store(Space, Scalar, std::size_t align, Value pointer, Value value, Where where) {
  State& s = *state_;
  s.at(where);
  s.b.CreateAlignedStore(s.node(value, where), s.node(pointer, where), llvm::Align(align));
}

void Trace::load_vector(Space space, Scalar scalar, std::size_t align, Value pointer, std::span<Value> lanes,
                        Where where) {
  State& s = *state_;
  s.at(where);
  auto* type = llvm::FixedVectorType::get(s.type(scalar), static_cast<unsigned>(lanes.size()));
  llvm::Value* vector = nullptr;
  if (space == Space::ReadOnly) {
    // An intrinsic, because LLVM takes vector loads apart and forgets that the memory does not change.
    llvm::Value* from = s.node(pointer, where);
    vector =
        s.b.CreateIntrinsic(llvm::Intrinsic::nvvm_ldg_global_i, {type, from->getType()}, {from, s.u32_constant(align)});
  } else {
    vector = emit_load(s, space, type, align, s.node(pointer, where));
  }
  for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i] = s.value(s.b.CreateExtractElement(vector, i));
}

void Trace::store_vector(Space, Scalar scalar, std::size_t align, Value pointer, std::span<const Value> lanes,
                         Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Value* vector =
      llvm::PoisonValue::get(llvm::FixedVectorType::get(s.type(scalar), static_cast<unsigned>(lanes.size())));
  for (std::size_t i = 0; i < lanes.size(); ++i) vector = s.b.CreateInsertElement(vector, s.node(lanes[i], where), i);
  s.b.CreateAlignedStore(vector, s.node(pointer, where), llvm::Align(align));
}

Value Trace::load_bytewise(Space space, Scalar scalar, Value pointer, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Value* base = s.node(pointer, where);
  llvm::Type* type = s.type(scalar);
  llvm::Value* result = llvm::ConstantInt::get(type, 0);
  for (unsigned i = 0; i < bits_of(scalar) / 8; ++i) {
    llvm::Value* byte = emit_load(s, space, s.b.getInt8Ty(), 1,
                                  byte_offset(s, base, llvm::ConstantInt::get(address_type(s, space), i)));
    result = s.b.CreateOr(result, s.b.CreateShl(s.b.CreateZExt(byte, type), 8 * i));
  }
  return s.value(result);
}

Value Trace::load_unaligned_u32(Space space, Value pointer, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Value* base = s.node(pointer, where);
  llvm::Type* type = address_type(s, space);
  llvm::Type* word = s.b.getInt32Ty();
  const auto word_at = [&](llvm::Value* any) { return emit_load(s, space, word, 4, rounded_down(s, space, any, 4)); };
  llvm::Value* low = word_at(base);
  // The word of the last byte: the same word again if the address is aligned, so nothing beyond the value is touched.
  llvm::Value* high = word_at(byte_offset(s, base, llvm::ConstantInt::get(type, 3)));
  llvm::Value* shift = s.b.CreateShl(s.b.CreateZExtOrTrunc(s.b.CreatePtrToInt(base, type), word), 3);
  return s.value(lower(s, Intrinsic::FunnelRight, word, {low, high, shift}));
}

void Trace::assume_aligned(Space space, Value pointer, std::size_t align, const char* why, Where where) {
  State& s = *state_;
  s.assumptions.push_back({align, why, where});
  if (!s.checked()) return;
  s.at(where);
  llvm::Value* low = s.b.CreateAnd(address_number(s, space, pointer, where), align - 1);
  s.trap_if(s.b.CreateICmpNE(low, llvm::ConstantInt::get(low->getType(), 0)), where);
}

void Trace::assume_multiple(Scalar scalar, Value value, std::size_t of, const char* why, Where where) {
  State& s = *state_;
  s.assumptions.push_back({of, why, where});
  if (!s.checked()) return;
  s.at(where);
  llvm::Value* low = s.b.CreateAnd(s.node(value, where), static_cast<u64>(of - 1));
  s.trap_if(s.b.CreateICmpNE(low, llvm::ConstantInt::get(s.type(scalar), 0)), where);
}

Value Trace::align_down(Space space, Value pointer, std::size_t align, Where where) {
  State& s = *state_;
  s.at(where);
  return s.value(rounded_down(s, space, s.node(pointer, where), align));
}

void Trace::check_index(Value size, Scalar index_type, Value index, u64 elements, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Type* wide = s.b.getInt64Ty();
  llvm::Value* first =
      is_signed(index_type) ? s.b.CreateSExt(s.node(index, where), wide) : s.b.CreateZExt(s.node(index, where), wide);
  // first + elements > size, without wrapping: a negative index is a huge one.
  llvm::Value* count = s.b.CreateZExt(s.node(size, where), wide);
  llvm::Value* short_of = s.b.CreateICmpULT(count, llvm::ConstantInt::get(wide, elements));
  llvm::Value* beyond = s.b.CreateICmpUGT(first, s.b.CreateSub(count, llvm::ConstantInt::get(wide, elements)));
  s.trap_if(s.b.CreateOr(short_of, beyond), where);
}

void Trace::check_slice(Value size, Value begin, Value count, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Type* wide = s.b.getInt64Ty();
  llvm::Value* end =
      s.b.CreateAdd(s.b.CreateZExt(s.node(begin, where), wide), s.b.CreateZExt(s.node(count, where), wide));
  s.trap_if(s.b.CreateICmpUGT(end, s.b.CreateZExt(s.node(size, where), wide)), where);
}

Value Trace::load_ordered(Space space, Scalar scalar, Value pointer, Order order, Scope scope, Where where) {
  State& s = *state_;
  s.at(where);
  if (order != Order::Relaxed && order != Order::Acquire) {
    throw DslError("an atomic load is relaxed or acquire", where, "use Order::Relaxed or Order::Acquire");
  }
  llvm::Type* type = s.type(scalar);
  const std::string text = std::string("ld.") + ptx_order(order) + "." + ptx_scope(scope) + "." + ptx_space(space) +
                           ".b" + std::to_string(bits_of(scalar)) + " $0, [$1];";
  return s.value(memory_assembly(s, text, type, {address_number(s, space, pointer, where)}));
}

void Trace::store_ordered(Space space, Scalar scalar, Value pointer, Value value, Order order, Scope scope,
                          Where where) {
  State& s = *state_;
  s.at(where);
  if (order != Order::Relaxed && order != Order::Release) {
    throw DslError("an atomic store is relaxed or release", where, "use Order::Relaxed or Order::Release");
  }
  const std::string text = std::string("st.") + ptx_order(order) + "." + ptx_scope(scope) + "." + ptx_space(space) +
                           ".b" + std::to_string(bits_of(scalar)) + " [$0], $1;";
  memory_assembly(s, text, s.b.getVoidTy(), {address_number(s, space, pointer, where), s.node(value, where)});
}

Value Trace::atomic(AtomicOp op, Space space, Scalar scalar, Value pointer, Value value, Order order, Scope scope,
                    Where where) {
  State& s = *state_;
  s.at(where);
  constexpr const char* names[] = {"add", "min", "max", "exch", "and", "or", "xor"};
  const bool is_minmax = op == AtomicOp::Min || op == AtomicOp::Max;
  const char kind = op == AtomicOp::Add ? 'u' : is_minmax ? (is_signed(scalar) ? 's' : 'u') : 'b';
  const std::string text = std::string("atom.") + ptx_order(order) + "." + ptx_scope(scope) + "." + ptx_space(space) +
                           "." + names[static_cast<unsigned>(op)] + "." + kind + std::to_string(bits_of(scalar)) +
                           " $0, [$1], $2;";
  return s.value(
      memory_assembly(s, text, s.type(scalar), {address_number(s, space, pointer, where), s.node(value, where)}));
}

Value Trace::compare_exchange(Space space, Scalar scalar, Value pointer, Value expected, Value desired, Order order,
                              Scope scope, Where where) {
  State& s = *state_;
  s.at(where);
  const std::string text = std::string("atom.") + ptx_order(order) + "." + ptx_scope(scope) + "." + ptx_space(space) +
                           ".cas.b" + std::to_string(bits_of(scalar)) + " $0, [$1], $2, $3;";
  return s.value(
      memory_assembly(s, text, s.type(scalar),
                      {address_number(s, space, pointer, where), s.node(expected, where), s.node(desired, where)}));
}

void Trace::fence(Order order, Scope scope, Where where) {
  State& s = *state_;
  s.at(where);
  if (order == Order::Relaxed) {
    throw DslError("a relaxed fence orders nothing", where, "use Order::AcqRel");
  }
  memory_assembly(s, std::string("fence.acq_rel.") + ptx_scope(scope) + ";", s.b.getVoidTy(), {});
}

// A record is {id, linear thread, value}: 16 bytes at 16 * (1 + n mod records); word 0 of the buffer counts n.
void Trace::mark(u32 id, Value value, Where where) {
  State& s = *state_;
  s.at(where);
  PTXKIT_CHECK(is_debug(), "markers exist in debug builds only");
  s.markers.push_back({id, where});
  llvm::Value* buffer = s.function->getArg(static_cast<unsigned>(s.parameters.size() - 1));
  llvm::Type* word = s.b.getInt32Ty();
  llvm::Value* ticket = memory_assembly(s, "atom.relaxed.gpu.global.add.u32 $0, [$1], $2;", word,
                                        {s.b.CreatePtrToInt(buffer, s.b.getInt64Ty()), s.u32_constant(1)});
  llvm::Value* slot = s.b.CreateAdd(s.b.CreateAnd(ticket, s.options.debug_records - 1), s.u32_constant(1));
  llvm::Value* record = byte_offset(s, buffer, s.b.CreateShl(s.b.CreateZExt(slot, s.b.getInt64Ty()), 4));
  llvm::Value* thread = s.b.CreateAdd(s.b.CreateMul(lower(s, Intrinsic::BlockX, word, {}), s.u32_constant(s.block)),
                                      lower(s, Intrinsic::ThreadX, word, {}));
  llvm::Value* payload = s.node(value, where);
  const std::array<llvm::Value*, 4> words = {s.u32_constant(id), thread, s.b.CreateTrunc(payload, word),
                                             s.b.CreateTrunc(s.b.CreateLShr(payload, 32), word)};
  llvm::Value* vector = llvm::PoisonValue::get(llvm::FixedVectorType::get(word, 4));
  for (unsigned i = 0; i < 4; ++i) vector = s.b.CreateInsertElement(vector, words[i], u64{i});
  s.b.CreateAlignedStore(vector, record, llvm::Align(16));
}

}  // namespace ptxkit::dsl
