// Compares the memory that a kernel declares with what its body uses. Every pointer parameter is a buffer of the
// @pz_cost block, and every buffer is a parameter. A buffer whose elements in an item are stated by within() in the
// body declares exactly those. The others hold whole elements of the parameter's type. The sizes of the shared arrays
// add up to the budget.
#pragma once

namespace clang {
class ASTContext;
}

namespace ptxkit::lint {

struct CostFindings {
  unsigned kernel_count = 0, count = 0;
};

// Checks each function of the main file that has no parameters and returns a KernelDefinition.
void check_costs(clang::ASTContext& context, CostFindings& findings);

}  // namespace ptxkit::lint
