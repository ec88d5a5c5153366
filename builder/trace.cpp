// Trace builds LLVM IR while the kernel's body runs. Variables are allocas, which SROA turns into registers. Each
// lambda becomes basic blocks of the same structure. Pointers carry their address space (1 for global, 3 for shared, 0
// for local arrays, whose space the backend infers). Offsets are extended explicitly, because LLVM sign-extends a
// 32-bit index.
#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "builder/error.hpp"
#include "builder/trace_state.hpp"
#include "support/check.hpp"

namespace ptxkit::dsl {

const char* name_of(Variant variant) {
  return variant == Variant::release ? "release" : variant == Variant::checked ? "checked" : "debug";
}

unsigned address_space_of(Space space) {
  switch (space) {
    case Space::global:
    case Space::read_only:
      return 1;
    case Space::shared:
      return 3;
    case Space::local:
      return 0;
  }
  return 0;
}

// --- state ---

struct Trace::State::Ir {
  llvm::LLVMContext context;
  llvm::Module module{"ptxkit", context};
  llvm::IRBuilder<> builder{context};
  llvm::DIBuilder debug_info{module};
};

Trace::State::State(const KernelDefinition& definition, const EmitOptions& emit_options)
    : ir(std::make_unique<Ir>()),
      context(ir->context),
      module(ir->module),
      b(ir->builder),
      debug_info(ir->debug_info),
      name(definition.spec.name),
      defined(definition.where),
      options(emit_options),
      block(definition.spec.block),
      parameters(parameters_of(definition, emit_options.variant)) {
  module.setTargetTriple("nvptx64-nvidia-cuda");
  module.setDataLayout("e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64");

  std::vector<llvm::Type*> types;
  types.reserve(parameters.size());
  for (const Parameter& parameter : parameters) {
    types.push_back(parameter.kind == ParameterKind::pointer
                        ? llvm::PointerType::get(context, address_space_of(parameter.space))
                        : type(parameter.scalar));
  }
  function = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), types, false),
                                    llvm::GlobalValue::ExternalLinkage, name, module);
  function->addFnAttr(llvm::Attribute::Convergent);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  for (size_t i = 0; i < parameters.size(); ++i) {
    llvm::Argument* argument = function->getArg(static_cast<unsigned>(i));
    argument->setName(parameters[i].name);
    if (parameters[i].kind == ParameterKind::pointer) {
      argument->addAttr(llvm::Attribute::getWithAlignment(context, llvm::Align(parameters[i].align)));
    }
  }

  const auto annotate = [&](const char* key, u32 value) {
    module.getOrInsertNamedMetadata("nvvm.annotations")
        ->addOperand(llvm::MDNode::get(
            context, {llvm::ValueAsMetadata::get(function), llvm::MDString::get(context, key),
                      llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), value))}));
  };
  annotate("kernel", 1);
  annotate("reqntidx", block);
  annotate("reqntidy", 1);
  annotate("reqntidz", 1);
  if (definition.spec.min_blocks != 0) annotate("minctasm", definition.spec.min_blocks);

  // Line information without a debug build: with this emission kind, `.target` has no `debug`.
  module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  const std::string path = relative_path(definition.where.file_name());
  llvm::DIFile* file = debug_info.createFile(path, "");
  debug_info.createCompileUnit(llvm::dwarf::DW_LANG_C_plus_plus_14, file, "ptxkit", true, "", 0, "",
                               llvm::DICompileUnit::DebugDirectivesOnly);
  llvm::DISubprogram* subprogram = debug_info.createFunction(
      file, name, name, file, definition.where.line(),
      debug_info.createSubroutineType(debug_info.getOrCreateTypeArray({})), definition.where.line(),
      llvm::DINode::FlagZero, llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
  function->setSubprogram(subprogram);
  files[path] = subprogram;

  entry = new_block("entry");
  return_block = new_block("leave");
  llvm::BasicBlock* body = new_block("body");
  b.SetInsertPoint(entry);
  at(definition.where);
  b.CreateBr(body);
  b.SetInsertPoint(return_block);
  b.CreateRetVoid();
  b.SetInsertPoint(body);
}

Trace::State::~State() = default;

void Trace::State::at(Where where) {
  if (where.line() == 0) return;
  here = where;
  const std::string path = relative_path(where.file_name());
  llvm::DIScope*& scope = files[path];
  if (scope == nullptr) {
    scope = debug_info.createLexicalBlockFile(function->getSubprogram(), debug_info.createFile(path, ""));
  }
  b.SetCurrentDebugLocation(llvm::DILocation::get(context, where.line(), where.column(), scope));
}

