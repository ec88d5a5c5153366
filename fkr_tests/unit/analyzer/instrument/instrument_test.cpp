// Instrumented kernels keep their results, and their records state the path of each thread. The emulator runs them.
#include "analyzer/instrument/instrument.hpp"

#include <cstddef>
#include <span>
#include <stdexcept>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/instrument/crash.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::instrument {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char* const kHeader = ".version 7.0\n.target sm_70\n.address_size 64\n";

Instrumented instrumented(const std::string& text, const Options& options = {}) {
  const ptx::ParseResult parsed = ptx::parse(text, "test.ptx");
  EXPECT_TRUE(parsed.diagnostics.empty()) << ptx::render(parsed.module, parsed.diagnostics.front());
  auto done = instrument(parsed.module, options);
  EXPECT_TRUE(done) << done.error().message();
  if (!done) throw std::runtime_error("nothing to go on with");
  return std::move(*done);
}

// The result of running entry `kernel` with an output buffer, followed by the debug buffer.
struct Ran {
  std::vector<uint32_t> out;
  DebugBuffer buffer;
  emulator::Outcome outcome;
};
Ran run(const Instrumented& kernel, uint32_t threads, size_t out_count, uint64_t max_steps = 0) {
  emulator::Device device;
  auto program = emulator::Program::load_text(device, kernel.ptx, "test.ptx");
  EXPECT_TRUE(program) << program.error().message();
  const auto out = device.allocate(out_count * 4, "out").value();
  const auto marks = device.allocate(kernel.map.buffer_bytes(), "debug buffer").value();
  EXPECT_TRUE(device.fill(out, std::byte{0}, out_count * 4));
  EXPECT_TRUE(device.fill(marks, std::byte{0}, kernel.map.buffer_bytes()));
  const auto pointer = [&](uint64_t address) {
    return program->module().address_size == 64 ? emulator::Argument::of(address)
                                                : emulator::Argument::of(static_cast<uint32_t>(address));
  };
  const std::vector<emulator::Argument> arguments{pointer(out), pointer(marks)};
  emulator::LaunchShape shape;
  shape.block = {threads};
  emulator::LaunchOptions options;
  options.max_steps = max_steps;
  auto outcome = emulator::launch(*program, "kernel", shape, arguments, options);
  EXPECT_TRUE(outcome) << outcome.error().message();
  Ran ran{std::vector<uint32_t>(out_count), {}, std::move(*outcome)};
  EXPECT_TRUE(device.read(out, std::as_writable_bytes(std::span(ran.out))));
  std::vector<std::byte> bytes(kernel.map.buffer_bytes());
  EXPECT_TRUE(device.read(marks, bytes));
  auto buffer = read_debug_buffer(bytes, kernel.map, "marks.bin");
  EXPECT_TRUE(buffer) << buffer.error().message();
  ran.buffer = buffer.value_or(DebugBuffer{});
  return ran;
}

// The records of one thread by kind and line: "entry 7", "store 9" and so on.
std::vector<std::string> path_of(const Ran& ran, const MarkerMap& map, uint32_t thread) {
  std::vector<std::string> path;
  for (const Record& record : ran.buffer.records) {
    if (record.thread != thread) continue;
    const Marker& marker = *map.find(record.id);
    path.push_back(std::string(text(marker.kind)) + " " + std::to_string(marker.line));
  }
  return path;
}

// The kernel's first line is line 4 of the text.
const std::string kKernel = std::string(kHeader) + R"(.visible .entry kernel(.param .u64 out)
{
.reg .pred %p, %odd; .reg .b32 %t, %i; .reg .b64 %a, %o; .shared .align 4 .u32 s;
mov.u32 %t, %tid.x;
ld.param.u64 %a, [out];
mul.wide.u32 %o, %t, 4; add.u64 %a, %a, %o;
and.b32 %i, %t, 1; setp.ne.u32 %odd, %i, 0;
mov.u32 %i, 0;
again:
add.u32 %i, %i, 1;
@!%odd st.global.u32 [%a], %i;
setp.lt.u32 %p, %i, 2;
@%p bra again;
@!%odd st.shared.u32 [s], 7;
bar.sync 0;
ld.shared.u32 %i, [s];
@%odd st.global.u32 [%a], %i;
ret;
}
)";

