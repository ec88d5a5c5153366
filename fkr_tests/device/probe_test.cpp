// The probes on this GPU must give the results of the shipped evidence, at every level of the driver's compiler: error
// 716 if an access is misaligned, success if all are aligned or the misaligned load is dead code.
#include "fkr_tests/device/probe.hpp"

#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "analyzer/evidence/evidence.hpp"
#include "fkr_tests/device/device.hpp"
#include "tools/ptx-debug/probe_experiment.hpp"

namespace ptxkit::testing {
namespace {

TEST(Probes, GiveWhatTheEvidenceSays) {
  PTXKIT_REQUIRE_DEVICE();
  char self[4096];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
  ASSERT_GT(length, 0);
  const std::string program(self, static_cast<size_t>(length));
  const auto experiment = tools::run_probes({0, 1, 2, 3, 4}, "today", [&](const tools::ProbeCase& which) {
    return fmt::format("'{}' --probe {} {} {}", program, which.probe, which.offset_bytes, which.level);
  });
  ASSERT_TRUE(experiment.has_value()) << experiment.error().message();
  EXPECT_THAT(experiment->by_level, ::testing::IsEmpty());
  ASSERT_FALSE(rules::shipped_evidence().files.empty());
  const rules::EvidenceFile& shipped = rules::shipped_evidence().files.front();
  EXPECT_EQ(experiment->evidence.probes.size(), shipped.probes.size());
  EXPECT_THAT(tools::differences(experiment->evidence, shipped), ::testing::IsEmpty());
  const auto again = rules::parse_evidence(tools::to_json(*experiment), "again.json");
  ASSERT_TRUE(again.has_value()) << again.error().message();
  EXPECT_THAT(tools::differences(*again, experiment->evidence), ::testing::IsEmpty());
}

}  // namespace

int probe_main(const char* name, int offset, int level) {
  const auto line = tools::run_probe({name, static_cast<uint32_t>(offset), level});
  if (!line) {
    std::printf("%s\n", line.error().message().c_str());
    return 2;
  }
  std::printf("%s", line->c_str());
  std::fflush(stdout);
  // The context may be destroyed: exit without releasing anything.
  ::_exit(0);
}

}  // namespace ptxkit::testing