llvm::Type* Trace::State::type(Scalar scalar) {
  if (scalar == Scalar::float32) return llvm::Type::getFloatTy(context);
  if (scalar == Scalar::float64) return llvm::Type::getDoubleTy(context);
  return llvm::Type::getIntNTy(context, bits_of(scalar));
}

llvm::Value* Trace::State::node(Value value, Where where) {
  PTXKIT_CHECK(value.node != nullptr, "every value of the typed layer was traced");
  regions.require_alive(value.region, where.line() == 0 ? here : where);
  return static_cast<llvm::Value*>(value.node);
}

Value Trace::State::value(llvm::Value* node) { return {node, regions.current()}; }

llvm::Value* Trace::State::u32_constant(u64 bits) {
  return llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), bits);
}

llvm::BasicBlock* Trace::State::new_block(const char* block_name) {
  return llvm::BasicBlock::Create(context, block_name, function);
}

void Trace::State::trap_if(llvm::Value* condition, Where where) {
  at(where);
  llvm::BasicBlock* trap = new_block("trap");
  llvm::BasicBlock* go_on = new_block("checked");
  b.CreateCondBr(condition, trap, go_on, llvm::MDBuilder(context).createUnlikelyBranchWeights());
  b.SetInsertPoint(trap);
  // NoMerge keeps the traps of different lines apart, so that a fault names its own line.
  b.CreateIntrinsic(llvm::Intrinsic::trap, {}, {})->addFnAttr(llvm::Attribute::NoMerge);
  b.CreateUnreachable();
  b.SetInsertPoint(go_on);
}

void Trace::State::finish() {
  b.CreateBr(return_block);
  debug_info.finalize();
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  const bool broken = llvm::verifyModule(module, &stream);
  PTXKIT_CHECK(!broken, stream.str().c_str());
}

// --- trace: values ---

Trace::Trace(std::unique_ptr<State> state) : state_(std::move(state)) {}
Trace::~Trace() = default;

bool Trace::is_checked() const { return state_->checked(); }
bool Trace::is_debug() const { return state_->options.variant == Variant::debug; }
unsigned Trace::sm() const { return state_->options.sm; }

Value Trace::constant(Scalar scalar, u64 bits) {
  llvm::Type* type = state_->type(scalar);
  llvm::Constant* integer =
      llvm::ConstantInt::get(llvm::Type::getIntNTy(state_->context, bits_of(scalar)),
                             bits_of(scalar) == 64 ? bits : bits & ((u64{1} << bits_of(scalar)) - 1));
  return {is_float(scalar) ? llvm::ConstantExpr::getBitCast(integer, type) : integer, 0};
}

Value Trace::binary(Binary op, Scalar scalar, Value a, Value b, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Value* x = s.node(a, where);
  llvm::Value* y = s.node(b, where);
  const bool is_f = is_float(scalar);
  const bool is_s = is_signed(scalar);
  if (s.checked() && !is_f) {
    llvm::Type* type = s.type(scalar);
    if (op == Binary::div || op == Binary::rem) s.trap_if(s.b.CreateICmpEQ(y, llvm::ConstantInt::get(type, 0)), where);
    if (op == Binary::shl || op == Binary::shr) {
      s.trap_if(s.b.CreateICmpUGE(y, llvm::ConstantInt::get(type, bits_of(scalar))), where);
    }
  }
  const auto minmax = [&](llvm::Intrinsic::ID f, llvm::Intrinsic::ID i, llvm::Intrinsic::ID u) {
    return s.b.CreateBinaryIntrinsic(is_f ? f : is_s ? i : u, x, y);
  };
  llvm::Value* result = nullptr;
  switch (op) {
    case Binary::add:
      result = is_f ? s.b.CreateFAdd(x, y) : s.b.CreateAdd(x, y);
      break;
    case Binary::sub:
      result = is_f ? s.b.CreateFSub(x, y) : s.b.CreateSub(x, y);
      break;
    case Binary::mul:
      result = is_f ? s.b.CreateFMul(x, y) : s.b.CreateMul(x, y);
      break;
    case Binary::div:
      result = is_f ? s.b.CreateFDiv(x, y) : is_s ? s.b.CreateSDiv(x, y) : s.b.CreateUDiv(x, y);
      break;
    case Binary::rem:
      result = is_s ? s.b.CreateSRem(x, y) : s.b.CreateURem(x, y);
      break;
    case Binary::and_:
      result = s.b.CreateAnd(x, y);
      break;
    case Binary::or_:
      result = s.b.CreateOr(x, y);
      break;
    case Binary::xor_:
      result = s.b.CreateXor(x, y);
      break;
    case Binary::shl:
      result = s.b.CreateShl(x, y);
      break;
    case Binary::shr:
      result = is_s ? s.b.CreateAShr(x, y) : s.b.CreateLShr(x, y);
      break;
    case Binary::min:
      result = minmax(llvm::Intrinsic::minnum, llvm::Intrinsic::smin, llvm::Intrinsic::umin);
      break;
    case Binary::max:
      result = minmax(llvm::Intrinsic::maxnum, llvm::Intrinsic::smax, llvm::Intrinsic::umax);
      break;
  }
  return s.value(result);
}

