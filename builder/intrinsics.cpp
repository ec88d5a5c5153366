// Lowers each row of intrinsic.def to IR: a call of the LLVM intrinsic that it names, or inline PTX. Calls go through
// the intrinsics' own declarations, which carry `convergent` and the memory effects.
#include <string_view>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include "builder/trace_state.hpp"
#include "support/check.hpp"

namespace ptxkit::dsl {
namespace {

constexpr IntrinsicRow kRows[] = {
#define PTXKIT_INTRINSIC(name, lowering, together, lanes_per_clock, meaning) \
  {Intrinsic::name, #name, lowering, Together::together, lanes_per_clock, meaning},
#include "builder/intrinsic.def"
#undef PTXKIT_INTRINSIC
};

llvm::CallInst* call(Trace::State& s, std::string_view name, llvm::ArrayRef<llvm::Type*> overloads,
                     llvm::ArrayRef<llvm::Value*> arguments) {
  const llvm::Intrinsic::ID id = llvm::Function::lookupIntrinsicID(llvm::StringRef(name.data(), name.size()));
  PTXKIT_CHECK(id != llvm::Intrinsic::not_intrinsic, "every row of intrinsic.def names an intrinsic of LLVM 19");
  return s.b.CreateCall(llvm::Intrinsic::getDeclaration(&s.module, id, overloads), arguments);
}

// Inline PTX on 32-bit registers, declared free of side effects, so that LLVM merges equal calls and removes unused
// ones.
llvm::Value* assembly(Trace::State& s, std::string_view text, const std::vector<llvm::Value*>& arguments) {
  llvm::Type* word = s.b.getInt32Ty();
  std::string constraints = "=r";
  std::vector<llvm::Type*> types;
  for (size_t i = 0; i < arguments.size(); ++i) {
    constraints += ",r";
    types.push_back(word);
  }
  llvm::CallInst* computed =
      s.b.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(word, types, false),
                                          llvm::StringRef(text.data(), text.size()), constraints, false),
                     arguments);
  computed->setDoesNotAccessMemory();
  computed->setDoesNotThrow();
  computed->addFnAttr(llvm::Attribute::WillReturn);
  return computed;
}

llvm::Value* combine(Trace::State& s, Intrinsic id, llvm::Value* a, llvm::Value* b) {
  switch (id) {
    case Intrinsic::reduce_add:
      return s.b.CreateAdd(a, b);
    case Intrinsic::reduce_min:
      return s.b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, a, b);
    case Intrinsic::reduce_max:
      return s.b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, a, b);
    case Intrinsic::reduce_and:
      return s.b.CreateAnd(a, b);
    case Intrinsic::reduce_or:
      return s.b.CreateOr(a, b);
    default:
      return s.b.CreateXor(a, b);
  }
}

}  // namespace

const IntrinsicRow& row_of(Intrinsic id) { return kRows[static_cast<size_t>(id)]; }

llvm::Value* lower(Trace::State& s, Intrinsic id, llvm::Type* type, const std::vector<llvm::Value*>& arguments) {
  const std::string_view lowering = row_of(id).lowering;
  llvm::Value* whole_warp = s.u32_constant(0xffffffff);
  const auto in_range = [&](llvm::CallInst* register_read, u32 limit) {
    register_read->setMetadata(llvm::LLVMContext::MD_range,
                               llvm::MDBuilder(s.context).createRange(llvm::APInt(32, 0), llvm::APInt(32, limit)));
    return register_read;
  };
  switch (id) {
    case Intrinsic::thread_x:
      return in_range(call(s, lowering, {}, {}), s.block);
    case Intrinsic::lane:
      return in_range(call(s, lowering, {}, {}), 32);
    case Intrinsic::block_x:
    case Intrinsic::grid_x:
    case Intrinsic::clock:
    case Intrinsic::lane_mask_lt:
    case Intrinsic::barrier:
      return call(s, lowering, {}, {});
    case Intrinsic::popc:
    case Intrinsic::brev:
      return call(s, lowering, {type}, arguments);
    case Intrinsic::ctz:
      // LLVM's expansion of a 32-bit cttz branches around the case 0. A divergent branch costs more than brev and clz,
      // which handle 0. brev is inline PTX, so that LLVM does not recognise the pair as cttz.
      if (type->isIntegerTy(32)) {
        return s.b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, assembly(s, "brev.b32 $0, $1;", arguments),
                                         s.b.getFalse());
      }
      [[fallthrough]];
    case Intrinsic::clz:
      return call(s, lowering, {type}, {arguments[0], s.b.getFalse()});
    case Intrinsic::mul_hi32:
    case Intrinsic::mul_hi64:
    case Intrinsic::prmt:
      return call(s, lowering, {}, arguments);
    case Intrinsic::funnel_left:
    case Intrinsic::funnel_right:
    case Intrinsic::shift_left:
    case Intrinsic::bit_field:
      return assembly(s, lowering, arguments);
    case Intrinsic::shuffle:
    case Intrinsic::shuffle_up:
    case Intrinsic::shuffle_down:
    case Intrinsic::shuffle_xor:
      return call(s, lowering, {}, {whole_warp, arguments[0], arguments[1], arguments[2]});
    case Intrinsic::any:
    case Intrinsic::all:
    case Intrinsic::ballot:
    case Intrinsic::match_any32:
    case Intrinsic::match_any64:
      return call(s, lowering, {}, {whole_warp, arguments[0]});
    case Intrinsic::match_all32:
      return s.b.CreateExtractValue(call(s, lowering, {}, {whole_warp, arguments[0]}), 1);
    case Intrinsic::sync_warp:
      return call(s, lowering, {}, {whole_warp});
    case Intrinsic::reduce_add:
    case Intrinsic::reduce_min:
    case Intrinsic::reduce_max:
    case Intrinsic::reduce_and:
    case Intrinsic::reduce_or:
    case Intrinsic::reduce_xor: {
      if (s.options.sm >= 80) return call(s, lowering, {}, {arguments[0], whole_warp});
      llvm::Value* total = arguments[0];
      for (u32 distance = 16; distance != 0; distance /= 2) {
        llvm::Value* other =
            lower(s, Intrinsic::shuffle_xor, type, {total, s.u32_constant(distance), s.u32_constant(31)});
        total = combine(s, id, total, other);
      }
      return total;
    }
  }
  PTXKIT_CHECK(false, "every intrinsic has a lowering");
  return nullptr;
}

}  // namespace ptxkit::dsl
