// Instrumented kernels on a GPU. One fails with error 716, one is still running at its deadline. The debug buffer in
// mapped host memory alone locates each to its source line. Each kernel has a process of its own, because the failure
// of the first destroys its context; the second ends by itself.
#include "analyzer/instrument/crash.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "analyzer/instrument/instrument.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "fkr_tests/device/crash.hpp"
#include "fkr_tests/device/device.hpp"
#include "tools/ptx-debug/argument_spec.hpp"
#include "tools/ptx-debug/kernel_run.hpp"

namespace ptxkit::testing {
namespace {

constexpr uint32_t kRecords = 1024;

// One lane walks a page in steps of 3 bytes and reads words: error 716 in its second iteration, in line 17.
constexpr const char* kMisaligned = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry kernel(.param .u64 out, .param .u32 limit)
{
    .reg .pred %p; .reg .b32 %t, %at, %value, %limit, %sum; .reg .b64 %out; .shared .align 16 .b8 page[256];
    ld.param.u64 %out, [out];
    ld.param.u32 %limit, [limit];
    mov.u32 %t, %tid.x;
    mov.u32 %at, page; add.u32 %limit, %limit, %at;
    st.shared.u32 [page], %t;
    bar.sync 0;
    setp.ne.u32 %p, %t, 0;
    @%p bra finish;
    mov.u32 %sum, 0;
next:
    ld.shared.u32 %value, [%at];
    add.u32 %sum, %sum, %value;
    add.u32 %at, %at, 3;
    setp.lt.u32 %p, %at, %limit;
    @%p bra next;
    st.global.u32 [%out], %sum;
finish:
    ret;
}
)";

// Every thread spins in the loop of line 11 for `limit` iterations, far beyond the deadline.
constexpr const char* kSpinning = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry kernel(.param .u64 out, .param .u32 limit)
{
    .reg .pred %p; .reg .b32 %turn, %value, %limit; .reg .b64 %out;
    ld.param.u64 %out, [out];
    ld.param.u32 %limit, [limit];
    mov.u32 %turn, 0;
again:
    ld.volatile.global.u32 %value, [%out];
    add.u32 %turn, %turn, 1;
    setp.lt.u32 %p, %turn, %limit;
    @%p bra again;
    ret;
}
)";

// The report of a child: the status, whether the kernel was still running, and the debug buffer.
struct Died {
  int status = -1;
  bool timed_out = false;
  std::vector<std::byte> buffer;
};

tools::KernelRun launch_of(const instrument::Instrumented& kernel, uint32_t limit) {
  tools::KernelRun run;
  run.file = "kernel.ptx";
  run.ptx = kernel.ptx;
  run.entry.name = "kernel";
  run.entry.parameters = {{"out", 0, 8, 8}, {"limit", 8, 4, 4}, {"debug_buffer", 16, 8, 8}};
  run.shape.block = {32};
  tools::ArgumentSpec out, number, marks;
  out.is_buffer = marks.is_buffer = marks.mapped = true;
  out.bytes.resize(256);
  number.bytes.resize(4);
  std::memcpy(number.bytes.data(), &limit, 4);
  marks.bytes.resize(kernel.map.buffer_bytes());
  run.arguments = {out, number, marks};
  return run;
}

struct Case {
  const char* text;
  uint32_t limit;
  double deadline_seconds;
};
// A million iterations of 32 threads, each with a marker in host memory, take seconds. Then the kernel ends.
constexpr Case kCases[] = {{kMisaligned, 200, 10}, {kSpinning, 1'000'000, 0.25}};

instrument::Instrumented instrumented(const ptx::Module& module) {
  instrument::Options options;
  options.records = kRecords;
  return instrument::instrument(module, options).value();
}

Died run_in_child(int number) {
  char self[4096];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self - 1);
  Died died;
  if (length <= 0) return died;
  const std::string command =
      fmt::format("'{}' --crash {}", std::string_view(self, static_cast<size_t>(length)), number);
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return died;
  int head[2] = {-1, 0};
  if (std::fread(head, sizeof head, 1, pipe) == 1) {
    died.status = head[0];
    died.timed_out = head[1] != 0;
  }
  std::byte chunk[4096];
  for (size_t count = 0; (count = std::fread(chunk, 1, sizeof chunk, pipe)) > 0;)
    died.buffer.insert(died.buffer.end(), chunk, chunk + count);
  ::pclose(pipe);
  return died;
}

struct Located {
  instrument::Crash crash;
  std::vector<instrument::Suspect> suspects;
};

class DeviceCrash : public ::testing::Test {
 protected:
  void SetUp() override { PTXKIT_REQUIRE_DEVICE(); }

  // Runs case `number` and locates its end. The result is valid as long as this object.
  Located locate(int number) {
    parsed_ = ptx::parse(kCases[number].text, "kernel.ptx");
    kernel_ = instrumented(parsed_.module);
    died_ = run_in_child(number);
    const auto buffer = instrument::read_debug_buffer(died_.buffer, kernel_.map, "debug buffer");
    EXPECT_TRUE(buffer) << buffer.error().message();
    if (!buffer) return {};
    Located located{instrument::locate(kernel_.map, *buffer), {}};
    instrument::Ending ending;
    ending.deadline = died_.timed_out;
    if (!died_.timed_out) ending.error = died_.status;
    located.suspects = instrument::suspects(parsed_.module, located.crash, ending);
    return located;
  }

  Died died_;

 private:
  ptx::ParseResult parsed_;
  instrument::Instrumented kernel_;
};

TEST_F(DeviceCrash, AMisalignedAccessIsLocatedToItsLine) {
  const Located located = locate(0);
  EXPECT_EQ(died_.status, 716);
  ASSERT_FALSE(located.crash.standing.empty());
  ASSERT_FALSE(located.suspects.empty());
  EXPECT_EQ(located.suspects.front().rule, "F051");
  EXPECT_EQ(located.suspects.front().line, 17u) << located.suspects.front().message;
}

TEST_F(DeviceCrash, AKernelPastItsDeadlineIsLocatedToItsLoop) {
  const Located located = locate(1);
  EXPECT_TRUE(died_.timed_out) << "status " << died_.status;
  ASSERT_FALSE(located.suspects.empty());
  EXPECT_EQ(located.suspects.front().rule, "F063");
  EXPECT_EQ(located.suspects.front().line, 11u) << located.suspects.front().message;
}

}  // namespace

int crash_main(int number) {
  const ptx::ParseResult parsed = ptx::parse(kCases[number].text, "kernel.ptx");
  const std::atomic<bool> stop = false;
  const auto outcome = tools::run_on_gpu(launch_of(instrumented(parsed.module), kCases[number].limit),
                                         kCases[number].deadline_seconds, stop);
  if (!outcome) {
    std::fprintf(stderr, "%s\n", outcome.error().message().c_str());
    return 2;
  }
  const int head[2] = {outcome->status, outcome->timed_out};
  std::fwrite(head, sizeof head, 1, stdout);
  const auto& buffer = outcome->buffers[2];
  if (buffer) std::fwrite(buffer->data(), 1, buffer->size(), stdout);
  std::fflush(stdout);
  // The context may be destroyed or busy: exit without releasing anything.
  ::_exit(0);
}

}  // namespace ptxkit::testing
