// What the solver says of random kernels against what the emulator sees them do: no race where the rule survives, and
// the race of each finding with the value of the parameter that it names.
#include <charconv>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/prove/solver.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/run_rule.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::rules {
namespace {

constexpr uint32_t kWords = 1024;    // of either object
constexpr uint32_t kFewBytes = 512;  // of either object where single accesses are in question

// What a random kernel is to be right or wrong about.
enum class About : uint8_t { races, accesses };

class Programs {
 public:
  explicit Programs(uint32_t seed, About about = About::races) : random_(seed), about_(about) {}

  std::string next() {
    is_global_ = below(2);
    const bool is_flat = below(3);
    const bool has_blocks = is_global_ || about_ == About::accesses;
    grid_ = has_blocks ? 1 + below(3) : 1;
    block_[0] = is_flat ? 64 : 16;
    block_[1] = is_flat ? 1 : 4;
    body_ = fmt::format(
        ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n"
        ".reqntid {}, {}, 1\n{{\n.reg .pred %p<200>;\n.reg .b32 %r<900>;\n.reg .b64 %rd<200>;\n"
        ".shared .align 16 .b8 s[{}];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %tid.y;\nmov.u32 %r2, %ctaid.x;\n"
        "ld.param.u32 %r3, [n];\nmov.u32 %r4, s;\nld.param.u64 %rd0, [p];\nmad.lo.u32 %r5, %r1, {}, %r0;\n"
        "mad.lo.u32 %r6, %r2, 64, %r5;\nmov.u32 %r7, 0;\n",
        block_[0], block_[1], about_ == About::races ? 4 * kWords : kFewBytes, block_[0]);
    sources_ = {"%r0", "%r5", "%r5", "%r3"};
    if (has_blocks) sources_.insert(sources_.end(), {"%r6", "%r6", "%r2"});
    if (!is_flat) sources_.emplace_back("%r1");
    words_ = 10;
    statements(2 + below(3), 2, true);
    // What is loaded is used: each thread stores the sum to its own word.
    body_ += fmt::format(
        "mul.wide.u32 %rd1, %r6, 4;\nadd.u64 %rd1, %rd0, %rd1;\nst.global.u32 [%rd1+{}], %r7;\nret;\n}}\n", 4 * kWords);
    return body_;
  }

  bool is_global() const { return is_global_; }
  uint32_t grid() const { return grid_; }
  const uint32_t* block() const { return block_; }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  std::string fresh() { return fmt::format("%r{}", words_++); }
  std::string source() { return sources_[below(static_cast<unsigned>(sources_.size()))]; }

  std::string term() {
    std::string now = source();
    for (unsigned i = below(3); i > 0; --i) {
      const std::string to = fresh();
      const unsigned kind = below(9);
      const std::string other = below(2) ? source() : std::to_string(1 + below(7));
      const char* const ops[] = {"xor.b32", "add.u32", "and.b32", "or.b32", "sub.u32", "mul.lo.u32"};
      if (kind < 6)
        body_ += fmt::format("{} {}, {}, {};\n", ops[kind], to, now, other);
      else if (kind == 6)
        body_ += fmt::format("shl.b32 {}, {}, {};\n", to, now, 1 + below(3));
      else if (kind == 7)
        body_ += fmt::format("shr.u32 {}, {}, {};\n", to, now, 1 + below(5));
      else
        body_ += fmt::format("rem.u32 {}, {}, {};\n", to, now, 3 + below(62));
      now = to;
    }
    return now;
  }

  std::string test() {
    const std::string predicate = fmt::format("%p{}", predicates_++);
    const char* const comparisons[] = {"lt", "ge", "eq", "ne"};
    const std::string value = term();
    body_ += fmt::format("setp.{}.u32 {}, {}, {};\n", comparisons[below(4)], predicate, value,
                         below(3) ? std::to_string(below(40)) : source());
    return predicate;
  }

