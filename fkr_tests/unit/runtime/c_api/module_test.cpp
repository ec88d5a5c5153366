// The analyzer and the emulator through libptxkit.so.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "fkr_tests/unit/runtime/c_api/c_api.hpp"

namespace ptxkit::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// out[i] = 2 * in[i] for i < count, one element a thread.
constexpr const char* kTwice = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry twice(.param .u64 in, .param .u64 out, .param .u32 count)
{
    .reg .pred %p; .reg .b32 %i, %n, %v; .reg .b64 %a, %b, %o;
    mov.u32 %i, %tid.x;
    ld.param.u32 %n, [count];
    setp.ge.u32 %p, %i, %n;
    @%p ret;
    ld.param.u64 %a, [in];
    ld.param.u64 %b, [out];
    cvta.to.global.u64 %a, %a;
    cvta.to.global.u64 %b, %b;
    mul.wide.u32 %o, %i, 4;
    add.u64 %a, %a, %o;
    add.u64 %b, %b, %o;
    ld.global.u32 %v, [%a];
    add.u32 %v, %v, %v;
    st.global.u32 [%b], %v;
    ret;
}
)";
// A word at byte 1 of shared memory.
constexpr const char* kMisaligned = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry bad(.param .u64 out)
{
    .reg .b32 %v; .reg .b64 %b; .shared .align 4 .b8 page[16];
    mov.u32 %v, 7;
    st.shared.u32 [page+1], %v;
    ret;
}
)";

ptxkit_status analyze(const char* text, const char* options, Text& report, int* code = nullptr) {
  return ptxkit_analyze(text, std::strlen(text), options, report, code);
}

TEST(Analyze, JudgesATextAsTheProgramDoes) {
  Text good, bad, sarif, text;
  int code = -1;
  ASSERT_OK(analyze(kTwice, nullptr, good, &code));
  EXPECT_EQ(code, 0) << good.str();
  EXPECT_THAT(good.str(), HasSubstr("\"schema\""));
  ASSERT_OK(analyze(kMisaligned, R"({"name": "bad.ptx", "falsify": true})", bad, &code));
  EXPECT_EQ(code, 3);
  EXPECT_THAT(bad.str(), HasSubstr("F051"));
  EXPECT_THAT(bad.str(), HasSubstr("bad.ptx"));
  ASSERT_OK(analyze(kMisaligned, R"({"format": "sarif"})", sarif));
  EXPECT_THAT(sarif.str(), HasSubstr("sarif-2.1.0"));
  ASSERT_OK(analyze(kMisaligned, R"({"format": "text", "verbose": true})", text));
  EXPECT_THAT(text.str(), HasSubstr("input.ptx"));
}

TEST(Analyze, OptionsHaveTheirEffect) {
  const auto run = [](const char* options) {
    Text report;
    int code = -1;
    EXPECT_OK(analyze(kMisaligned, options, report, &code)) << options;
    return std::pair(code, report.str());
  };
  EXPECT_THAT(run(R"({"select": ["F051"]})").second, Not(HasSubstr("\"F036\"")));
  EXPECT_EQ(run(R"({"ignore": ["F051", "F021", "F082", "F081"]})").first, 0);
  EXPECT_THAT(run(R"({"check": ["barriers"]})").second, Not(HasSubstr("\"rule\": \"F051\"")));
  EXPECT_EQ(run(R"({"fail_on": "none"})").first, 0);
  EXPECT_EQ(run(R"({"fail_on": "none", "min_score": 100})").first, 2);
  EXPECT_EQ(run(R"({"kernels": ["bad"]})").first, 3);
  EXPECT_EQ(run(R"({"profile": "pattern", "release": true, "assume_align": 16})").first, 3);
  Text report;
  int code = 0;
  ASSERT_OK(ptxkit_analyze("no PTX", 6, nullptr, report, &code));
  EXPECT_EQ(code, 10);
  Text empty;
  ASSERT_OK(ptxkit_analyze(nullptr, 0, nullptr, empty, &code));
  EXPECT_EQ(code, 10);
}