TEST(Instrument, RecordsTheWayOfEachThreadAndChangesNothingElse) {
  const Instrumented kernel = instrumented(kKernel);
  const Ran ran = run(kernel, 2, 2);
  EXPECT_TRUE(ran.outcome.ok()) << emulator::render(ran.outcome, "test.ptx");
  EXPECT_THAT(ran.out, ElementsAre(2, 7));
  EXPECT_THAT(path_of(ran, kernel.map, 0), ElementsAre("entry 7", "loop 13", "store 14", "loop 13", "store 14",
                                                       "store 17", "barrier 18", "exit 21"));
  EXPECT_THAT(path_of(ran, kernel.map, 1),
              ElementsAre("entry 7", "loop 13", "loop 13", "barrier 18", "store 20", "exit 21"));
  const Crash crash = locate(kernel.map, ran.buffer);
  EXPECT_EQ(crash.thread_count, 2u);
  EXPECT_EQ(crash.ended_count, 2u);
  EXPECT_TRUE(crash.standing.empty());
}

TEST(Instrument, SaysWhatMayRunBeforeTheNextMarker) {
  const Instrumented kernel = instrumented(kKernel);
  const auto lines = [&](size_t index) { return kernel.map.markers[index].next_lines; };
  EXPECT_THAT(lines(0), ElementsAre(7, 8, 9, 10, 11));  // entry, up to the loop
  EXPECT_THAT(lines(1), ElementsAre(13, 15, 16));       // a thread may skip the guarded stores
  EXPECT_THAT(lines(2), ElementsAre(14, 15, 16));
  EXPECT_THAT(lines(4), ElementsAre(18, 19));
}

TEST(Instrument, KindsAreChosen) {
  Options options;
  options.kinds = parse_kinds("loads,barrier").value();
  const Instrumented kernel = instrumented(kKernel, options);
  EXPECT_THAT(path_of(run(kernel, 2, 2), kernel.map, 1), ElementsAre("entry 7", "barrier 18", "load 19"));
  EXPECT_EQ(parse_kinds("all").value(), kDefaultKinds | bit(MarkerKind::load));
  EXPECT_THAT(parse_kinds("stores,lops").error().message(), HasSubstr("unknown kind of marker 'lops'"));
  EXPECT_FALSE(parse_kinds(""));
}

TEST(Instrument, FollowsCallsIntoFunctions) {
  const Instrumented kernel = instrumented(std::string(kHeader) + R"(.visible .entry kernel(.param .u64 out);
.func (.reg .u32 r) twice(.reg .u32 x)
{
add.u32 r, x, x;
ret;
}
.visible .entry kernel(.param .u64 out)
{
.reg .b32 %t; .reg .b64 %a;
ld.param.u64 %a, [out];
mov.u32 %t, 21;
call (%t), twice, (%t);
st.global.u32 [%a], %t;
ret;
}
)");
  const Ran ran = run(kernel, 1, 1);
  EXPECT_TRUE(ran.outcome.ok()) << emulator::render(ran.outcome, "test.ptx");
  EXPECT_THAT(ran.out, ElementsAre(42));
  EXPECT_THAT(path_of(ran, kernel.map, 0), ElementsAre("entry 13", "entry 7", "call 15", "store 16", "exit 17"));
}

