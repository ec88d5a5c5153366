// What a kernel's declaration says of memory against what its body takes: every pointer parameter is a buffer of the
// @pz_cost block and the other way round; buffers of which the body says, by within(), how many elements an item has,
// declare just those; the others hold whole elements of the parameter's type; and the shared arrays add up to the
// budget.
#pragma once

namespace clang {
class ASTContext;
}

namespace ptxkit::lint {

struct CostFindings {
  unsigned kernel_count = 0, count = 0;
};

// Looks at each function of the main file that takes nothing and returns a KernelDefinition.
void check_costs(clang::ASTContext& context, CostFindings& findings);

}  // namespace ptxkit::lint
