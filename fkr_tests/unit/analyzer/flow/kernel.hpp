// Parses a kernel from its body and runs the analyses under test.
#pragma once

#include <string>

#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/dominators.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/launch.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/flow/uniformity.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::flow {

struct Kernel {
  ptx::ParseResult parsed;
  const ptx::Function& function;
  Graph graph;
  DominatorTree dominators, post_dominators;
  Loops loops;
  Ssa ssa;
  Domain domain;
  Forms forms;

  // Registers: %p0.. predicates, %h 16 bits, %r 32 bits, %rd 64 bits; parameters p (u64) and n (u32); shared array s.
  explicit Kernel(const std::string& body, const std::string& directives = ".reqntid 64, 1, 1")
      : parsed(ptx::parse(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n" +
                directives +
                "\n{\n.reg .pred %p<20>;\n.reg .b16 %h<20>;\n.reg .b32 %r<200>;\n.reg .b64 %rd<200>;\n"
                ".shared .align 16 .b8 s[4096];\n" +
                body + "\n}\n",
            "test.ptx")),
        function(parsed.module.functions.at(0)),
        graph(function),
        dominators(DominatorTree::dominators(graph)),
        post_dominators(DominatorTree::post_dominators(graph)),
        loops(graph, dominators),
        ssa(graph, dominators),
        domain(parsed.module, ssa, LaunchShape::of(function)),
        forms(domain, loops) {}

  BlockId block_at(const std::string& label) const {
    for (const ptx::Label& each : function.labels)
      if (each.name == label) return graph.block_of(each.target);
    return kNone;
  }
  // The value of the last definition of a register in the text.
  ValueId value(const std::string& name) const {
    ValueId found = kNone;
    for (ValueId id = 0; id < ssa.size(); ++id)
      if (ssa.value(id).kind == Value::Kind::result && function.registers[ssa.value(id).reg].name() == name) found = id;
    return found;
  }
};

}  // namespace ptxkit::flow
