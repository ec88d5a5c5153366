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

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/backend/emulator/emulator.hpp"
#include "runtime/driver/context.hpp"
#include "support/file.hpp"

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

  // What a module-scope .global variable holds now.
  Result<std::vector<std::byte>> read_variable(std::string_view name) {
    auto variable = program_->global(name);
    if (!variable) return tl::unexpected(variable.error());
    std::vector<std::byte> bytes(variable->size_bytes);
    if (auto done = program_->read(name, bytes); !done) return tl::unexpected(done.error());
    return bytes;
  }

  emulator::LaunchOptions options{.max_steps = 200'000'000};
  emulator::Outcome last;  // `output` is what the kernel printed

 private:
  emulator::Device device_;
  std::optional<emulator::Program> program_;
  std::string path_;
};

// The GPU $PTXKIT_DEVICE (default 0) through the driver; its tests are skipped where there is none. A launch that dies
// takes the context of the whole process with it: ctest, with a process a case, keeps that to one test.
class CudaBackend {
 public:
  static constexpr std::string_view kName = "cuda";
  static std::optional<std::string> unavailable() {
    if (device()) return std::nullopt;
    return device().error().message();
  }

  Result<uint64_t> allocate(size_t size_bytes, const std::string&, size_t) {
    auto memory = driver::DeviceMemory::allocate(*device(), std::max<size_t>(size_bytes, 1));
    if (!memory) return tl::unexpected(memory.error());
    memory_.push_back(std::move(*memory));
    return memory_.back().handle();
  }
  Result<void> write(uint64_t address, std::span<const std::byte> bytes) {
    auto stream = driver::Stream::create(*device());
    if (!stream) return tl::unexpected(stream.error());
    auto done = memory_at(address).upload({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, *stream);
    return done ? stream->wait() : done;
  }
  Result<void> read(uint64_t address, std::span<std::byte> bytes) {
    auto stream = driver::Stream::create(*device());
    if (!stream) return tl::unexpected(stream.error());
    auto done = memory_at(address).download({reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}, *stream);
    return done ? stream->wait() : done;
  }

  // Through the emulator's loader first: it knows the parameters of every entry.
  Result<void> load(std::string text, std::string path) {
    auto program = emulator::Program::load_text(shapes_, text, std::move(path));
    if (!program) return tl::unexpected(program.error());
    program_.emplace(std::move(*program));
    text_ = std::move(text);
    return {};
  }

  Result<void> launch(std::string_view entry, const LaunchShape& shape, std::span<const Argument> arguments) {
    auto info = program_->entry(entry);
    if (!info) return tl::unexpected(info.error());
    std::vector<std::vector<std::byte>> values;
    for (const Argument& argument : arguments) values.push_back(argument.bytes);
    if (values.size() != info->parameters.size())
      return fail("launch of '" + info->name + "': " + std::to_string(values.size()) + " arguments, expected " +
                  std::to_string(info->parameters.size()));
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].size() != info->parameters[i].size_bytes)
        return fail("launch of '" + info->name + "': argument " + std::to_string(i) + " has " +
                    std::to_string(values[i].size()) + " bytes, the parameter has " +
                    std::to_string(info->parameters[i].size_bytes));
    }
    auto kernel = driver::Kernel::load_unverified(*device(), text_, {info->name, 0, {}});
    if (!kernel) return tl::unexpected(kernel.error());
    auto stream = driver::Stream::create(*device());
    if (!stream) return tl::unexpected(stream.error());
    const auto axes = [](const emulator::Dim3& dim) { return std::array{dim.x, dim.y, dim.z}; };
    const driver::LaunchGeometry geometry{axes(shape.grid), axes(shape.block), shape.dynamic_shared_bytes,
                                          axes(shape.cluster)};
    auto done = kernel->launch_unchecked(*stream, geometry, values);
    return done ? stream->wait() : done;
  }

 private:
  static const Result<driver::ContextPointer>& device() {
    static const Result<driver::ContextPointer> found = [] {
      auto opened = driver::Driver::open();
      if (!opened) return Result<driver::ContextPointer>(tl::unexpected(opened.error().error));
      const char* chosen = std::getenv("PTXKIT_DEVICE");
      return driver::Context::create(std::move(*opened), chosen != nullptr ? std::atoi(chosen) : 0);
    }();
    return found;
  }
  driver::DeviceMemory& memory_at(uint64_t address) {
    return *std::find_if(memory_.begin(), memory_.end(),
                         [&](const driver::DeviceMemory& memory) { return memory.handle() == address; });
  }

  emulator::Device shapes_;
  std::optional<emulator::Program> program_;
  std::string text_;
  std::vector<driver::DeviceMemory> memory_;
};

using Backends = ::testing::Types<EmulatorBackend, CudaBackend>;

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
  // The same of a file.
  void load_file(const std::string& path) {
    auto text = read_file(path);
    ASSERT_TRUE(text) << text.error().message();
    load(*text, path);
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

  // Arguments: buffers, scalars and structures of exactly the parameter's size (uint32_t{3}, not 3u in doubt), or an
  // Argument that holds its bytes.
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
  static Argument argument(const Argument& bytes) { return bytes; }

  Backend backend_;
};

}  // namespace ptxkit::harness
