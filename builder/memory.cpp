// The part of Trace that accesses memory: places, loads and stores, atomics, checks, markers.
//
// Atomics, ordered accesses and fences are inline PTX, since LLVM 19's backend drops the orders and scopes of
// atomicrmw.
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

// The pointer minus its remainder, for which the backend emits one `and`. llvm.ptrmask is unusable: LLVM 19's GVN
// treats its result as the original pointer and reads the bytes at p out of the word at p & -4
// (Semantics.UnalignedBytewiseAndRoundedReads).
llvm::Value* rounded_down(Trace::State& s, Space space, llvm::Value* pointer, size_t align) {
  llvm::Value* remainder = s.b.CreateAnd(s.b.CreatePtrToInt(pointer, address_type(s, space)), align - 1);
  return byte_offset(s, pointer, s.b.CreateNeg(remainder));
}

llvm::Value* emit_load(Trace::State& s, Space space, llvm::Type* type, size_t align, llvm::Value* pointer) {
  llvm::LoadInst* load = s.b.CreateAlignedLoad(type, pointer, llvm::Align(align));
  // read_only memory does not change while the kernel runs: ld.global.nc.
  if (space == Space::read_only)
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(s.context, {}));
  return load;
}

const char* ptx_space(Space space) { return space == Space::shared ? "shared" : "global"; }
const char* ptx_scope(Scope scope) { return scope == Scope::cta ? "cta" : scope == Scope::gpu ? "gpu" : "sys"; }
const char* ptx_order(Order order) {
  constexpr const char* names[] = {"relaxed", "acquire", "release", "acq_rel"};
  return names[static_cast<unsigned>(order)];
}
char constraint(llvm::Type* type) {
  return type->isIntegerTy(1) ? 'b' : type->getPrimitiveSizeInBits() == 64 ? 'l' : 'r';
}

// The instruction's text after "atom." or "red.", up to its type.
std::string ptx_atomic(AtomicOp op, Space space, Scalar scalar, Order order, Scope scope) {
  constexpr const char* names[] = {"add", "min", "max", "exch", "and", "or", "xor"};
  const bool is_minmax = op == AtomicOp::min || op == AtomicOp::max;
  const char kind = op == AtomicOp::add ? 'u' : is_minmax ? (is_signed(scalar) ? 's' : 'u') : 'b';
  return std::string(ptx_order(order)) + "." + ptx_scope(scope) + "." + ptx_space(space) + "." +
         names[static_cast<unsigned>(op)] + "." + kind + std::to_string(bits_of(scalar));
}

// Inline PTX that accesses memory. $0 is the result, if any; the arguments follow.
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

llvm::Value* address_number(Trace::State& s, Space space, const Place& place, Where where) {
  return s.b.CreatePtrToInt(s.node(place.address, where), address_type(s, space));
}

llvm::Value* as_u64(Trace::State& s, Scalar scalar, llvm::Value* value) {
  return is_signed(scalar) ? s.b.CreateSExt(value, s.b.getInt64Ty()) : s.b.CreateZExt(value, s.b.getInt64Ty());
}

u64 bytes_of(Scalar scalar) { return bits_of(scalar) / 8; }

// Traps unless all `bytes` bytes from the place are in its object.
void require_inside(Trace::State& s, const Place& place, llvm::Value* bytes, Where where) {
  if (place.bytes.node == nullptr) return;
  s.at(where);
  // offset + bytes > size without overflow: a place before the object has a huge unsigned offset.
  llvm::Value* size = s.node(place.bytes, where);
  llvm::Value* beyond = s.b.CreateICmpUGT(s.node(place.offset, where), s.b.CreateSub(size, bytes));
  s.trap_if(s.b.CreateOr(s.b.CreateICmpULT(size, bytes), beyond), where);
}

// The address of an access of `bytes` bytes, after its bounds check.
llvm::Value* accessed(Trace::State& s, const Place& place, u64 bytes, Where where) {
  require_inside(s, place, s.b.getInt64(bytes), where);
  return s.node(place.address, where);
}

llvm::Value* accessed_number(Trace::State& s, Space space, Scalar scalar, const Place& place, Where where) {
  return s.b.CreatePtrToInt(accessed(s, place, bytes_of(scalar), where), address_type(s, space));
}

// The place with the given address, `distance` bytes from `from` in the same object. Distances have 64 bits in every
// space, so that an offset which wraps a 32-bit address is out of bounds.
Place moved(Trace::State& s, const Place& from, llvm::Value* address, llvm::Value* distance, Where where) {
  Place place{s.value(address), {}, from.bytes};
  place.offset = s.value(s.b.CreateAdd(s.node(from.offset, where), distance));
  return place;
}