TEST(Instrument, TakesKernelsWithoutParametersAnd32Bits) {
  const Instrumented none = instrumented(std::string(kHeader) + ".entry a { ret; }\n.entry b() { ret; }\n");
  EXPECT_THAT(none.ptx, HasSubstr(".entry a(.param .u64 a_debug_buffer) {"));
  EXPECT_THAT(none.ptx, HasSubstr(".entry b(.param .u64 b_debug_buffer) {"));
  const Instrumented narrow = instrumented(R"(.version 7.0
.target sm_70
.address_size 32
.entry kernel(.param .u32 out) { .reg .b32 %a; ld.param.u32 %a, [out]; st.global.u32 [%a], 5; ret; }
)");
  const Ran ran = run(narrow, 3, 1);
  EXPECT_THAT(ran.out, ElementsAre(5));
  EXPECT_THAT(path_of(ran, narrow.map, 2), ElementsAre("entry 4", "store 4", "exit 4"));
}

TEST(Instrument, NamesDoNotClash) {
  const std::string text = std::string(kHeader) +
                           ".entry kernel() { .reg .b32 %ptxkit_mark_slot; mov.u32 "
                           "%ptxkit_mark_slot, 1; ret; }\n";
  EXPECT_THAT(instrumented(text).ptx, HasSubstr("%ptxkit_mark_xslot"));
}

TEST(Instrument, WhatCannotBeInstrumentedIsRefused) {
  const auto refusal = [](const std::string& text, uint32_t records = 64) {
    const ptx::ParseResult parsed = ptx::parse(text, "test.ptx");
    const auto done = instrument(parsed.module, {.kinds = kDefaultKinds, .records = records});
    return done ? "" : done.error().message();
  };
  EXPECT_THAT(refusal(std::string(kHeader) + ".func f() { ret; }\n"), HasSubstr("there is no kernel in it"));
  EXPECT_THAT(refusal(".version 1.4\n.target sm_10\n.entry k() { exit; }\n"), HasSubstr("markers need PTX 2.3"));
  EXPECT_THAT(refusal(kKernel, 48), HasSubstr("expected a power of two, found 48"));
}

TEST(Instrument, TheMapSurvivesJson) {
  const MarkerMap map = instrumented(kKernel).map;
  const auto again = parse_marker_map(to_json(map), "m.json");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(to_json(*again), to_json(map));
  for (const char* bad : {"", "{}", "[]", R"({"schema": "other"})"}) EXPECT_FALSE(parse_marker_map(bad, "m.json"));
  std::string json = to_json(map);
  json.replace(json.find("\"store\""), 7, "\"stare\"");
  EXPECT_THAT(parse_marker_map(json, "m.json").error().message(), HasSubstr("unknown kind 'stare'"));
  json = to_json(map);
  json.replace(json.find("\"id\": 1"), 7, "\"id\": 7");
  EXPECT_THAT(parse_marker_map(json, "m.json").error().message(), HasSubstr("field 'id': expected 1, 2, 3 and so on"));
  MarkerMap odd = map;
  odd.records = 48;
  EXPECT_THAT(parse_marker_map(to_json(odd), "m.json").error().message(),
              HasSubstr("'records': expected a power of two"));
}

// A kernel in which thread 1 loads a word from an odd address in its second iteration.
const std::string kDies = std::string(kHeader) + R"(.visible .entry kernel(.param .u64 out)
{
.reg .pred %p; .reg .b32 %t, %at, %v; .reg .b64 %a; .shared .align 16 .b8 s[64];
ld.param.u64 %a, [out];
mov.u32 %t, %tid.x;
mov.u32 %at, s;
again:
st.shared.u32 [s], %t;
ld.shared.u32 %v, [%at];
st.global.u32 [%a], %v;
mad.lo.u32 %at, %t, 2, %at;
setp.lt.u32 %p, %at, 32;
@%p bra again;
ret;
}
)";

TEST(Crash, ADeadKernelIsLocatedToTheLine) {
  const Instrumented kernel = instrumented(kDies);
  const Ran ran = run(kernel, 2, 1, 100'000);
  ASSERT_FALSE(ran.outcome.ok());
  const Crash crash = locate(kernel.map, ran.buffer);
  ASSERT_FALSE(crash.standing.empty());
  const ptx::ParseResult parsed = ptx::parse(kDies, "test.ptx");
  const auto found = suspects(parsed.module, crash, {.error = 716, .deadline = false});
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().rule, "F051");
  EXPECT_EQ(found.front().line, 12u) << found.front().message;
}

