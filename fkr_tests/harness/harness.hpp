// The test harness of kernel authors: a GoogleTest fixture that runs a kernel's PTX on every backend there is.
//
//   template <class Backend>
//   class Doubling : public ptxkit::harness::KernelTest<Backend> {};
//   TYPED_TEST_SUITE(Doubling, ptxkit::harness::Backends);
//
//   TYPED_TEST(Doubling, DoublesEveryElement) {
//     this->load(kDoublingPtx, "doubling.ptx");
//     auto data = this->upload("data", std::vector<uint32_t>{1, 2, 3});
//     this->launch("twice", {.grid = {1}, .block = {32}}, data, uint32_t{3});
//     EXPECT_EQ(this->download(data), (std::vector<uint32_t>{2, 4, 6}));
//   }
//
// A launch that has any fault fails the test with the fault's full text. A Backend is a class with the members of
// EmulatorBackend below; where unavailable() gives a reason, its tests are skipped with it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/backend/emulator/emulator.hpp"

namespace ptxkit::harness {

using emulator::Argument;
using emulator::LaunchShape;

// Device memory of `count` elements. As an argument it is the device address.
template <class T>
struct Buffer {
  uint64_t address = 0;
  size_t count = 0;
};

class EmulatorBackend {
 public:
  static constexpr std::string_view kName = "emulator";
  static std::optional<std::string> unavailable() { return std::nullopt; }

  Result<uint64_t> allocate(size_t size_bytes, const std::string& name, size_t align_bytes) {
    return device_.allocate(size_bytes, name, align_bytes);
  }
  Result<void> write(uint64_t address, std::span<const std::byte> bytes) { return device_.write(address, bytes); }
  Result<void> read(uint64_t address, std::span<std::byte> bytes) { return device_.read(address, bytes); }

  Result<void> load(std::string text, std::string path) {
    auto program = emulator::Program::load_text(device_, std::move(text), path);
    if (!program) return tl::unexpected(program.error());
    program_.emplace(std::move(*program));
    path_ = std::move(path);
    return {};
  }

  // Error: misuse, or any fault, as text.
  Result<void> launch(std::string_view entry, const LaunchShape& shape, std::span<const Argument> arguments) {
    auto outcome = emulator::launch(*program_, entry, shape, arguments, options);
    if (!outcome) return tl::unexpected(outcome.error());
    last = std::move(*outcome);
    if (!last.ok()) return fail(emulator::render(last, path_));
    return {};
  }

  emulator::LaunchOptions options{.max_steps = 200'000'000};
  emulator::Outcome last;

 private:
  emulator::Device device_;
  std::optional<emulator::Program> program_;
  std::string path_;
};

using Backends = ::testing::Types<EmulatorBackend>;

template <class Backend>
class KernelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (auto reason = Backend::unavailable()) GTEST_SKIP() << Backend::kName << ": " << *reason;
  }

  // Parses, checks and loads; a module that does not load fails the test.
  void load(std::string_view ptx, const std::string& path = "kernel.ptx") {
    auto loaded = backend_.load(std::string(ptx), path);
    ASSERT_TRUE(loaded) << loaded.error().message();
  }

  // Uninitialised memory.
  template <class T>
  Buffer<T> allocate(const std::string& name, size_t count, size_t align_bytes = 256) {
    auto address = backend_.allocate(count * sizeof(T), name, align_bytes);
    EXPECT_TRUE(address) << address.error().message();
    return {address ? *address : 0, count};
  }

  template <class T>
  Buffer<T> upload(const std::string& name, const std::vector<T>& values, size_t align_bytes = 256) {
    auto buffer = allocate<T>(name, values.size(), align_bytes);
    auto written = backend_.write(buffer.address, std::as_bytes(std::span(values)));
    EXPECT_TRUE(written) << written.error().message();
    return buffer;
  }

  template <class T>
  std::vector<T> download(const Buffer<T>& buffer) {
    std::vector<T> values(buffer.count);
    auto done = backend_.read(buffer.address, std::as_writable_bytes(std::span(values)));
    EXPECT_TRUE(done) << done.error().message();
    return values;
  }

  // Arguments: buffers, and scalars of exactly the parameter's size (uint32_t{3}, not 3u in doubt).
  template <class... Values>
  void launch(std::string_view entry, const LaunchShape& shape, const Values&... values) {
    auto done = try_launch(entry, shape, values...);
    ASSERT_TRUE(done) << done.error().message();
  }

  // The same for tests that expect a failure: its text, or success.
  template <class... Values>
  Result<void> try_launch(std::string_view entry, const LaunchShape& shape, const Values&... values) {
    const std::vector<Argument> arguments{argument(values)...};
    return backend_.launch(entry, shape, arguments);
  }

  Backend& backend() { return backend_; }

 private:
  template <class T>
  static Argument argument(const Buffer<T>& buffer) {
    return Argument::of(buffer.address);
  }
  template <class T>
  static Argument argument(const T& value) {
    return Argument::of(value);
  }

  Backend backend_;
};

}  // namespace ptxkit::harness
