// What the terms of a thread say against what the emulator computes: random programs, whose registers the solver must
// take for the same numbers.
#include "analyzer/prove/thread.hpp"

#include <memory>
#include <random>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/flow/uniformity.hpp"
#include "analyzer/prove/solver.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "fkr_tests/unit/analyzer/flow/kernel.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::prove {
namespace {

constexpr uint32_t kThreads = 64, kEnoughSteps = 50'000'000;

// A kernel's registers %rd100 to %rd1xx, of each thread, as the emulator computes them.
std::vector<uint64_t> emulated(const flow::Kernel& kernel, unsigned count, uint32_t n) {
  emulator::Device device;
  auto program = emulator::Program::load(
      device, std::shared_ptr<const ptx::Module>(std::shared_ptr<void>(), &kernel.parsed.module));
  std::vector<uint64_t> out(kThreads * count);
  if (!program) {
    ADD_FAILURE() << program.error().message();
    return out;
  }
  const emulator::Address to = *device.allocate(out.size() * 8, "out");
  const std::vector<emulator::Argument> arguments{emulator::Argument::of(to), emulator::Argument::of(n)};
  const auto outcome = emulator::launch(*program, "k", {.block = {kThreads}}, arguments, {.max_steps = 1'000'000});
  EXPECT_TRUE(outcome && outcome->faults.empty()) << (outcome ? emulator::render(*outcome, "test.ptx") : "");
  (void)device.read(to, std::as_writable_bytes(std::span(out)));
  return out;
}

std::string stores(unsigned count) {
  std::string body = fmt::format(
      "ld.param.u64 %rd190, [p];\nmov.u32 %r190, %tid.x;\nmul.wide.u32 %rd191, %r190, {};\n"
      "add.u64 %rd190, %rd190, %rd191;\n",
      8 * count);
  for (unsigned i = 0; i < count; ++i) body += fmt::format("st.global.u64 [%rd190+{}], %rd{};\n", 8 * i, 100 + i);
  return body + "ret;";
}

// Asks whether any of the registers may differ from what the emulator has, in some of the threads.
void expect_same(const std::string& body, unsigned count, uint32_t n) {
  SCOPED_TRACE(body);
  const auto solver = Solver::open();
  ASSERT_TRUE(solver) << solver.error().message();
  flow::Kernel kernel(body + stores(count));
  ASSERT_TRUE(kernel.parsed.diagnostics.empty()) << kernel.parsed.diagnostics[0].message;
  const std::vector<uint64_t> results = emulated(kernel, count, n);
  const flow::UniformityAnalysis uniformity(kernel.domain, kernel.post_dominators);
  const std::vector<ptx::Access> accesses;
  const Kernel parts{kernel.dominators, kernel.post_dominators, kernel.forms, uniformity, accesses};
  for (const uint32_t thread : {0u, 1u, 29u, 63u}) {
    Query query(100'000);
    Threads threads(parts, query);
    const Moment at;
    Term differs = Query::truth(false);
    Rests rests = 0;
    const ptx::InstructionId last = static_cast<ptx::InstructionId>(kernel.function.instructions.size()) - 1;
    query.require(threads.reaches(last, at));
    for (unsigned i = 0; i < count; ++i) {
      // The value that is stored, which may be a phi.
      const ptx::Instruction& store = kernel.function.instructions[last - count + i];
      const Term term = threads.operand(store.first_operand + 1, 64, at);
      rests |= term.rests;
      differs = query.either(differs,
                             query.negation(query.test("=", term, Query::constant(results[thread * count + i], 64))));
    }
    EXPECT_EQ(rests & kOnUnknown, 0) << "thread " << thread;
    query.require(query.test("=", threads.special(ptx::SpecialRegister::tid, 0, at), Query::constant(thread, 32)));
    for (const auto& [symbol, name] : threads.parameters())
      query.require(query.test("=", query.symbol(symbol, 32, 0), Query::constant(n, 32)));
    EXPECT_EQ((*solver)->ask(query.text(), kEnoughSteps).kind, Reply::Kind::satisfiable) << "thread " << thread;
    query.require(differs);
    EXPECT_EQ((*solver)->ask(query.text(), kEnoughSteps).kind, Reply::Kind::unsatisfiable) << "thread " << thread;
  }
}

constexpr std::string_view kSources =
    "mov.u32 %r0, %tid.x;\nld.param.u32 %r1, [n];\nmul.lo.u32 %r2, %r0, 0x9e3779b1;\nxor.b32 %r3, %r2, %r1;\n"
    "mul.wide.u32 %rd0, %r2, %r3;\nmul.wide.s32 %rd1, %r3, %r1;\nmov.u64 %rd2, 0x123456789abcdef0;\n"
    "cvt.u64.u32 %rd3, %r0;\nand.b32 %r4, %r2, 63;\n"
    "setp.lt.u32 %p0, %r2, %r3;\nsetp.ge.s32 %p1, %r2, %r1;\nsetp.eq.u32 %p2, %r0, 3;\n";

class Programs {
 public:
  explicit Programs(uint32_t seed) : random_(seed) {}

  std::string next(unsigned lines) {
    std::string body(kSources);
    words_ = 5;
    longs_ = 4;
    for (unsigned i = 0; i < lines; ++i) body += line() + "\n";
    for (unsigned i = 0; i < 4; ++i)
      body += fmt::format("cvt.u64.u32 %rd{}, %r{};\nadd.u64 %rd{}, %rd{}, 0;\n", 100 + i, words_ - 1 - i, 104 + i,
                          longs_ - 1 - i);
    return body;
  }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  template <size_t N>
  std::string_view any(const std::string_view (&of)[N]) {
    return of[below(N)];
  }
  std::string word() { return below(6) == 0 ? fmt::format("{}", below(70)) : fmt::format("%r{}", below(words_)); }
  std::string long_word() { return fmt::format("%rd{}", below(longs_)); }
  std::string predicate() { return fmt::format("%p{}", below(3)); }
  std::string line() {
    const unsigned kind = below(24);
    const bool is_long = below(3) == 0;
    const auto a = [&] { return is_long ? long_word() : word(); };
    // A register, since two constants are no instruction.
    const auto first = [&] { return is_long ? long_word() : fmt::format("%r{}", below(words_)); };
    const unsigned bits = is_long ? 64 : 32;
    const std::string_view sign = below(2) ? "u" : "s";
    const std::string x = first(), y = a(), z = a();
    const std::string u = fmt::format("%r{}", below(words_)), v = fmt::format("%r{}", below(words_)),
                      w = fmt::format("%r{}", below(words_)), at = word(), length = word(), long_one = long_word(),
                      condition = predicate();
    const bool is_one = below(2) == 0;
    const auto to = [&] { return is_long ? fmt::format("%rd{}", longs_++) : fmt::format("%r{}", words_++); };
    const auto to_word = [&] { return fmt::format("%r{}", words_++); };
    const auto to_long = [&] { return fmt::format("%rd{}", longs_++); };
    const auto binary = [&](std::string_view op, std::string_view type) {
      return fmt::format("{}.{}{} {}, {}, {};", op, type, bits, to(), x, y);
    };
    switch (kind) {
      case 0:
        return binary("add", sign);
      case 1:
        return binary("sub", sign);
      case 2:
        return binary(is_one ? "mul.lo" : "mul.hi", sign);
      case 3:
        return binary(any({"and", "or", "xor"}), "b");
      case 4:
        return binary(is_one ? "min" : "max", sign);
      case 5: {
        // By 0 PTX leaves the result open.
        const std::string divisor = to();
        const std::string make = fmt::format("or.b{0} {1}, {2}, 5;\n", bits, divisor, x);
        return make + fmt::format("{}.u{} {}, {}, {};", is_one ? "div" : "rem", bits, to(), x, divisor);
      }
      case 6:
        return fmt::format("shl.b{} {}, {}, {};", bits, to(), x, at);
      case 7:
        return fmt::format("shr.{}{} {}, {}, {};", sign, bits, to(), x, is_one ? "%r4" : at);
      case 8:
        return fmt::format("not.b{} {}, {};", bits, to(), x);
      case 9:
        return fmt::format("{}.s{} {}, {};", is_one ? "neg" : "abs", bits, to(), x);
      case 10: {
        const std::string make =
            fmt::format("setp.{}.{}{} %p2, {}, {};\n", any({"eq", "ne", "lt", "le", "gt", "ge"}), sign, bits, x, y);
        return make + fmt::format("selp.b{} {}, {}, {}, %p2;", bits, to(), x, y);
      }
      case 11:
        return fmt::format("bfe.{}{} {}, {}, {}, {};", sign, bits, to(), x, at, length);
      case 12:
        return fmt::format("bfi.b{} {}, {}, {}, {}, {};", bits, to(), x, y, at, length);
      case 13:
        return fmt::format("mul.wide.{}32 {}, {}, {};", sign, to_long(), u, at);
      case 14:
        return fmt::format("mad.wide.{}32 {}, {}, {}, {};", sign, to_long(), u, at, long_one);
      case 15:
        return fmt::format("mad.{}.{}{} {}, {}, {}, {};", is_one ? "lo" : "hi", sign, bits, to(), x, y, z);
      case 16:
        return fmt::format("cvt.{0}64.{0}32 {1}, {2};", sign, to_long(), u);
      case 17:
        return fmt::format("cvt.u32.u64 {}, {};", to_word(), long_one);
      case 18:
        return fmt::format("cvt.{0}32.{0}{1} {2}, {3};", sign, is_one ? 8 : 16, to_word(), u);
      case 19:
        return fmt::format("mov.b64 {}, {{{}, {}}};", to_long(), u, v);
      case 20:
        return fmt::format("lop3.b32 {}, {}, {}, {}, {};", to_word(), u, v, w, below(256));
      case 21:
        return fmt::format("prmt.b32 {}, {}, {}, {};", to_word(), u, v, below(65536));
      case 22:
        return fmt::format("shf.{}.wrap.b32 {}, {}, {}, {};", is_one ? "l" : "r", to_word(), u, v, below(32));
      default:
        return fmt::format("@{}{} add.u32 %r3, %r3, {};\npopc.b{} {}, {};", is_one ? "!" : "", condition, at, bits,
                           to_word(), x);
    }
  }

  std::mt19937 random_;
  unsigned words_ = 0, longs_ = 0;
};

TEST(Threads, ComputeWhatTheEmulatorComputes) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    Programs programs(seed);
    expect_same(programs.next(12), 8, seed * 0x01234567u);
    if (testing::Test::HasFailure()) return;
  }
}