TEST(Analyze, RefusesWrongOptions) {
  const auto refused = [](const char* options, const char* words) {
    Text report;
    EXPECT_EQ(analyze(kTwice, options, report), PTXKIT_INVALID_VALUE) << options;
    EXPECT_THAT(ptxkit_last_error(), HasSubstr(words)) << options;
    EXPECT_EQ(report.str(), "");
  };
  refused("{", "not JSON");
  refused("[]", "expected an object");
  refused(R"({"falsfy": true})", "did you mean 'falsify'");
  refused(R"({"falsify": 1})", "expected true or false");
  refused(R"({"name": 1})", "expected a string");
  refused(R"({"select": "F051"})", "expected an array of strings");
  refused(R"({"select": [1]})", "expected an array of strings");
  refused(R"({"select": ["F999"]})", "unknown rule 'F999'");
  refused(R"({"check": ["everything"]})", "unknown check");
  refused(R"({"kernels": ["thrice"]})", "has none of these");
  refused(R"({"format": "pdf"})", "json, sarif or text");
  refused(R"({"profile": "x"})", "root-cause or pattern");
  refused(R"({"assume_align": 3})", "a power of two");
  refused(R"({"assume_align": -3})", "whole number");
  refused(R"({"min_score": 101})", "from 0 to 100");
  refused(R"({"fail_on": "often"})", "fail_on");
  refused(R"({"launch": 1})", "expected an object");
  refused(R"({"launch": {"entries": []}})", "launch");
  refused((std::string(100, '[') + std::string(100, ']')).c_str(), "nested deeper");
  Text report;
  EXPECT_EQ(ptxkit_analyze(nullptr, 5, nullptr, report, nullptr), PTXKIT_INVALID_VALUE);
  EXPECT_EQ(ptxkit_analyze(kTwice, 5, nullptr, nullptr, nullptr), PTXKIT_INVALID_VALUE);
}

class Modules : public ::testing::TestWithParam<const char*> {
 protected:
  Modules() : options_(GetParam()) {}
  ~Modules() override {
    ptxkit_string_free(report_);
    ptxkit_module_destroy(module_);
  }
  void load(const char* text) { ASSERT_OK(ptxkit_module_load(text, std::strlen(text), options_, &module_)); }
  ptxkit_status launch(const char* entry, uint32_t threads, std::vector<ptxkit_argument> arguments) {
    ptxkit_launch_shape shape{};
    shape.block[0] = threads;
    ptxkit_string_free(report_);
    report_ = nullptr;
    return ptxkit_launch(module_, entry, &shape, arguments.data(), arguments.size(), nullptr, &report_, &faults_);
  }

  const char* options_;
  ptxkit_module* module_ = nullptr;
  char* report_ = nullptr;
  size_t faults_ = 99;
};

ptxkit_argument buffer(uint32_t kind, std::vector<uint32_t>& words) {
  return {kind, 0, words.data(), 4 * words.size(), nullptr};
}
ptxkit_argument value(uint32_t& word) { return {PTXKIT_ARGUMENT_VALUE, 0, &word, 4, nullptr}; }

TEST_P(Modules, RunOnTheCallersBuffers) {
  load(kTwice);
  std::vector<uint32_t> in = {1, 2, 3, 40}, out(4);
  uint32_t count = 4;
  ASSERT_OK(launch("twice", 32, {buffer(PTXKIT_ARGUMENT_IN, in), buffer(PTXKIT_ARGUMENT_OUT, out), value(count)}));
  EXPECT_EQ(faults_, 0u) << report_;
  EXPECT_EQ(out, (std::vector<uint32_t>{2, 4, 6, 80}));
  EXPECT_THAT(report_, HasSubstr("\"entry\": \"twice\""));
  Text json;
  ASSERT_OK(ptxkit_module_describe(module_, json));
  EXPECT_THAT(json.str(), HasSubstr(R"({"name":"count","size_bytes":4,"align_bytes":4})"));
}

TEST_P(Modules, RefuseWhatDoesNotFit) {
  load(kTwice);
  std::vector<uint32_t> words(4);
  uint32_t count = 4;
  const auto in = buffer(PTXKIT_ARGUMENT_IN, words), n = value(count);
  const auto refused = [&](const char* entry, std::vector<ptxkit_argument> arguments, const char* text) {
    EXPECT_EQ(launch(entry, 32, std::move(arguments)), PTXKIT_INVALID_VALUE);
    EXPECT_THAT(ptxkit_last_error(), HasSubstr(text));
    EXPECT_EQ(report_, nullptr);
  };
  refused("thrice", {in, in, n}, "twice");
  refused("twice", {in, n}, "has 3 parameters, found 2");
  refused("twice", {in, n, n}, "argument 1, parameter 'out': 4 bytes, the parameter has 8");
  refused("twice", {in, in, in}, "argument 2, parameter 'count'");
  refused("twice", {in, {9, 0, words.data(), 4, nullptr}, n}, "unknown kind 9");
  refused("twice", {in, {1, 0, nullptr, 4, nullptr}, n}, "data is null");
  refused("twice", {in, {1, 3, words.data(), 4, nullptr}, n}, "expected a power of two");
  EXPECT_EQ(ptxkit_launch(module_, nullptr, nullptr, nullptr, 0, nullptr, &report_, nullptr), PTXKIT_INVALID_VALUE);
  EXPECT_EQ(ptxkit_launch(nullptr, "twice", nullptr, nullptr, 0, nullptr, &report_, nullptr), PTXKIT_INVALID_VALUE);
}

