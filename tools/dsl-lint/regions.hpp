// Checks the sizes of regions of device memory. They must come from DeclaredCosts::bytes, which reads them from the
// @pz_cost blocks of the launched kernels.
#pragma once

namespace clang {
class ASTContext;
}

namespace ptxkit::lint {

struct RegionFindings {
  unsigned size_count = 0, count = 0;
};

// Checks everything in the main file that creates a codec::Region or changes its size.
void check_regions(clang::ASTContext& context, RegionFindings& findings);

}  // namespace ptxkit::lint