Value Trace::compare(Compare op, Scalar scalar, Value a, Value b, Where where) {
  State& s = *state_;
  s.at(where);
  using P = llvm::CmpInst::Predicate;
  constexpr P floats[] = {P::FCMP_OEQ, P::FCMP_UNE, P::FCMP_OLT, P::FCMP_OLE, P::FCMP_OGT, P::FCMP_OGE};
  constexpr P signeds[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_SLT, P::ICMP_SLE, P::ICMP_SGT, P::ICMP_SGE};
  constexpr P unsigneds[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_ULT, P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE};
  const auto index = static_cast<size_t>(op);
  const P predicate = is_float(scalar) ? floats[index] : is_signed(scalar) ? signeds[index] : unsigneds[index];
  return s.value(s.b.CreateCmp(predicate, s.node(a, where), s.node(b, where)));
}

Value Trace::negate(Scalar scalar, Value a, Where where) {
  State& s = *state_;
  s.at(where);
  return s.value(is_float(scalar) ? s.b.CreateFNeg(s.node(a, where)) : s.b.CreateNeg(s.node(a, where)));
}

Value Trace::convert(Scalar from, Scalar to, Value a, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Value* x = s.node(a, where);
  llvm::Type* type = s.type(to);
  if (is_float(from) && is_float(to)) return s.value(s.b.CreateFPCast(x, type));
  if (is_float(from)) return s.value(is_signed(to) ? s.b.CreateFPToSI(x, type) : s.b.CreateFPToUI(x, type));
  if (is_float(to)) return s.value(is_signed(from) ? s.b.CreateSIToFP(x, type) : s.b.CreateUIToFP(x, type));
  return s.value(is_signed(from) ? s.b.CreateSExtOrTrunc(x, type) : s.b.CreateZExtOrTrunc(x, type));
}

Value Trace::bitcast(Scalar, Scalar to, Value a, Where where) {
  State& s = *state_;
  s.at(where);
  return s.value(s.b.CreateBitCast(s.node(a, where), s.type(to)));
}

Value Trace::select(Value condition, Value a, Value b, Where where) {
  State& s = *state_;
  s.at(where);
  return s.value(s.b.CreateSelect(s.node(condition, where), s.node(a, where), s.node(b, where)));
}

Value Trace::intrinsic(Intrinsic id, Scalar scalar, std::initializer_list<Value> arguments, Where where) {
  State& s = *state_;
  s.at(where);
  std::vector<llvm::Value*> nodes;
  for (const Value& argument : arguments) nodes.push_back(s.node(argument, where));
  return s.value(lower(s, id, s.type(scalar), nodes));
}

Value Trace::shuffle(Intrinsic id, Scalar scalar, Rate rate, Value value, Value lane, u32 width, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Value* source = s.node(value, where);
  llvm::Value* from = s.node(lane, where);
  // PTX ISA, shfl.sync: c holds the segment mask in bits 8-12 and the clamp in bits 0-4.
  const u32 clamp = (32 - width) << 8 | (id == Intrinsic::shuffle_up ? 0u : 31u);
  const unsigned bits = bits_of(scalar);
  llvm::Type* word = s.b.getInt32Ty();
  llvm::Value* integer = is_float(scalar) ? s.b.CreateBitCast(source, s.b.getIntNTy(bits)) : source;
  const auto one = [&](llvm::Value* part) {
    llvm::Value* shuffled = lower(s, id, word, {part, from, s.u32_constant(clamp)});
    if (rate <= Rate::warp)
      llvm::cast<llvm::Instruction>(shuffled)->setMetadata(kWarpUniform, llvm::MDNode::get(s.context, {}));
    return shuffled;
  };
  llvm::Value* result = nullptr;
  if (bits == 64) {
    llvm::Value* low = s.b.CreateZExt(one(s.b.CreateTrunc(integer, word)), s.b.getInt64Ty());
    llvm::Value* high = s.b.CreateZExt(one(s.b.CreateTrunc(s.b.CreateLShr(integer, 32), word)), s.b.getInt64Ty());
    result = s.b.CreateOr(low, s.b.CreateShl(high, 32));
  } else {
    result = s.b.CreateTrunc(one(s.b.CreateZExt(integer, word)), s.b.getIntNTy(bits));
  }
  return s.value(is_float(scalar) ? s.b.CreateBitCast(result, s.type(scalar)) : result);
}

