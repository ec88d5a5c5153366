// Tests that every error code of the driver has an entry with text.
#include "runtime/driver/error_catalogue.hpp"

#include <cstdlib>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/file.hpp"

namespace ptxkit::driver {
namespace {

// CUresult of cuda.h, CUDA 13.0, copied from the enumeration; 917 is from a later version. Also cudaError_t of the
// runtime API if the driver has no code of that number.
constexpr int kCodes[] = {
    0,   1,   2,   3,   4,   5,   6,   7,   8,   9,   12,  13,  16,  17,  18,  19,  20,  21,  22,  23,  24,  25,  26,
    27,  28,  31,  32,  34,  35,  36,  37,  43,  44,  45,  46,  49,  52,  53,  65,  66,  67,  68,  69,  98,  100, 101,
    102, 103, 127, 200, 201, 202, 205, 206, 207, 208, 209, 210, 211, 212, 213, 214, 215, 216, 217, 218, 219, 220, 221,
    222, 223, 224, 225, 226, 300, 301, 302, 303, 304, 400, 401, 402, 500, 600, 700, 701, 702, 703, 704, 705, 708, 709,
    710, 711, 712, 713, 714, 715, 716, 717, 718, 719, 720, 721, 800, 801, 802, 803, 804, 805, 806, 807, 808, 809, 810,
    811, 812, 900, 901, 902, 903, 904, 905, 906, 907, 908, 909, 910, 911, 912, 913, 914, 915, 916, 917, 999};

TEST(ErrorCatalogue, HasEveryCodeOnceInOrder) {
  std::vector<int> found;
  for (const ErrorEntry& entry : error_catalogue()) found.push_back(entry.code);
  EXPECT_THAT(found, ::testing::ElementsAreArray(kCodes));
}

TEST(ErrorCatalogue, EveryEntryIsWhole) {
  std::set<std::string_view> names;
  for (const ErrorEntry& entry : error_catalogue()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    for (const std::string_view text : {entry.meaning, entry.cause, entry.next_step}) {
      EXPECT_GE(text.size(), 8u) << entry.name;
      EXPECT_FALSE(text.ends_with('.')) << entry.name << ": " << text;
    }
    EXPECT_TRUE(entry.name.starts_with("CUDA_ERROR_") || entry.name.starts_with("cudaError") || entry.code == 0)
        << entry.name;
    EXPECT_EQ(&explain(entry.code), &entry);
  }
}

// The codes that the toolkit's own headers enumerate, if there is a toolkit.
TEST(ErrorCatalogue, HasEveryCodeOfTheToolkit) {
  const char* const home = std::getenv("CUDA_HOME");
  const std::string folder = std::string(home != nullptr ? home : "/usr/local/cuda") + "/include/";
  size_t found = 0;
  for (const auto& [file, pattern] : {std::pair{"cuda.h", "(CUDA_(?:SUCCESS|ERROR_\\w+))\\s*=\\s*(\\d+)"},
                                      std::pair{"driver_types.h", "(cudaError[A-Z]\\w+)\\s*=\\s*(\\d+)"}}) {
    const auto header = read_file(folder + file);
    if (!header) GTEST_SKIP() << header.error().message();
    const std::regex enumerator(pattern);
    for (std::sregex_iterator each(header->begin(), header->end(), enumerator), end; each != end; ++each) {
      const int code = std::stoi((*each)[2]);
      if (code >= 10000) continue;  // cudaErrorApiFailureBase, which no call returns
      EXPECT_EQ(explain(code).code, code) << (*each)[1];
      if (std::string_view(file) == "cuda.h") {
        EXPECT_EQ(explain(code).name, std::string((*each)[1]));
      }
      ++found;
    }
  }
  EXPECT_GE(found, 200u);
}

TEST(ErrorCatalogue, MisalignedAndIllegalAddressesAreExplained) {
  const auto expect = [](int code, std::string_view name, std::string_view meaning, ErrorScope scope) {
    EXPECT_EQ(explain(code).name, name);
    EXPECT_THAT(std::string(explain(code).meaning), ::testing::HasSubstr(std::string(meaning)));
    EXPECT_EQ(explain(code).scope, scope) << code;
  };
  expect(716, "CUDA_ERROR_MISALIGNED_ADDRESS", "not aligned", ErrorScope::context);
  expect(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "memory that it may not", ErrorScope::context);
  expect(719, "CUDA_ERROR_LAUNCH_FAILED", "no code of its own", ErrorScope::context);
  expect(218, "CUDA_ERROR_INVALID_PTX", "rejected the PTX", ErrorScope::call);
  expect(701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "more than a multiprocessor has", ErrorScope::call);
  expect(2, "CUDA_ERROR_OUT_OF_MEMORY", "not enough free memory", ErrorScope::call);
  expect(100, "CUDA_ERROR_NO_DEVICE", "sees no CUDA device", ErrorScope::installation);
}

TEST(ErrorCatalogue, UnknownCodesAreReportedAsUnknown) {
  EXPECT_EQ(explain(4711).code, 999);
  EXPECT_THAT(driver_error(4711, "cuInit").what, ::testing::HasSubstr("error 4711, a code newer than this program"));
}

TEST(ErrorCatalogue, MessagesNameCallPlaceMeaningAndNextStep) {
  const Error error = driver_error(716, "cuStreamSynchronize", "device 0, Fake GPU");
  EXPECT_EQ(error.where, "device 0, Fake GPU");
  EXPECT_THAT(error.message(),
              ::testing::HasSubstr("cuStreamSynchronize: error 716, CUDA_ERROR_MISALIGNED_ADDRESS: a load or store"));
  EXPECT_THAT(error.message(), ::testing::HasSubstr("run ptx-debug analyze"));
}

}  // namespace
}  // namespace ptxkit::driver
