// The test harness for authors of kernels: a GoogleTest fixture that runs a kernel's PTX on every available backend.
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
// A launch with any fault fails the test with the full text of the fault. A Backend is a class with the members of
// EmulatorBackend below. If unavailable() returns a reason, its tests are skipped with that reason.
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

#include "kernels/images.hpp"
#include "runtime/driver/context.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/launch/object_spec.hpp"
#include "support/file.hpp"

namespace ptxkit::harness {

using emulator::Argument;
using emulator::LaunchShape;

// Device memory of `count` elements, owned by the backend. As an argument it is the device address.
template <class T>
struct Buffer {
  uint64_t address = 0;
  size_t count = 0;
};

// A texture, surface, sampler or tensor map. As an argument it is its handle or its map.
struct Object {
  std::vector<std::byte> value;
  uint64_t memory = 0;    // on the emulator its address, on a GPU its number
  size_t size_bytes = 0;  // the size of its texels or elements
};

class EmulatorBackend {
 public:
  static constexpr std::string_view kName = "emulator";
  static constexpr bool kHasSamplers = true;  // independent of textures (.samplerref)
  static std::optional<std::string> unavailable() { return std::nullopt; }
  static std::pair<uint32_t, uint32_t> compute_capability() { return {99, 9}; }  // takes an image for any target

  Result<uint64_t> allocate(size_t size_bytes, const std::string& name, size_t align_bytes) {
    return device_.allocate(size_bytes, name, align_bytes);
  }
  Result<void> write(uint64_t address, std::span<const std::byte> bytes) { return device_.write(address, bytes); }
  Result<void> read(uint64_t address, std::span<std::byte> bytes) { return device_.read(address, bytes); }

  Result<Object> make(const ObjectSpec& spec, std::span<const std::byte> bytes, const std::string& name) {
    Object object{{}, 0, bytes.size()};
    if (!bytes.empty()) {
      auto allocated = device_.allocate(bytes.size(), name);
      if (!allocated) return tl::unexpected(allocated.error());
      object.memory = *allocated;
      if (auto done = device_.write(object.memory, bytes); !done) return tl::unexpected(done.error());
    }
    auto value = object_value(device_, spec, object.memory);
    if (!value) return tl::unexpected(value.error());
    object.value = std::move(*value);
    return object;
  }
  Result<void> read(const Object& object, std::span<std::byte> bytes) {
    return bytes.empty() ? Result<void>() : device_.read(object.memory, bytes);
  }
  Result<void> bind(const std::string& name, const Object& object) { return program_->write(name, object.value); }
  Result<void> write_variable(const std::string& name, std::span<const std::byte> bytes) {
    return program_->write(name, bytes);
  }

  Result<void> load(std::string text, std::string path) {
    auto program = emulator::Program::load_text(device_, std::move(text), path);
    if (!program) return tl::unexpected(program.error());
    program_.emplace(std::move(*program));
    path_ = std::move(path);
    return {};
  }

  // Errors: misuse, or the text of any fault.
  Result<void> launch(std::string_view entry, const LaunchShape& shape, std::span<const Argument> arguments) {
    auto outcome = emulator::launch(*program_, entry, shape, arguments, options);
    if (!outcome) return tl::unexpected(outcome.error());
    last = std::move(*outcome);
    if (!last.ok()) return fail(emulator::render(last, path_));
    return {};
  }

  Result<void> read_variable(const std::string& name, std::span<std::byte> bytes) {
    return program_->read(name, bytes);
  }
  const emulator::Program& program() const { return *program_; }

  emulator::LaunchOptions options{.max_steps = 200'000'000};
  emulator::Outcome last;  // `last.output` is the kernel's printed text

