// Every kernel's release PTX is what was accepted. A difference prints what the machine would do differently.
#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "kernels/images.hpp"
#include "support/file.hpp"
#include "tools/kernelc/golden_text.hpp"

namespace ptxkit::kernels {
namespace {

std::string file_name(const KernelImage& image) {
  return std::string(image.name) + "." + std::string(image.target) + ".ptx";
}

TEST(GoldenPtx, EveryKernelIsAsAccepted) {
  for (const KernelImage& image : kernel_images()) {
    if (image.variant != "release") continue;
    const auto accepted = read_file("fkr_tests/golden/" + file_name(image));
    ASSERT_TRUE(accepted) << accepted.error().message();
    EXPECT_EQ(kernelc::describe_difference(*accepted, image.ptx), "")
        << file_name(image) << " differs from what was accepted; to accept: ./dev kernel " << image.name << " --accept";
  }
}

TEST(GoldenPtx, NothingIsKeptOfAKernelThatIsGone) {
  std::set<std::string> expected;
  for (const KernelImage& image : kernel_images()) {
    if (image.variant == "release") expected.insert(file_name(image));
  }
  EXPECT_EQ(expected.size() % 3, 0u) << "three targets a kernel";
  for (const auto& entry : std::filesystem::directory_iterator("fkr_tests/golden")) {
    if (entry.path().extension() == ".ptx") {
      EXPECT_EQ(expected.count(entry.path().filename().string()), 1u) << entry.path();
    }
  }
}

}  // namespace
}  // namespace ptxkit::kernels
