// The inside of Trace, for the builder's own sources: the LLVM objects under construction (by reference, so this header
// does not include LLVM either) and what tracing recorded.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "builder/emit.hpp"
#include "builder/regions.hpp"
#include "builder/trace.hpp"

namespace llvm {
class BasicBlock;
class DIBuilder;
class DIScope;
class Function;
class IRBuilderBase;
class LLVMContext;
class Module;
class Type;
class Value;
}  // namespace llvm

namespace ptxkit::dsl {

// An array in shared memory, as the launch file lists it.
struct SharedArray {
  std::string name;
  u64 bytes;
  size_t align;
  Where where;
};

// A marker of a debug build, as the launch file lists it.
struct Marker {
  u32 id;
  Where where;
};

struct Trace::State {
  State(const KernelDefinition& definition, const EmitOptions& options);
  ~State();

  struct Ir;  // owns the LLVM objects
  std::unique_ptr<Ir> ir;
  llvm::LLVMContext& context;
  llvm::Module& module;
  llvm::IRBuilderBase& b;
  llvm::Function* function = nullptr;
  llvm::BasicBlock* entry = nullptr;         // holds the allocas
  llvm::BasicBlock* return_block = nullptr;  // the only `ret`
  llvm::DIBuilder& debug_info;
  std::map<std::string, llvm::DIScope*> files;  // the debug scope of each source file

  std::string name;
  Where defined;  // where the kernel is defined
  EmitOptions options;
  u32 block;
  std::vector<Parameter> parameters;
  Regions regions;
  Where here;
  std::vector<Assumption> assumptions;
  std::vector<SharedArray> shared_arrays;
  std::vector<Marker> markers;
  std::vector<std::unique_ptr<Trace::If>> ifs;
  std::vector<std::unique_ptr<Trace::Loop>> loops;

  bool checked() const { return options.variant != Variant::release; }

  // Sets the line of the following instructions. A default Where keeps the current one.
  void at(Where where);
  llvm::Type* type(Scalar scalar);
  llvm::Value* node(Value value, Where where);  // throws DslError for a value whose region is closed
  Value value(llvm::Value* node);
  llvm::Value* u32_constant(u64 bits);
  llvm::BasicBlock* new_block(const char* name);
  // Traps in the threads where `condition` holds. The others continue.
  void trap_if(llvm::Value* condition, Where where);

  void finish();  // ends the function and verifies the module
};

unsigned address_space_of(Space space);

// Emits the LLVM call or the inline assembly of an intrinsic.
llvm::Value* lower(Trace::State& state, Intrinsic id, llvm::Type* type, const std::vector<llvm::Value*>& arguments);

// The metadata on a shuffle whose result is the same in the whole warp.
inline constexpr const char* kWarpUniform = "ptxkit.warp_uniform";

// Adds kUniformColumn to the column of every branch that the lanes of a warp take together. finish_ptx reads the mark.
inline constexpr unsigned kUniformColumn = 1u << 15;
void mark_uniform_branches(llvm::Function& function);

// Optimises `module` and returns the backend's PTX.
std::string compile(llvm::Module& module, const EmitOptions& options);

// The backend's text with parameter names instead of numbers, `.ptr` annotations, `bra.uni` and the @pz_cost block.
std::string finish_ptx(const std::string& text, const KernelDefinition& definition, const Trace::State& state);

std::string launch_file(const KernelDefinition& definition, const Trace::State& state);

}  // namespace ptxkit::dsl