 private:
  emulator::Device device_;
  std::optional<emulator::Program> program_;
  std::string path_;
};

// The GPU with number $PTXKIT_DEVICE (default 0), through the driver. Its tests are skipped if there is none. A launch
// that fails destroys the CUDA context of the whole process. ctest runs each case in a process of its own, so only one
// test is affected.
class CudaBackend {
 public:
  static constexpr std::string_view kName = "cuda";
  static constexpr bool kHasSamplers = false;
  static std::optional<std::string> unavailable() {
    if (device()) return std::nullopt;
    return device().error().message();
  }
  static std::pair<uint32_t, uint32_t> compute_capability() {
    return {(*device())->info().major, (*device())->info().minor};
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

  Result<Object> make(const ObjectSpec& spec, std::span<const std::byte> bytes, const std::string&) {
    auto stream = driver::Stream::create(*device());
    if (!stream) return tl::unexpected(stream.error());
    auto object = GpuObject::create(*device(), spec, bytes, *stream);
    if (!object) return tl::unexpected(object.error());
    if (auto done = stream->wait(); !done) return tl::unexpected(done.error());
    objects_.push_back(std::move(*object));
    return Object{objects_.back().value(), objects_.size() - 1, bytes.size()};
  }
  Result<void> read(const Object& object, std::span<std::byte> bytes) {
    auto stream = driver::Stream::create(*device());
    if (!stream) return tl::unexpected(stream.error());
    auto done = objects_[object.memory].download(bytes, *stream);
    return done ? stream->wait() : done;
  }
  Result<void> bind(const std::string& name, const Object& object) {
    return objects_[object.memory].bind(kernel_->handle(), name);
  }
  Result<void> write_variable(const std::string& name, std::span<const std::byte> bytes) {
    auto stream = driver::Stream::create(*device());
    if (!stream) return tl::unexpected(stream.error());
    auto done = kernel_->write_variable(*stream, name, bytes);
    return done ? stream->wait() : done;
  }
  Result<void> read_variable(const std::string& name, std::span<std::byte> bytes) {
    auto stream = driver::Stream::create(*device());
    if (!stream) return tl::unexpected(stream.error());
    auto done = kernel_->read_variable(*stream, name, bytes);
    return done ? stream->wait() : done;
  }

  // The emulator's loader reads the text first: it provides the parameters of every entry, and every variable.
  Result<void> load(std::string text, std::string path) {
    auto program = emulator::Program::load_text(shapes_, text, std::move(path));
    if (!program) return tl::unexpected(program.error());
    program_.emplace(std::move(*program));
    if (program_->entries().empty()) return fail("the module has no entries", path);
    auto kernel =
        driver::Kernel::load_unverified(*device(), std::move(text), {program_->entries().front().name, 0, {}});
    if (!kernel) return tl::unexpected(kernel.error());
    kernel_.emplace(std::move(*kernel));
    return {};
  }
  const emulator::Program& program() const { return *program_; }

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
    if (auto done = kernel_->select({info->name, 0, {}}); !done) return done;
    auto stream = driver::Stream::create(*device());
    if (!stream) return tl::unexpected(stream.error());
    const auto axes = [](const emulator::Dim3& dim) { return std::array{dim.x, dim.y, dim.z}; };
    const driver::LaunchGeometry geometry{axes(shape.grid), axes(shape.block), shape.dynamic_shared_bytes,
                                          axes(shape.cluster)};
    auto done = kernel_->launch_unchecked(*stream, geometry, values);
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
  std::optional<driver::Kernel> kernel_;
  std::vector<driver::DeviceMemory> memory_;
  std::vector<GpuObject> objects_;
};

using Backends = ::testing::Types<EmulatorBackend, CudaBackend>;

template <class Backend>
class KernelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (auto reason = Backend::unavailable()) GTEST_SKIP() << Backend::kName << ": " << *reason;
  }

  // Parses, checks and loads the module. The test fails if it does not load.
  void load(std::string_view ptx, const std::string& path = "kernel.ptx") {
    auto loaded = backend_.load(std::string(ptx), path);
    ASSERT_TRUE(loaded) << loaded.error().message();
  }
  // The same for the release image of a kernel that suits the backend best, out of a library of ptxkit_add_kernels.
  void load(std::span<const kernels::KernelImage> images, std::string_view kernel) {
    const auto [major, minor] = Backend::compute_capability();
    const kernels::KernelImage* image = kernels::find_image(images, kernel, major, minor);
    ASSERT_NE(image, nullptr) << "no release image of " << kernel << " for compute capability " << major << "."
                              << minor;
    load(image->ptx, std::string(kernel) + "." + std::string(image->target) + ".ptx");
  }
  // The same for a file.
  void load_file(const std::string& path) {
    auto text = read_file(path);
    ASSERT_TRUE(text) << text.error().message();
    load(*text, path);
  }

  // Allocates uninitialised memory for `count` elements.
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

  // Creates a texture, surface, sampler or tensor map from its description as in `ptx-debug run --arg`
  // (tex:2d,8x8,f32), with exactly the bytes of its texels or elements.
  template <class T>
  Object object(const std::string& name, std::string_view spelling, const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    auto spec = parse_object_spec(spelling);
    EXPECT_TRUE(spec) << spec.error().message();
    if (!spec) return {};
    EXPECT_EQ(spec->size_bytes(), bytes.size()) << spelling;
    if (spec->size_bytes() != bytes.size()) return {};
    auto made = backend_.make(*spec, bytes, name);
    EXPECT_TRUE(made) << made.error().message();
    return made ? std::move(*made) : Object{};
  }

  // The present contents of its memory.
  template <class T = std::byte>
  std::vector<T> download(const Object& object) {
    std::vector<T> values(object.size_bytes / sizeof(T));
    auto done = backend_.read(object, std::as_writable_bytes(std::span(values)));
    EXPECT_TRUE(done) << done.error().message();
    return values;
  }

  // Binds a .texref, .surfref or .samplerref of the module to it.
  void bind(const std::string& name, const Object& object) {
    auto done = backend_.bind(name, object);
    ASSERT_TRUE(done) << done.error().message();
  }

  // Writes the first bytes of a .global or .const variable of the module.
  template <class T>
  void write_variable(const std::string& name, const std::vector<T>& values) {
    auto done = backend_.write_variable(name, std::as_bytes(std::span(values)));
    ASSERT_TRUE(done) << done.error().message();
  }

  // The present contents of a whole .global or .const variable.
  std::vector<std::byte> read_variable(const std::string& name) {
    auto variable = backend_.program().global(name);
    EXPECT_TRUE(variable) << variable.error().message();
    std::vector<std::byte> bytes(variable ? variable->size_bytes : 0);
    auto done = backend_.read_variable(name, bytes);
    EXPECT_TRUE(done) << done.error().message();
    return bytes;
  }

  // Launches a kernel. Arguments are buffers, objects, scalars and structures whose size is exactly the parameter's
  // (write uint32_t{3} rather than 3u in doubt), or an Argument with the bytes.
  template <class... Values>
  void launch(std::string_view entry, const LaunchShape& shape, const Values&... values) {
    auto done = try_launch(entry, shape, values...);
    ASSERT_TRUE(done) << done.error().message();
  }

  // The same for tests that expect a failure: returns its text, or success.
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
  static Argument argument(const Object& object) { return {object.value}; }

  Backend backend_;
};

}  // namespace ptxkit::harness