// A loop's value after its last turn, a join, and a guarded register.
TEST(Threads, TakeTheWayThatTheEmulatorTakes) {
  expect_same(
      "mov.u32 %r0, %tid.x;\nld.param.u32 %r1, [n];\nmov.u32 %r2, 0;\nsetp.lt.u32 %p0, %r0, 17;\n@%p0 bra left;\n"
      "add.u32 %r2, %r0, 100;\nsetp.lt.u32 %p1, %r0, 40;\n@%p1 add.u32 %r2, %r2, %r1;\nbra join;\nleft:\n"
      "shl.b32 %r2, %r0, 3;\njoin:\ncvt.u64.u32 %rd100, %r2;\n",
      1, 7);
  expect_same(
      "mov.u32 %r0, %tid.x;\nld.param.u32 %r1, [n];\nmov.u32 %r2, %r0;\nnext:\nadd.u32 %r2, %r2, 64;\n"
      "setp.lt.u32 %p0, %r2, %r1;\n@%p0 bra next;\ncvt.u64.u32 %rd100, %r2;\n",
      1, 1000);
  expect_same(
      "mov.u32 %r0, %tid.x;\nmov.u32 %r2, 0;\nnext:\nadd.u32 %r2, %r2, 4;\nsetp.ne.u32 %p0, %r2, 1024;\n"
      "@%p0 bra next;\ncvt.u64.u32 %rd100, %r2;\n",
      1, 1000);
  expect_same(
      "mov.u32 %r0, %tid.x;\nmov.u32 %r2, 256;\nnext:\nshr.u32 %r2, %r2, 1;\nsetp.gt.u32 %p0, %r2, %r0;\n"
      "@%p0 bra next;\ncvt.u64.u32 %rd100, %r2;\n",
      1, 1000);
}

}  // namespace
}  // namespace ptxkit::prove