// index * scale. A 64-bit index is clamped so that the product does not wrap: it stays out of bounds.
llvm::Value* distance_of(Trace::State& s, Scalar index_type, u64 scale, llvm::Value* index) {
  llvm::Value* wide = as_u64(s, index_type, index);
  if (bits_of(index_type) == 64) {
    llvm::Value* limit = s.b.getInt64(~u64{0} / 2 / scale);
    wide =
        s.b.CreateBinaryIntrinsic(is_signed(index_type) ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, wide, limit);
    if (is_signed(index_type)) wide = s.b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, wide, s.b.CreateNeg(limit));
  }
  return s.b.CreateMul(wide, s.b.getInt64(scale));
}

}  // namespace

Value Trace::parameter(size_t index) { return {state_->function->getArg(static_cast<unsigned>(index)), 0}; }

Place Trace::place_at(Space space, Value address, size_t align, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Value* number = s.node(address, where);
  if (align > 1) {
    // Inline PTX, since LLVM would remove a mask that a test before it makes redundant, and with it the proof of the
    // alignment in the PTX.
    llvm::Type* const u64_type = s.b.getInt64Ty();
    const std::string text = "and.b64 $0, $1, -" + std::to_string(align) + ";";
    llvm::CallInst* const masked = s.b.CreateCall(
        llvm::InlineAsm::get(llvm::FunctionType::get(u64_type, {u64_type}, false), text, "=l,l", false), {number});
    masked->setDoesNotAccessMemory();
    masked->setDoesNotThrow();
    masked->addFnAttr(llvm::Attribute::WillReturn);
    number = masked;
  }
  return {s.value(s.b.CreateIntToPtr(number, s.b.getPtrTy(address_space_of(space))))};
}

Place Trace::offset(Space space, const Place& place, Scalar index_type, u64 scale, Value index, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Type* type = address_type(s, space);
  llvm::Value* wide = is_signed(index_type) ? s.b.CreateSExtOrTrunc(s.node(index, where), type)
                                            : s.b.CreateZExtOrTrunc(s.node(index, where), type);
  llvm::Value* address =
      byte_offset(s, s.node(place.address, where), s.b.CreateMul(wide, llvm::ConstantInt::get(type, scale)));
  if (place.bytes.node == nullptr) return {s.value(address)};
  return moved(s, place, address, distance_of(s, index_type, scale, s.node(index, where)), where);
}

Place Trace::offset(Space space, const Place& place, i64 bytes, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Value* address =
      byte_offset(s, s.node(place.address, where), llvm::ConstantInt::getSigned(address_type(s, space), bytes));
  if (place.bytes.node == nullptr) return {s.value(address)};
  return moved(s, place, address, llvm::ConstantInt::getSigned(s.b.getInt64Ty(), bytes), where);
}

Place Trace::align_down(Space space, const Place& place, size_t align, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Value* address = rounded_down(s, space, s.node(place.address, where), align);
  if (place.bytes.node == nullptr) return {s.value(address)};
  llvm::Value* remainder = s.b.CreateAnd(address_number(s, space, place, where), align - 1);
  return moved(s, place, address, s.b.CreateNeg(as_u64(s, Scalar::uint64, remainder)), where);
}

Value Trace::address(Space space, const Place& place, Where where) {
  State& s = *state_;
  s.at(where);
  return s.value(address_number(s, space, place, where));
}

Place Trace::within(const Place& place, Scalar count_type, Value count, u64 element_bytes, u64 granule_bytes,
                    Where where) {
  State& s = *state_;
  PTXKIT_CHECK(s.checked(), "objects are known in checked builds only");
  s.at(where);
  llvm::Value* bytes = distance_of(s, count_type, element_bytes, s.node(count, where));
  if (granule_bytes > element_bytes) {
    llvm::Value* up = s.b.CreateAdd(bytes, s.b.getInt64(granule_bytes - 1));
    bytes = s.b.CreateSub(up, s.b.CreateURem(up, s.b.getInt64(granule_bytes)));
  }
  require_inside(s, place, bytes, where);
  // A constant size is valid in every region, like the array that it describes.
  return {place.address, {s.b.getInt64(0), 0}, llvm::isa<llvm::Constant>(bytes) ? Value{bytes, 0} : s.value(bytes)};
}

void Trace::assume_aligned(Space space, const Place& place, size_t align, const char* why, Where where) {
  State& s = *state_;
  s.assumptions.push_back({align, why, where});
  if (!s.checked()) return;
  s.at(where);
  llvm::Value* low = s.b.CreateAnd(address_number(s, space, place, where), align - 1);
  s.trap_if(s.b.CreateICmpNE(low, llvm::ConstantInt::get(low->getType(), 0)), where);
}