  void access() {
    const std::string index = term(), at = fresh();
    const unsigned masks[] = {63, 127, 255, 31, 1023};
    body_ += fmt::format("and.b32 {}, {}, {};\n", at, index, masks[below(5)]);
    // Of single accesses the scale may be too small, and is then a question of what the index is.
    const unsigned scale = about_ == About::races ? 2 : below(3);
    std::string guard;
    if (below(5) == 0) guard = fmt::format("@{}{} ", below(2) ? "!" : "", test());
    std::string place, space;
    if (is_global_) {
      const std::string wide = fmt::format("%rd{}", 1 + longs_++);
      body_ += fmt::format("mul.wide.u32 {0}, {1}, {2};\nadd.u64 {0}, %rd0, {0};\n", wide, at, 1u << scale);
      place = wide;
      space = "global";
    } else {
      const std::string byte = fresh();
      body_ += fmt::format("shl.b32 {0}, {1}, {2};\nadd.u32 {0}, %r4, {0};\n", byte, at, scale);
      place = byte;
      space = "shared";
    }
    if (below(2)) {
      body_ += fmt::format("{}st.{}.u32 [{}], {};\n", guard, space, place, below(4) ? "%r6" : "7");
    } else {
      const std::string to = fresh();
      body_ +=
          fmt::format("mov.u32 {2}, 0;\n{0}ld.{1}.u32 {2}, [{3}];\nadd.u32 %r7, %r7, {2};\n", guard, space, to, place);
    }
  }

  void statements(unsigned count, unsigned depth, bool is_together) {
    for (unsigned i = 0; i < count; ++i) statement(depth, is_together);
  }

  // `is_together`: all threads of the block are here.
  void statement(unsigned depth, bool is_together) {
    const unsigned kind = below(10), label = labels_++;
    if (kind < 4 || depth == 0) return access();
    if (kind < 6) {
      if (is_together) body_ += "bar.sync 0;\n";
      return;
    }
    const size_t sources = sources_.size();
    if (kind < 8) {
      const bool is_uniform = below(2);
      std::string predicate;
      if (is_uniform) {
        predicate = fmt::format("%p{}", predicates_++);
        body_ += fmt::format("setp.{}.u32 {}, %r3, {};\n", below(2) ? "lt" : "eq", predicate, 1 + below(6));
      } else {
        predicate = test();
      }
      const bool has_else = below(2);
      body_ += fmt::format("@!{} bra E{};\n", predicate, label);
      statements(1 + below(2), depth - 1, is_together && is_uniform);
      sources_.resize(sources);
      if (has_else) body_ += fmt::format("bra J{};\n", label);
      body_ += fmt::format("E{}:\n", label);
      if (has_else) {
        statements(1 + below(2), depth - 1, is_together && is_uniform);
        sources_.resize(sources);
        body_ += fmt::format("J{}:\n", label);
      }
      return;
    }
    // A loop: to a constant, a parameter's bits or a thread's.
    const std::string counter = fresh(), bound = fresh(), predicate = fmt::format("%p{}", predicates_++);
    const unsigned of = below(3), step = 1 + below(3);
    if (of == 0)
      body_ += fmt::format("mov.u32 {}, {};\n", bound, step * (1 + below(4)));
    else
      body_ +=
          fmt::format("and.b32 {0}, {1}, 3;\nmad.lo.u32 {0}, {0}, {2}, {2};\n", bound, of == 1 ? "%r3" : "%r0", step);
    body_ += fmt::format("mov.u32 {}, 0;\nL{}:\n", counter, label);
    sources_.insert(sources_.end(), {counter, counter});
    statements(1 + below(3), depth - 1, is_together && of != 2);
    sources_.resize(sources);
    body_ += fmt::format("add.u32 {0}, {0}, {1};\nsetp.{2}.u32 {3}, {0}, {4};\n@{3} bra L{5};\n", counter, step,
                         below(2) ? "ne" : "lt", predicate, bound, label);
  }

