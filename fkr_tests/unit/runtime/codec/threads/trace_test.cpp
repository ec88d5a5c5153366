// The time line: what spans become of it, and sums over it.
#include "runtime/codec/threads/trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::scheduler {
namespace {

using ::testing::HasSubstr;

TEST(Trace, LinesAreOfProcessesAndNames) {
  Trace trace;
  const auto up = trace.line("gpu \"0\"", "copies up");
  EXPECT_EQ(trace.line("gpu \"0\"", "copies up"), up);
  EXPECT_NE(trace.line("gpu 1", "copies up"), up);
  trace.name_thread("reader");
  trace.add_here(kReadSpan, trace.now(), 3);
  trace.add({up, kCopyUpSpan, 0.001, 0.0025});
  const std::string json = trace.json();
  EXPECT_THAT(json, HasSubstr("\"name\": \"gpu \\\"0\\\"\""));
  EXPECT_THAT(json, HasSubstr("\"ts\": 1000.000, \"dur\": 1500.000"));
  EXPECT_THAT(json, HasSubstr("\"args\": {\"batch\": 3}"));
  EXPECT_EQ(trace.lines()[trace.spans()[0].line].name, "reader");
}

TEST(Trace, UtilisationIsOfTheTimeAndOverlapsCountOnce) {
  Trace trace;
  const auto kernels = trace.line("gpu", "kernels, queue 0"), more = trace.line("gpu", "kernels, queue 1");
  const auto up = trace.line("gpu", "copies up"), one = trace.line(kHostProcess, "pool 0");
  (void)trace.line(kHostProcess, "pool 1");  // never works
  trace.add({kernels, kKernelsSpan, 1, 3});
  trace.add({more, kKernelsSpan, 2, 4});
  trace.add({kernels, kKernelsSpan, 7, 9});
  trace.add({kernels, kKernelsSpan, 11, 50});  // after it
  trace.add({up, kCopyUpSpan, 0, 1});
  trace.add({one, kLoopSpan, 5, 10});
  const Utilisation of = utilisation(trace, 0, 10);
  ASSERT_EQ(of.rows.size(), 3u);
  EXPECT_EQ(of.rows[0].what, "copy up of gpu");
  EXPECT_DOUBLE_EQ(of.rows[0].share, 0.1);
  EXPECT_EQ(of.rows[1].what, "kernels of gpu");
  EXPECT_DOUBLE_EQ(of.rows[1].share, 0.5);
  EXPECT_EQ(of.rows[2].what, "2 threads of the pool");
  EXPECT_DOUBLE_EQ(of.rows[2].share, 0.25);
  EXPECT_DOUBLE_EQ(of.gap_begin, 4);
  EXPECT_DOUBLE_EQ(of.gap_seconds, 3);
}

TEST(Trace, APoolNotesWhenItsThreadsWork) {
  Trace trace;
  codec::Executor executor(3, {.trace = &trace, .name = "pool"});
  const double begin = trace.now();
  executor.for_each(30, [](size_t, unsigned) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
  const double end = trace.now();
  ASSERT_GE(trace.spans().size(), 1u);
  for (const Trace::Span& span : trace.spans()) {
    EXPECT_STREQ(span.name, kLoopSpan);
    EXPECT_GE(span.begin, begin);
    EXPECT_LE(span.end, end);
    EXPECT_THAT(trace.lines()[span.line].name, ::testing::StartsWith("pool "));
  }
  const Utilisation of = utilisation(trace, begin, end);
  ASSERT_EQ(of.rows.size(), 1u);
  EXPECT_EQ(of.rows[0].what, "3 threads of the pool");
  EXPECT_GT(of.rows[0].share, 0.3);
}

}  // namespace
}  // namespace ptxkit::scheduler