Value Trace::inclusive_sum(Value value, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::Value* sum = s.node(value, where);
  llvm::Value* lane = lower(s, Intrinsic::lane, s.b.getInt32Ty(), {});
  for (u32 delta = 1; delta < 32; delta *= 2) {
    llvm::Value* below =
        lower(s, Intrinsic::shuffle_up, s.b.getInt32Ty(), {sum, s.u32_constant(delta), s.u32_constant(0)});
    llvm::Value* has_below = s.b.CreateICmpUGE(lane, s.u32_constant(delta));
    sum = s.b.CreateAdd(sum, s.b.CreateSelect(has_below, below, s.u32_constant(0)));
  }
  return s.value(sum);
}

// --- variables, arrays ---

Slot Trace::declare(Scalar scalar, Value initial, Where where) {
  State& s = *state_;
  llvm::AllocaInst* alloca = nullptr;
  {
    llvm::IRBuilderBase::InsertPointGuard guard(s.b);
    s.b.SetInsertPoint(s.entry, s.entry->begin());
    alloca = s.b.CreateAlloca(s.type(scalar));
  }
  s.at(where);
  s.b.CreateStore(s.node(initial, where), alloca);
  return {alloca, s.regions.depth(), where};
}

Value Trace::read(Scalar scalar, const Slot& slot, Where where) {
  State& s = *state_;
  s.at(where);
  return s.value(s.b.CreateLoad(s.type(scalar), static_cast<llvm::Value*>(slot.node)));
}

void Trace::assign(const Slot& slot, Rate rate, Value value, Where where) {
  State& s = *state_;
  s.regions.require_uniform_assignment(rate, slot.depth, slot.declared, where);
  s.at(where);
  s.b.CreateStore(s.node(value, where), static_cast<llvm::Value*>(slot.node));
}

Place Trace::array(Space space, const char* array_name, Scalar element, u64 count, size_t align, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::ArrayType* type = llvm::ArrayType::get(s.type(element), count);
  if (space == Space::shared) {
    const std::string full_name = s.name + "_" + array_name;
    for (const SharedArray& other : s.shared_arrays) {
      if (other.name == full_name) {
        throw DslError(std::string("the shared array '") + array_name + "' exists already", where,
                       "it is declared here", other.where, "give each array its own name");
      }
    }
    // Both would be <kernel>_<name> in PTX.
    for (const Parameter& parameter : s.parameters) {
      if (parameter.name == array_name) {
        throw DslError(std::string("the shared array '") + array_name + "' has the name of a parameter", where,
                       "the kernel '" + s.name + "' has that parameter", s.defined, "give the array a name of its own");
      }
    }
    auto* global = new llvm::GlobalVariable(s.module, type, false, llvm::GlobalValue::InternalLinkage,
                                            llvm::PoisonValue::get(type), full_name, nullptr,
                                            llvm::GlobalValue::NotThreadLocal, address_space_of(space));
    global->setAlignment(llvm::Align(align));
    s.shared_arrays.push_back({full_name, count * bits_of(element) / 8, align, where});
    return {{global, 0}};
  }
  llvm::IRBuilderBase::InsertPointGuard guard(s.b);
  s.b.SetInsertPoint(s.entry, s.entry->begin());
  llvm::AllocaInst* alloca = s.b.CreateAlloca(type, nullptr, array_name);
  alloca->setAlignment(llvm::Align(align));
  return {{alloca, 0}};
}

// --- control flow ---

struct Trace::If {
  llvm::BasicBlock* otherwise;
  llvm::BasicBlock* merge;
  Regions::Id region;
  Rate rate;
  Where where;
};

struct Trace::Loop {
  llvm::BasicBlock* header;
  llvm::BasicBlock* latch;
  llvm::BasicBlock* exit;
  Regions::Id region;
  bool latched;
};