void Trace::assume_multiple(Scalar scalar, Value value, size_t of, const char* why, Where where) {
  State& s = *state_;
  s.assumptions.push_back({of, why, where});
  if (!s.checked()) return;
  s.at(where);
  llvm::Value* low = s.b.CreateAnd(s.node(value, where), static_cast<u64>(of - 1));
  s.trap_if(s.b.CreateICmpNE(low, llvm::ConstantInt::get(s.type(scalar), 0)), where);
}

Value Trace::load(Space space, Scalar scalar, size_t align, const Place& place, Where where) {
  State& s = *state_;
  s.at(where);
  return s.value(emit_load(s, space, s.type(scalar), align, accessed(s, place, bytes_of(scalar), where)));
}

void Trace::store(Scalar scalar, size_t align, const Place& place, Value value, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Value* to = accessed(s, place, bytes_of(scalar), where);
  s.b.CreateAlignedStore(s.node(value, where), to, llvm::Align(align));
}

void Trace::load_vector(Space space, Scalar scalar, size_t align, const Place& place, std::span<Value> lanes,
                        Where where) {
  State& s = *state_;
  s.at(where);
  auto* type = llvm::FixedVectorType::get(s.type(scalar), static_cast<unsigned>(lanes.size()));
  llvm::Value* from = accessed(s, place, lanes.size() * bytes_of(scalar), where);
  llvm::Value* vector = nullptr;
  if (space == Space::read_only) {
    // An intrinsic, because LLVM splits vector loads and then loses their !invariant.load.
    vector =
        s.b.CreateIntrinsic(llvm::Intrinsic::nvvm_ldg_global_i, {type, from->getType()}, {from, s.u32_constant(align)});
  } else {
    vector = emit_load(s, space, type, align, from);
  }
  for (size_t i = 0; i < lanes.size(); ++i) lanes[i] = s.value(s.b.CreateExtractElement(vector, i));
}

void Trace::store_vector(Scalar scalar, size_t align, const Place& place, std::span<const Value> lanes, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Value* to = accessed(s, place, lanes.size() * bytes_of(scalar), where);
  llvm::Value* vector =
      llvm::PoisonValue::get(llvm::FixedVectorType::get(s.type(scalar), static_cast<unsigned>(lanes.size())));
  for (size_t i = 0; i < lanes.size(); ++i) vector = s.b.CreateInsertElement(vector, s.node(lanes[i], where), i);
  s.b.CreateAlignedStore(vector, to, llvm::Align(align));
}

Value Trace::load_bytewise(Space space, Scalar scalar, const Place& place, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Value* base = accessed(s, place, bytes_of(scalar), where);
  llvm::Type* type = s.type(scalar);
  llvm::Value* result = llvm::ConstantInt::get(type, 0);
  for (unsigned i = 0; i < bytes_of(scalar); ++i) {
    llvm::Value* byte = emit_load(s, space, s.b.getInt8Ty(), 1,
                                  byte_offset(s, base, llvm::ConstantInt::get(address_type(s, space), i)));
    result = s.b.CreateOr(result, s.b.CreateShl(s.b.CreateZExt(byte, type), 8 * i));
  }
  return s.value(result);
}

Value Trace::load_unaligned_u32(Space space, const Place& place, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Type* type = address_type(s, space);
  llvm::Type* word = s.b.getInt32Ty();
  llvm::Value* base = accessed(s, place, bytes_of(Scalar::uint32), where);
  const auto word_at = [&](llvm::Value* any) { return emit_load(s, space, word, 4, rounded_down(s, space, any, 4)); };
  llvm::Value* low = word_at(base);
  // The word of the last byte. It is the same word if the address is aligned, so no word beyond the value is read.
  llvm::Value* high = word_at(byte_offset(s, base, llvm::ConstantInt::get(type, 3)));
  llvm::Value* shift = s.b.CreateShl(s.b.CreateZExtOrTrunc(s.b.CreatePtrToInt(base, type), word), 3);
  return s.value(lower(s, Intrinsic::funnel_right, word, {low, high, shift}));
}

Value Trace::load_ordered(Space space, Scalar scalar, const Place& place, Order order, Scope scope, Where where) {
  State& s = *state_;
  s.at(where);
  if (order != Order::relaxed && order != Order::acquire) {
    throw DslError("an atomic load is relaxed or acquire", where, "use Order::relaxed or Order::acquire");
  }
  llvm::Type* type = s.type(scalar);
  const std::string text = std::string("ld.") + ptx_order(order) + "." + ptx_scope(scope) + "." + ptx_space(space) +
                           ".b" + std::to_string(bits_of(scalar)) + " $0, [$1];";
  return s.value(memory_assembly(s, text, type, {accessed_number(s, space, scalar, place, where)}));
}

