// Emulators of the caller's: memory that stays between launches, shared by modules.
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "fkr_tests/unit/runtime/c_api/c_api.hpp"

namespace ptxkit::testing {
namespace {

using ::testing::HasSubstr;

// counter[i] = counter[i] + 1, one element a thread.
constexpr const char* kIncrement = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry increment(.param .u64 counter)
{
    .reg .b32 %i, %v; .reg .b64 %a, %o;
    mov.u32 %i, %tid.x;
    ld.param.u64 %a, [counter];
    cvta.to.global.u64 %a, %a;
    mul.wide.u32 %o, %i, 4;
    add.u64 %a, %a, %o;
    ld.global.u32 %v, [%a];
    add.u32 %v, %v, 1;
    st.global.u32 [%a], %v;
    ret;
}
)";

class Emulators : public ::testing::Test {
 protected:
  Emulators() { EXPECT_OK(ptxkit_emulator_create(nullptr, &emulator_)); }
  ~Emulators() override {
    ptxkit_module_destroy(module_);
    ptxkit_emulator_destroy(emulator_);
  }

  void load() {
    ASSERT_OK(
        ptxkit_emulator_load(emulator_, kIncrement, std::strlen(kIncrement), R"({"name": "increment.ptx"})", &module_));
  }
  uint64_t allocate(size_t bytes, const char* name = nullptr) {
    uint64_t address = 0;
    EXPECT_OK(ptxkit_emulator_allocate(emulator_, bytes, 0, name, &address));
    return address;
  }
  std::string launch(uint64_t address, uint32_t threads, const char* name = nullptr,
                     uint32_t kind = PTXKIT_ARGUMENT_ADDRESS) {
    const ptxkit_argument argument{kind, 0, &address, sizeof address, name};
    ptxkit_launch_shape shape{};
    shape.block[0] = threads;
    Text report;
    EXPECT_OK(ptxkit_launch(module_, "increment", &shape, &argument, 1, nullptr, report, &faults_));
    return report.str();
  }

  ptxkit_emulator* emulator_ = nullptr;
  ptxkit_module* module_ = nullptr;
  size_t faults_ = 99;
};

TEST_F(Emulators, MemoryStaysBetweenLaunches) {
  load();
  std::vector<uint32_t> words = {1, 2, 3, 4};
  const uint64_t address = allocate(16);
  ASSERT_OK(ptxkit_emulator_write(emulator_, address, words.data(), 16));
  launch(address, 4);
  launch(address + 8, 2, nullptr, PTXKIT_ARGUMENT_VALUE);
  EXPECT_EQ(faults_, 0u);
  ASSERT_OK(ptxkit_emulator_read(emulator_, address, words.data(), 16));
  EXPECT_EQ(words, (std::vector<uint32_t>{2, 3, 5, 6}));
  EXPECT_OK(ptxkit_emulator_release(emulator_, address));
  EXPECT_THAT(launch(address, 4, "gone"), HasSubstr("use_after_free"));
}

TEST_F(Emulators, WhatNoLaunchWroteIsUninitialised) {
  load();
  EXPECT_THAT(launch(allocate(16), 4), HasSubstr("undefined_output"));
}

TEST_F(Emulators, AnAddressNamesTheAllocationInFaults) {
  load();
  std::vector<uint32_t> words(4);
  const uint64_t first = allocate(16, "first"), second = allocate(16, "second");
  for (const uint64_t each : {first, second}) ASSERT_OK(ptxkit_emulator_write(emulator_, each, words.data(), 16));
  EXPECT_THAT(launch(first, 5, nullptr, PTXKIT_ARGUMENT_VALUE), HasSubstr("\"name\": \"first\""));
  EXPECT_THAT(launch(first + 4, 5, "rows"), HasSubstr("\"name\": \"rows\""));
  EXPECT_THAT(launch(second, 5, nullptr, PTXKIT_ARGUMENT_VALUE), HasSubstr("\"name\": \"second\""));
  EXPECT_THAT(launch(first, 5), HasSubstr("\"name\": \"counter\""));
  EXPECT_THAT(launch(8, 1, "nothing"), HasSubstr("null_address"));
}

TEST_F(Emulators, ModulesOutliveTheHandle) {
  load();
  const uint64_t address = allocate(4);
  const uint32_t word = 1;
  ASSERT_OK(ptxkit_emulator_write(emulator_, address, &word, 4));
  ptxkit_emulator_destroy(emulator_);
  emulator_ = nullptr;
  launch(address, 1);
  EXPECT_EQ(faults_, 0u);
}

TEST_F(Emulators, MisuseIsRefused) {
  const auto refused = [](ptxkit_status status, const char* words) {
    EXPECT_EQ(status, PTXKIT_INVALID_VALUE) << words;
    EXPECT_THAT(ptxkit_last_error(), HasSubstr(words));
  };
  uint64_t address = 5;
  uint32_t word = 0;
  ptxkit_emulator* other = nullptr;
  refused(ptxkit_emulator_create(nullptr, nullptr), "emulator is null");
  refused(ptxkit_emulator_create(R"({"ms": 90})", &other), "'ms'");
  refused(ptxkit_emulator_create(R"({"sm": -1})", &other), "whole number");
  refused(ptxkit_emulator_allocate(nullptr, 4, 0, nullptr, &address), "emulator is null");
  EXPECT_EQ(address, 0u);
  refused(ptxkit_emulator_allocate(emulator_, 4, 0, nullptr, nullptr), "address is null");
  refused(ptxkit_emulator_allocate(emulator_, 4, 3, nullptr, &address), "a power of two");
  EXPECT_EQ(ptxkit_emulator_allocate(emulator_, SIZE_MAX, 0, nullptr, &address), PTXKIT_NO_MEMORY);
  address = allocate(4);
  refused(ptxkit_emulator_release(nullptr, address), "emulator is null");
  refused(ptxkit_emulator_release(emulator_, address + 1), "not the start of a live allocation");
  refused(ptxkit_emulator_write(nullptr, address, &word, 4), "emulator is null");
  refused(ptxkit_emulator_write(emulator_, address, nullptr, 4), "from is null");
  refused(ptxkit_emulator_write(emulator_, address, &word, 5), "allocation");
  refused(ptxkit_emulator_read(nullptr, address, &word, 4), "emulator is null");
  refused(ptxkit_emulator_read(emulator_, address, nullptr, 4), "into is null");
  refused(ptxkit_emulator_read(emulator_, address + 1, &word, 4), "allocation");
  refused(ptxkit_emulator_load(emulator_, kIncrement, 4, nullptr, nullptr), "module is null");
  refused(ptxkit_emulator_load(nullptr, kIncrement, 4, nullptr, &module_), "emulator is null");
  refused(ptxkit_emulator_load(emulator_, nullptr, 4, nullptr, &module_), "text is null");
  refused(ptxkit_emulator_load(emulator_, "no PTX", 6, nullptr, &module_), "input.ptx");
  refused(ptxkit_emulator_load(emulator_, kIncrement, std::strlen(kIncrement), R"({"sm": 90})", &module_), "'sm'");
  ptxkit_emulator_destroy(nullptr);

  ASSERT_OK(ptxkit_emulator_create(R"({"sm": 60})", &other));
  refused(ptxkit_emulator_load(other, kIncrement, std::strlen(kIncrement), nullptr, &module_), "sm_70");
  ptxkit_emulator_destroy(other);
}

}  // namespace
}  // namespace ptxkit::testing
