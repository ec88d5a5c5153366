// Where regions of device memory have their sizes from: DeclaredCosts::bytes alone, which reads them from the @pz_cost
// blocks of the kernels that are launched.
#pragma once

namespace clang {
class ASTContext;
}

namespace ptxkit::lint {

struct RegionFindings {
  unsigned size_count = 0, count = 0;
};

// Looks at everything in the main file that makes a codec::Region or touches its size.
void check_regions(clang::ASTContext& context, RegionFindings& findings);

}  // namespace ptxkit::lint