  std::mt19937 random_;
  About about_;
  bool is_global_ = false;
  uint32_t grid_ = 1, block_[3] = {64, 1, 1};
  std::string body_;
  std::vector<std::string> sources_;
  unsigned words_ = 0, longs_ = 1, predicates_ = 0, labels_ = 0;
};

// Whether the emulator sees a race under any of four schedules. A schedule may hide one: a store of the value that is
// there already is no race with an effect.
bool races(const ptx::Module& module, const Programs& programs, uint32_t n) {
  emulator::Device device;
  auto program = emulator::Program::load(device, std::shared_ptr<const ptx::Module>(std::shared_ptr<void>(), &module));
  EXPECT_TRUE(program) << program.error().message();
  const emulator::Address p = *device.allocate(8 * kWords, "p");
  const std::vector<emulator::Argument> arguments{emulator::Argument::of(p), emulator::Argument::of(n)};
  for (const uint64_t seed : {0, 1, 2, 3}) {
    EXPECT_TRUE(device.fill(p, std::byte{0}, 8 * kWords));
    const auto outcome = emulator::launch(
        *program, "k", {.grid = {programs.grid()}, .block = {programs.block()[0], programs.block()[1]}}, arguments,
        {.checks = emulator::kCheckRaces, .schedule_seed = seed, .adversarial = seed != 0, .max_steps = 1'000'000});
    EXPECT_TRUE(outcome) << outcome.error().message();
    for (const emulator::Fault& fault : outcome->faults) EXPECT_THAT(name(fault.kind), ::testing::HasSubstr("race"));
    if (!outcome->faults.empty()) return true;
  }
  return false;
}

using Kinds = std::set<emulator::FaultKind>;

// The lines of faults of these kinds.
std::set<uint32_t> faults(const ptx::Module& module, const Programs& programs, uint32_t n, const Kinds& kinds,
                          uint32_t checks) {
  emulator::Device device;
  auto program = emulator::Program::load(device, std::shared_ptr<const ptx::Module>(std::shared_ptr<void>(), &module));
  EXPECT_TRUE(program) << program.error().message();
  // The sums lie behind the words in question, and belong to no such question.
  const emulator::Address p = *device.allocate(8 * kWords, "p");
  EXPECT_TRUE(device.fill(p, std::byte{0}, 8 * kWords));
  const auto outcome = emulator::launch(
      *program, "k", {.grid = {programs.grid()}, .block = {programs.block()[0], programs.block()[1]}},
      std::vector{emulator::Argument::of(p), emulator::Argument::of(n)}, {.checks = checks, .max_steps = 1'000'000});
  EXPECT_TRUE(outcome) << outcome.error().message();
  std::set<uint32_t> lines;
  for (const emulator::Fault& fault : outcome->faults)
    if (kinds.contains(fault.kind)) lines.insert(fault.site.line);
  return lines;
}

std::optional<uint32_t> parameter_of(const Finding& finding) {
  constexpr std::string_view kBegin = "parameter 'n' is ";
  for (const std::string& each : finding.assumptions)
    if (each.starts_with(kBegin)) {
      uint32_t n = 0;
      std::from_chars(each.data() + kBegin.size(), each.data() + each.size(), n);
      return n;
    }
  return std::nullopt;
}

constexpr uint32_t kParameters[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 31, 32, 33, 63, 64, 65, 100, 1024, 0xffffffff};

TEST(Prove, AgreesWithTheEmulator) {
  const auto solver = prove::Solver::open();
  ASSERT_TRUE(solver) << solver.error().message();
  size_t proved = 0, refuted = 0;
  for (uint32_t seed = 1; seed <= 120; ++seed) {
    Programs programs(seed);
    const std::string text = programs.next();
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const ptx::ParseResult parsed = ptx::parse(text, "test.ptx");
    ASSERT_TRUE(parsed.diagnostics.empty()) << ptx::render(parsed.module, parsed.diagnostics[0]);
    LaunchSet launch;
    for (unsigned d = 0; d < 3; ++d) {
      launch["k"].block[d] = programs.block()[d];
      launch["k"].grid[d] = d == 0 ? programs.grid() : 1;
    }
    Options options;
    options.launch = &launch;
    const std::string_view rule = programs.is_global() ? "F102" : "F036";
    Context before(parsed.module, 0, parsed.diagnostics, options);
    if (run_rule(rule, before).verdict != Verdict::undecided) continue;
    options.solver = solver->get();
    Context context(parsed.module, 0, parsed.diagnostics, options);
    const RuleResult result = run_rule(rule, context);
    SCOPED_TRACE(result.basis);
    if (result.verdict == Verdict::survived) {
      ++proved;
      for (const uint32_t n : kParameters) EXPECT_FALSE(races(parsed.module, programs, n)) << "n " << n;
    }
    for (const Finding& finding : result.findings) {
      ++refuted;
      SCOPED_TRACE(finding.message);
      EXPECT_TRUE(races(parsed.module, programs, parameter_of(finding).value_or(3)));
      EXPECT_EQ(finding.severity, finding.assumptions.empty() ? Severity::high : Severity::medium);
    }
  }
  EXPECT_GE(proved, 5u);
  EXPECT_GE(refuted, 10u);
}

size_t proved_by_solver(const RuleResult& result) {
  constexpr std::string_view kBegin = "; Z3 proved ";
  const size_t at = result.basis.find(kBegin);
  return at == result.basis.npos ? 0 : std::stoul(result.basis.substr(at + kBegin.size()));
}

// F051 and, of shared memory, F054.
TEST(Prove, AgreesWithTheEmulatorOnSingleAccesses) {
  const auto solver = prove::Solver::open();
  ASSERT_TRUE(solver) << solver.error().message();
  struct Question {
    std::string_view rule;
    Kinds kinds;
    uint32_t checks;
    size_t proved = 0, refuted = 0;
  };
  Question questions[] = {{"F051", {emulator::FaultKind::misaligned}, emulator::kCheckAlignment},
                          {"F054", {emulator::FaultKind::out_of_bounds}, emulator::kCheckBounds}};
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    Programs programs(seed, About::accesses);
    const std::string text = programs.next();
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const ptx::ParseResult parsed = ptx::parse(text, "test.ptx");
    ASSERT_TRUE(parsed.diagnostics.empty()) << ptx::render(parsed.module, parsed.diagnostics[0]);
    LaunchSet launch;
    for (unsigned d = 0; d < 3; ++d) {
      launch["k"].block[d] = programs.block()[d];
      launch["k"].grid[d] = d == 0 ? programs.grid() : 1;
    }
    for (Question& question : questions) {
      if (question.rule == "F054" && programs.is_global()) continue;
      Options options;
      options.launch = &launch;
      Context before(parsed.module, 0, parsed.diagnostics, options);
      std::set<ptx::Offset> known;
      for (const Finding& finding : run_rule(question.rule, before).findings) known.insert(finding.at);
      const bool is_open = question.rule == "F054" || !known.empty();
      options.solver = solver->get();
      Context context(parsed.module, 0, parsed.diagnostics, options);
      const RuleResult result = run_rule(question.rule, context);
      SCOPED_TRACE(result.basis);
      std::set<uint32_t> open_lines;
      for (const Finding& finding : result.findings) open_lines.insert(parsed.module.position(finding.at).line);
      const bool all_inside =
          question.rule == "F051" || std::regex_search(result.basis, std::regex("(\\d+) access(es)?: \\1 proved"));
      if (is_open && proved_by_solver(result) > 0 && all_inside) {
        question.proved += proved_by_solver(result);
        for (const uint32_t n : kParameters)
          for (const uint32_t line : faults(parsed.module, programs, n, question.kinds, question.checks))
            EXPECT_TRUE(open_lines.contains(line)) << "n " << n << ", line " << line;
      }
      for (const Finding& finding : result.findings) {
        if (finding.tier != Tier::proved || finding.message.find(" of block (") == finding.message.npos) continue;
        SCOPED_TRACE(finding.message);
        const auto lines = faults(parsed.module, programs, 3, question.kinds, question.checks);
        EXPECT_FALSE(lines.empty()) << "a fault stops the block, so that another may hide it";
        question.refuted += lines.contains(parsed.module.position(finding.at).line);
      }
    }
  }
  for (const Question& question : questions) {
    EXPECT_GE(question.proved, 5u) << question.rule;
    EXPECT_GE(question.refuted, 1u) << question.rule;  // most such threads are found without a solver
  }
}

}  // namespace
}  // namespace ptxkit::rules
