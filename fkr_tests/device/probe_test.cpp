// The probes on this GPU give what the shipped evidence says: 716 where an access is misaligned, success where all are
// aligned or the misaligned load is dead code.
#include "fkr_tests/device/probe.hpp"

#include <cstdio>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "analyzer/evidence/evidence.hpp"
#include "fkr_tests/device/device.hpp"
#include "kernels/probes/probes.hpp"

namespace ptxkit::testing {
namespace {

constexpr std::size_t kBufferBytes = 1024;

Result<int> run_probe(const char* name, int offset, int level) {
  using driver::LaunchArgument;
  using kernels::ParameterType;
  if (!device()) return fail(device().error());
  const driver::ContextPointer context = *device();
  const driver::LaunchContract contract{name,
                                        32,
                                        {{"out", ParameterType::pointer, 256},
                                         {"scratch", ParameterType::pointer, 256},
                                         {"offset", ParameterType::u32, 0}}};
  const std::string ptx = kernels::probe_ptx(name, kernels::ProbeOffset::parameter);
  auto kernel = driver::Kernel::load_unverified(context, ptx, contract, level);
  if (!kernel) return tl::unexpected(kernel.error());
  auto stream = driver::Stream::create(context);
  if (!stream) return tl::unexpected(stream.error());
  auto out = driver::DeviceMemory::allocate(context, kBufferBytes);
  auto scratch = driver::DeviceMemory::allocate(context, kBufferBytes);
  if (!out || !scratch) return fail("no memory for the probe");
  for (const auto* memory : {&*out, &*scratch}) {
    if (auto filled = memory->fill(0, *stream); !filled) return tl::unexpected(filled.error());
  }
  const LaunchArgument arguments[] = {LaunchArgument::of(out->as<std::uint8_t>()),
                                      LaunchArgument::of(scratch->as<std::uint8_t>()),
                                      LaunchArgument::of(static_cast<std::uint32_t>(offset))};
  if (auto launched = kernel->launch(*stream, 1, 32, arguments); !launched) return tl::unexpected(launched.error());
  return context->api().stream_synchronize(stream->handle());
}

// The status that a process of its own reports.
Result<int> probe_in_child(const std::string& name, std::uint32_t offset, int level) {
  char self[4096];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) return fail("cannot find this program");
  const std::string command = fmt::format(
      "'{}' --probe {} {} {}", std::string_view(self, static_cast<std::size_t>(length)), name, offset, level);
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return fail("cannot start " + command);
  int status = -1;
  char line[512];
  std::string output;
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    output += line;
    std::sscanf(line, "status %d", &status);
  }
  if (::pclose(pipe) != 0 || status < 0) return fail("the probe did not run: " + output);
  return status;
}

TEST(Probes, GiveWhatTheEvidenceSays) {
  PTXKIT_REQUIRE_DEVICE();
  ASSERT_FALSE(rules::shipped_evidence().files.empty());
  const rules::EvidenceFile& evidence = rules::shipped_evidence().files.front();
  ASSERT_EQ(evidence.probes.size(), kernels::probe_names().size());
  for (const rules::ProbeResult& expected : evidence.probes) {
    for (std::size_t i = 0; i < evidence.offsets_bytes.size(); ++i) {
      for (const int level : {0, 4}) {
        const auto status = probe_in_child(expected.probe, evidence.offsets_bytes[i], level);
        ASSERT_TRUE(status.has_value()) << status.error().message();
        EXPECT_EQ(*status, static_cast<int>(expected.status[i]))
            << expected.probe << " + " << evidence.offsets_bytes[i] << " at level " << level << ": "
            << driver::explain(*status).name;
      }
    }
  }
}

}  // namespace

int probe_main(const char* name, int offset, int level) {
  const auto status = run_probe(name, offset, level);
  if (!status) {
    std::printf("%s\n", status.error().message().c_str());
    return 2;
  }
  std::printf("status %d\n", *status);
  std::fflush(stdout);
  // The context may be dead: leave without giving anything back to it.
  ::_exit(0);
}

}  // namespace ptxkit::testing
