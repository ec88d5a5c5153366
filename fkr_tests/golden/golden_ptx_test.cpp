// Every kernel's release PTX equals its golden text. A difference is printed as a difference in behaviour.
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "kernels/images.hpp"
#include "support/file.hpp"
#include "tools/kernelc/golden_text.hpp"

namespace ptxkit::kernels {
namespace {

constexpr const char* kGolden = "fkr_tests/golden";

TEST(GoldenPtx, EveryKernelIsAsAccepted) {
  for (const KernelImage& image : kernel_images()) {
    if (image.variant != "release") continue;
    const auto accepted = kernelc::accepted(kGolden, image.name, image.target);
    ASSERT_TRUE(accepted) << accepted.error().message();
    EXPECT_EQ(kernelc::describe_difference(*accepted, image.ptx), "")
        << image.name << " for " << image.target << " differs from what was accepted; to accept: ./dev kernel "
        << image.name << " --accept";
  }
}

// Accepting the accepted texts again changes nothing in the folder: no file is missing, redundant, or of a removed
// kernel.
TEST(GoldenPtx, TheFolderHoldsWhatAcceptingWrites) {
  std::string scratch = (std::filesystem::temp_directory_path() / "ptxkit-golden-XXXXXX").string();
  ASSERT_NE(::mkdtemp(scratch.data()), nullptr);
  for (const char* target : {"sm_75", "sm_80"}) {
    for (const KernelImage& image : kernel_images()) {
      if (image.variant != "release" || image.target != target) continue;
      ASSERT_TRUE(kernelc::store(scratch, image.name, image.target, kernelc::normalise(image.ptx)));
    }
  }
  const auto names = [](const std::filesystem::path& folder) {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".ptx") found.insert(entry.path().filename().string());
    return found;
  };
  EXPECT_EQ(names(kGolden), names(scratch));
  std::filesystem::remove_all(scratch);
}

}  // namespace
}  // namespace ptxkit::kernels