void Trace::store_ordered(Space space, Scalar scalar, const Place& place, Value value, Order order, Scope scope,
                          Where where) {
  State& s = *state_;
  s.at(where);
  if (order != Order::relaxed && order != Order::release) {
    throw DslError("an atomic store is relaxed or release", where, "use Order::relaxed or Order::release");
  }
  const std::string text = std::string("st.") + ptx_order(order) + "." + ptx_scope(scope) + "." + ptx_space(space) +
                           ".b" + std::to_string(bits_of(scalar)) + " [$0], $1;";
  memory_assembly(s, text, s.b.getVoidTy(), {accessed_number(s, space, scalar, place, where), s.node(value, where)});
}

Value Trace::atomic(AtomicOp op, Space space, Scalar scalar, const Place& place, Value value, Order order, Scope scope,
                    Where where) {
  State& s = *state_;
  s.at(where);
  return s.value(memory_assembly(s, "atom." + ptx_atomic(op, space, scalar, order, scope) + " $0, [$1], $2;",
                                 s.type(scalar),
                                 {accessed_number(s, space, scalar, place, where), s.node(value, where)}));
}

void Trace::atomic_if(Value condition, AtomicOp op, Space space, Scalar scalar, const Place& place, Value value,
                      Order order, Scope scope, Where where) {
  State& s = *state_;
  s.at(where);
  if (order != Order::relaxed && order != Order::release) {
    throw DslError("an atomic without a result is relaxed or release", where, "use Order::relaxed or Order::release");
  }
  memory_assembly(s, "@$0 red." + ptx_atomic(op, space, scalar, order, scope) + " [$1], $2;", s.b.getVoidTy(),
                  {s.node(condition, where), accessed_number(s, space, scalar, place, where), s.node(value, where)});
}

Value Trace::compare_exchange(Space space, Scalar scalar, const Place& place, Value expected, Value desired,
                              Order order, Scope scope, Where where) {
  State& s = *state_;
  s.at(where);
  const std::string text = std::string("atom.") + ptx_order(order) + "." + ptx_scope(scope) + "." + ptx_space(space) +
                           ".cas.b" + std::to_string(bits_of(scalar)) + " $0, [$1], $2, $3;";
  return s.value(memory_assembly(
      s, text, s.type(scalar),
      {accessed_number(s, space, scalar, place, where), s.node(expected, where), s.node(desired, where)}));
}

void Trace::fence(Order order, Scope scope, Where where) {
  State& s = *state_;
  s.at(where);
  if (order == Order::relaxed) {
    throw DslError("a relaxed fence orders nothing", where, "use Order::acq_rel");
  }
  memory_assembly(s, std::string("fence.acq_rel.") + ptx_scope(scope) + ";", s.b.getVoidTy(), {});
}

void Trace::prefetch_l2(const Place& place, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Value* address = s.b.CreatePtrToInt(accessed(s, place, 1, where), s.b.getInt64Ty());
  // A hint: it needs no order with other accesses.
  s.b.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(s.b.getVoidTy(), {address->getType()}, false),
                                      "prefetch.global.L2 [$0];", "l", true),
                 {address});
}

// Record number n has 16 bytes {id, linear thread, value} at 16 * (1 + n mod records). Word 0 of the buffer counts
// records.
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
  llvm::Value* thread = s.b.CreateAdd(s.b.CreateMul(lower(s, Intrinsic::block_x, word, {}), s.u32_constant(s.block)),
                                      lower(s, Intrinsic::thread_x, word, {}));
  llvm::Value* payload = s.node(value, where);
  const std::array<llvm::Value*, 4> words = {s.u32_constant(id), thread, s.b.CreateTrunc(payload, word),
                                             s.b.CreateTrunc(s.b.CreateLShr(payload, 32), word)};
  llvm::Value* vector = llvm::PoisonValue::get(llvm::FixedVectorType::get(word, 4));
  for (unsigned i = 0; i < 4; ++i) vector = s.b.CreateInsertElement(vector, words[i], u64{i});
  s.b.CreateAlignedStore(vector, record, llvm::Align(16));
  // In mapped host memory a record survives the kernel.
  s.b.CreateCall(
      llvm::InlineAsm::get(llvm::FunctionType::get(s.b.getVoidTy(), false), "membar.sys;", "~{memory}", true));
}

}  // namespace ptxkit::dsl