TEST(Crash, ASpinningKernelIsLocatedToItsLoopAndLostMarkersAreCounted) {
  const std::string text = std::string(kHeader) + R"(.visible .entry kernel(.param .u64 out)
{
.reg .pred %p; .reg .b32 %t, %v; .reg .b64 %a;
ld.param.u64 %a, [out];
mov.u32 %t, %tid.x;
setp.eq.u32 %p, %t, 0;
@%p ret;
again:
ld.volatile.global.u32 %v, [%a];
setp.eq.u32 %p, %v, 0;
@%p bra again;
ret;
}
)";
  const Instrumented kernel = instrumented(text, {.kinds = kDefaultKinds, .records = 16});
  const Ran ran = run(kernel, 3, 1, 5'000);
  EXPECT_GT(ran.buffer.lost_count, 100u);
  EXPECT_EQ(ran.buffer.records.size() + ran.buffer.unwritten_count, 16u);
  const Crash crash = locate(kernel.map, ran.buffer);
  ASSERT_EQ(crash.standing.size(), 1u);
  EXPECT_THAT(crash.standing[0].threads, ElementsAre(1, 2));
  ASSERT_NE(crash.standing[0].loop, nullptr);
  EXPECT_EQ(crash.standing[0].loop->line, 12u);
  const ptx::ParseResult parsed = ptx::parse(text, "test.ptx");
  for (const Ending& ending : {Ending{}, Ending{.error = {}, .deadline = true}}) {
    const auto found = suspects(parsed.module, crash, ending);
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.front().rule, "F063");
    EXPECT_EQ(found.front().line, 12u);
  }
}

TEST(Crash, ThreadsThatWaitForOnesThatLeftAreFoundAtTheirBarrier) {
  const std::string text = std::string(kHeader) + R"(.visible .entry kernel(.param .u64 out)
{
.reg .pred %p; .reg .b32 %t;
mov.u32 %t, %tid.x;
setp.ge.u32 %p, %t, 32;
@%p bra wait;
ret;
wait:
bar.sync 0, 64;
ret;
}
)";
  const Instrumented kernel = instrumented(text);
  const Ran ran = run(kernel, 64, 1);
  // Hardware may wait at such a barrier, whatever an emulator does: drop all later records.
  DebugBuffer buffer = ran.buffer;
  std::erase_if(buffer.records, [&](const Record& record) {
    return record.thread >= 32 && kernel.map.find(record.id)->kind == MarkerKind::exit;
  });
  const Crash crash = locate(kernel.map, buffer);
  EXPECT_TRUE(crash.is_waiting);
  const ptx::ParseResult parsed = ptx::parse(text, "test.ptx");
  const auto found = suspects(parsed.module, crash, {});
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().rule, "F037");
  EXPECT_EQ(found.front().line, 12u);
  EXPECT_THAT(found.front().message, HasSubstr("32 threads wait here, 32 have left"));
}

TEST(Crash, BuffersOfSomethingElseAreRefused) {
  const MarkerMap map = instrumented(kKernel, {.kinds = kDefaultKinds, .records = 2}).map;
  EXPECT_THAT(read_debug_buffer(std::vector<std::byte>(47), map, "b").error().message(),
              HasSubstr("a debug buffer of 2 records has 48 bytes, this has 47"));
  std::vector<std::byte> bytes(48);
  bytes[0] = std::byte{1};
  EXPECT_EQ(read_debug_buffer(bytes, map, "b").value().unwritten_count, 1u);
  bytes[16] = std::byte{99};
  EXPECT_THAT(read_debug_buffer(bytes, map, "b").error().message(), HasSubstr("record 0 has marker 99"));
}

}  // namespace
}  // namespace ptxkit::instrument