INSTANTIATE_TEST_SUITE_P(Backends, Modules,
                         ::testing::Values("{}", "{\"backend\": \"cuda\", \"cuda_library\": \"" EMULATED_CUDA "\"}"));

class Emulated : public Modules {};
INSTANTIATE_TEST_SUITE_P(Emulator, Emulated, ::testing::Values("{\"name\": \"k.ptx\"}"));

TEST_P(Emulated, KnowsTheBoundsOfTheCallersBuffers) {
  load(kTwice);
  std::vector<uint32_t> in(4), out(3);
  uint32_t count = 4;
  ASSERT_OK(launch("twice", 32, {buffer(PTXKIT_ARGUMENT_IN, in), buffer(PTXKIT_ARGUMENT_OUT, out), value(count)}));
  EXPECT_GE(faults_, 1u);
  EXPECT_THAT(report_, HasSubstr("\"name\": \"out\""));
  std::vector<uint32_t> undefined(4), four(4);
  ASSERT_OK(
      launch("twice", 32, {buffer(PTXKIT_ARGUMENT_OUT, undefined), buffer(PTXKIT_ARGUMENT_OUT, four), value(count)}));
  EXPECT_GE(faults_, 1u) << report_;
}

TEST_P(Emulated, ReportsAFaultAndGoesOn) {
  load(kMisaligned);
  std::vector<uint32_t> out(4);
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(launch("bad", 1, {buffer(PTXKIT_ARGUMENT_OUT, out)}));
    EXPECT_EQ(faults_, 1u);
    EXPECT_THAT(report_, HasSubstr("\"misaligned\""));
    EXPECT_THAT(report_, HasSubstr("k.ptx"));
  }
}

TEST_P(Emulated, OptionsOfALaunchHaveTheirEffect) {
  load(kMisaligned);
  std::vector<uint32_t> out(4);
  const auto run = [&](const char* options) {
    const ptxkit_launch_shape shape{};
    const ptxkit_argument argument = buffer(PTXKIT_ARGUMENT_OUT, out);
    Text report;
    const auto status = ptxkit_launch(module_, "bad", &shape, &argument, 1, options, report, &faults_);
    return status;
  };
  EXPECT_OK(run(R"({"checks": "none"})"));
  EXPECT_EQ(faults_, 0u);
  EXPECT_OK(run(R"({"checks": "alignment", "seed": 3, "adversarial": true, "threads": 2, "max_faults": 1})"));
  EXPECT_EQ(faults_, 1u);
  EXPECT_OK(run(R"({"max_steps": 1})"));
  EXPECT_EQ(faults_, 1u);
  for (const char* wrong :
       {R"({"checks": "some"})", R"({"seed": -1})", R"({"adversarial": true})", R"({"threads": 0})", R"({"seeds": 1})"})
    EXPECT_EQ(run(wrong), PTXKIT_INVALID_VALUE) << wrong;
}

TEST(ModuleLoading, RefusesWhatItCannotRun) {
  ptxkit_module* module = reinterpret_cast<ptxkit_module*>(1);
  const auto refused = [&](const char* text, const char* options, ptxkit_status expected, const char* words) {
    EXPECT_EQ(ptxkit_module_load(text, std::strlen(text), options, &module), expected) << words;
    EXPECT_THAT(ptxkit_last_error(), HasSubstr(words));
    EXPECT_EQ(module, nullptr);
  };
  refused("nonsense", nullptr, PTXKIT_INVALID_VALUE, "input.ptx:1");
  refused(kTwice, R"({"backend": "hip"})", PTXKIT_INVALID_VALUE, "emulator or cuda");
  refused(kTwice, R"({"sm": 60})", PTXKIT_INVALID_VALUE, "sm_");
  refused(kTwice, R"({"device": 1})", PTXKIT_INVALID_VALUE, "no effect on backend emulator");
  refused(kTwice, R"({"backend": "cuda", "sm": 90})", PTXKIT_INVALID_VALUE, "no effect on backend cuda");
  refused(kTwice, R"({"backend": "cuda", "cuda_library": "/nowhere"})", PTXKIT_NO_DEVICE, "/nowhere");
  refused(kTwice, "{\"backend\": \"cuda\", \"device\": 77, \"cuda_library\": \"" EMULATED_CUDA "\"}", PTXKIT_NO_DEVICE,
          "no device 77");
  EXPECT_EQ(ptxkit_module_load(nullptr, 0, nullptr, &module), PTXKIT_INVALID_VALUE);
  EXPECT_EQ(ptxkit_module_load(kTwice, 5, nullptr, nullptr), PTXKIT_INVALID_VALUE);
  ptxkit_module_destroy(nullptr);
}

}  // namespace
}  // namespace ptxkit::testing