Trace::If* Trace::open_if(Value condition, Rate rate, Where where) {
  State& s = *state_;
  s.at(where);
  llvm::BasicBlock* then = s.new_block("then");
  llvm::BasicBlock* otherwise = s.new_block("else");
  llvm::BasicBlock* merge = s.new_block("endif");
  s.b.CreateCondBr(s.node(condition, where), then, otherwise);
  s.b.SetInsertPoint(otherwise);
  s.b.CreateBr(merge);
  s.b.SetInsertPoint(then);
  s.ifs.push_back(
      std::make_unique<If>(If{otherwise, merge, s.regions.open(rate, "branch", false, where), rate, where}));
  return s.ifs.back().get();
}

void Trace::close_if(If* branch) {
  State& s = *state_;
  s.b.CreateBr(branch->merge);
  s.regions.close(branch->region);
  s.b.SetInsertPoint(branch->merge);
}

void Trace::open_else(If* branch, Where where) {
  State& s = *state_;
  if (s.b.GetInsertBlock() != branch->merge || !branch->merge->empty()) {
    throw DslError("else_ does not follow its branch", where, "the branch stands here", branch->where,
                   "write k.if_(...).else_(...) in one statement");
  }
  branch->otherwise->getTerminator()->eraseFromParent();
  s.b.SetInsertPoint(branch->otherwise);
  branch->region = s.regions.open(branch->rate, "branch", false, branch->where);
}

void Trace::close_else(If* branch) { close_if(branch); }

Trace::Loop* Trace::open_loop(Rate rate, Where where) {
  State& s = *state_;
  s.at(where);
  Loop loop{s.new_block("loop"), s.new_block("latch"), s.new_block("endloop"),
            s.regions.open(rate, "loop", true, where), false};
  s.b.CreateBr(loop.header);
  s.b.SetInsertPoint(loop.header);
  s.loops.push_back(std::make_unique<Loop>(loop));
  return s.loops.back().get();
}

void Trace::open_latch(Loop* loop) {
  State& s = *state_;
  s.b.CreateBr(loop->latch);
  s.b.SetInsertPoint(loop->latch);
  loop->latched = true;
}

void Trace::close_loop(Loop* loop) {
  State& s = *state_;
  if (!loop->latched) open_latch(loop);
  s.b.CreateBr(loop->header);
  s.regions.close(loop->region);
  s.b.SetInsertPoint(loop->exit);
}

void Trace::jump_if(Loop* loop, bool leave, Value condition, Rate rate, Where where) {
  State& s = *state_;
  s.regions.require_uniform_jump(rate, loop->region, leave ? "break" : "continue", where);
  s.at(where);
  llvm::BasicBlock* go_on = s.new_block("next");
  s.b.CreateCondBr(s.node(condition, where), leave ? loop->exit : loop->latch, go_on);
  s.b.SetInsertPoint(go_on);
}

void Trace::return_if(Value condition, Rate rate, Where where) {
  State& s = *state_;
  s.regions.note_return(rate, where);
  s.at(where);
  llvm::BasicBlock* go_on = s.new_block("next");
  s.b.CreateCondBr(s.node(condition, where), s.return_block, go_on);
  s.b.SetInsertPoint(go_on);
}

void Trace::trap_if(Value condition, Where where) { state_->trap_if(state_->node(condition, where), where); }

void Trace::require_together(Rate together, const char* what, Where where) {
  state_->regions.require_together(together, what, where);
}

// --- operators of the typed layer ---

Value materialise(Trace& trace, Scalar scalar, const Operand& operand) {
  return operand.trace != nullptr ? operand.value : trace.constant(scalar, operand.bits);
}

namespace {
Trace& trace_of(const Operand& a, const Operand& b) {
  PTXKIT_CHECK(a.trace != nullptr || b.trace != nullptr, "one operand is a device value");
  PTXKIT_CHECK(a.trace == nullptr || b.trace == nullptr || a.trace == b.trace, "both operands belong to one kernel");
  return a.trace != nullptr ? *a.trace : *b.trace;
}
}  // namespace

Traced apply(Binary op, Scalar scalar, const Operand& a, const Operand& b) {
  Trace& trace = trace_of(a, b);
  return {&trace, trace.binary(op, scalar, materialise(trace, scalar, a), materialise(trace, scalar, b), b.where)};
}

Traced apply(Compare op, Scalar scalar, const Operand& a, const Operand& b) {
  Trace& trace = trace_of(a, b);
  return {&trace, trace.compare(op, scalar, materialise(trace, scalar, a), materialise(trace, scalar, b), b.where)};
}

void detail::check_literal_fits(bool fits, const char* type, Where where) {
  if (!fits) throw DslError(std::string("the literal does not fit ") + type, where, "use a value of that type's range");
}

}  // namespace ptxkit::dsl
