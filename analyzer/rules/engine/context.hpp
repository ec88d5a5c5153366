// One kernel under examination: the tree, what the user said, and the analyses, each made when first asked for.
//
// Rules share analyses through this: the graph, its dominators and loops, SSA, the value domain, uniformity. A context
// is used by one thread at a time; several kernels of one module may be examined in parallel, each with its own.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "analyzer/flow/inline.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

struct Analyses;  // analyzer/rules/engine/analyses.hpp, for the rules themselves

struct Context {
  // `function` may be ptx::kNone for rules that speak of the module. All references must outlive the context.
  Context(const ptx::Module& module, ptx::FunctionId function, const std::vector<ptx::Diagnostic>& diagnostics,
          const Options& options);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const ptx::Module& module;
  const ptx::FunctionId function_id;
  const std::vector<ptx::Diagnostic>& diagnostics;  // of the whole module
  const Options& options;

  bool has_body() const;  // there is a function and it has instructions to speak of
  // The kernel with the calls in it followed as far as they can be. Precondition: function_id is not kNone.
  const ptx::Function& function() const;
  const flow::Inlined* inlined() const { return inlined_ ? &*inlined_ : nullptr; }  // null: no call was followed
  Analyses& analyses();                                                             // precondition: has_body()

 private:
  std::optional<flow::Inlined> inlined_;
  std::unique_ptr<Analyses> analyses_;
};

}  // namespace ptxkit::rules
