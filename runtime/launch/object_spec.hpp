// Textures, surfaces, samplers and tensor maps as arguments of a launch: `tex:LIST`, `surf:LIST`, `sampler:LIST`,
// `tensor:LIST`.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/driver/context.hpp"
#include "runtime/driver/driver.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/launch/gpu_image.hpp"
#include "runtime/launch/image_spec.hpp"
#include "runtime/launch/tensor_spec.hpp"
#include "support/result.hpp"

namespace ptxkit {

// An object whose parameter is a handle, or a map of 128 bytes. A sampler has no memory.
struct ObjectSpec {
  std::variant<ImageSpec, emulator::TensorMap> what;

  bool is_sampler() const;
  uint64_t size_bytes() const;   // of its texels or elements
  uint64_t value_bytes() const;  // of the handle or map
};

// Errors name the word that is not recognised.
Result<ObjectSpec> parse_object_spec(std::string_view text);

// The bytes of the parameter, for texels or elements at `data` of the device.
Result<std::vector<std::byte>> object_value(emulator::Device& device, const ObjectSpec& spec, emulator::Address data);

// An object on a GPU, with its memory.
class GpuObject {
 public:
  // `bytes` has at least spec.size_bytes() bytes.
  static Result<GpuObject> create(const driver::ContextPointer& context, const ObjectSpec& spec,
                                  std::span<const std::byte> bytes, const driver::Stream& stream);

  const std::vector<std::byte>& value() const { return value_; }
  // Binds a .texref or .surfref variable of a module to it. Error: it is neither texture nor surface.
  Result<void> bind(driver::CuModule module, const std::string& name) const;
  // Copies the contents of the memory to `bytes`, as far as they reach; complete after the stream has been waited for.
  Result<void> download(std::span<std::byte> bytes, const driver::Stream& stream) const;

 private:
  using Storage = std::variant<GpuImage, driver::DeviceMemory>;
  GpuObject(Storage storage, std::vector<std::byte> value, uint64_t size_bytes)
      : storage_(std::move(storage)), value_(std::move(value)), size_bytes_(size_bytes) {}

  Storage storage_;
  std::vector<std::byte> value_;
  uint64_t size_bytes_;
};

}  // namespace ptxkit
