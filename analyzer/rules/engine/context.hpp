// The state of a rule's run on one kernel: the tree, the user's options, and the analyses, each computed on first use.
//
// Rules share the analyses of a context: the graph, its dominators and loops, SSA, the value domain, uniformity. One
// thread at a time uses a context. Several kernels of a module may be examined in parallel, each with a context of its
// own.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "analyzer/flow/inline.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

struct Analyses;  // analyzer/rules/engine/analyses.hpp; for rules only

struct Context {
  // `function` may be ptx::kNone for rules about the module. All references must outlive the context.
  Context(const ptx::Module& module, ptx::FunctionId function, const std::vector<ptx::Diagnostic>& diagnostics,
          const Options& options);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const ptx::Module& module;
  const ptx::FunctionId function_id;
  const std::vector<ptx::Diagnostic>& diagnostics;  // of the whole module
  const Options& options;

  bool has_body() const;  // whether the function exists and has instructions
  // The kernel after inlining the calls that can be followed. Precondition: function_id is not kNone.
  const ptx::Function& function() const;
  const flow::Inlined* inlined() const { return inlined_ ? &*inlined_ : nullptr; }  // null: no call was inlined
  Analyses& analyses();                                                             // precondition: has_body()

 private:
  std::optional<flow::Inlined> inlined_;
  std::unique_ptr<Analyses> analyses_;
};

}  // namespace ptxkit::rules
