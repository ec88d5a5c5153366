// Compares instruction forms of textures and surfaces with the bits that an H200 gave.
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fkr_tests/device/image_cases.hpp"

namespace ptxkit::emulator {
namespace {

using ptxkit::testing::ImageCase;

// All programs are correct: the checks find nothing. The recorded bits are from device_tests with PTXKIT_RECORD_IMAGES.
// If PTXKIT_FORMS names a folder the programs are written there.
TEST(ImageForms, TheBitsAreThoseOfAnH200) {
  std::map<std::string, std::string> recorded;
  std::ifstream file(EMULATOR_TEST_FOLDER "/../../../device/images_h200.txt");
  for (std::string line; std::getline(file, line);)
    recorded[line.substr(line.find(' ') + 1)] = line.substr(0, line.find(' '));
  const char* folder = std::getenv("PTXKIT_FORMS");
  size_t number = 0, equal = 0, exceptions = 0;
  for (const ptx::Op op : ptxkit::testing::image_ops())
    for (const ImageCase& each : ptxkit::testing::image_cases(op)) {
      SCOPED_TRACE(each.name);
      if (folder != nullptr) std::ofstream(fmt::format("{}/images{}.ptx", folder, number)) << each.ptx;
      ++number;
      const auto left = ptxkit::testing::emulate_images(each);
      ASSERT_TRUE(left) << left.error().message();
      const std::string hashes = image_hashes(each, *left), &real = recorded[each.name];
      ASSERT_EQ(hashes.size(), real.size());
      for (size_t i = 0; i < each.instructions.size(); ++i) {
        const std::string& instruction = each.instructions[i];
        const bool same = hashes.compare(6 * i, 6, real, 6 * i, 6) == 0;
        if (ptxkit::testing::image_exception(each, i).empty())
          EXPECT_TRUE(same) << instruction << " (" << i << ")";
        else
          EXPECT_FALSE(same) << instruction << " is no exception any more";
        (same ? equal : exceptions) += 1;
      }
    }
  EXPECT_EQ(recorded.size(), number);
  fmt::print("{} instructions of textures and surfaces bit for bit as on an H200, {} known to differ\n", equal,
             exceptions);
}

}  // namespace
}  // namespace ptxkit::emulator
