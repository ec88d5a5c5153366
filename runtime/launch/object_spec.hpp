// Textures, surfaces, samplers and tensor maps as arguments of a launch: `tex:LIST`, `surf:LIST`, `sampler:LIST`,
// `tensor:LIST`.
#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/emulator/emulator.hpp"
#include "runtime/launch/gpu_image.hpp"
#include "runtime/launch/image_spec.hpp"
#include "runtime/launch/tensor_spec.hpp"

namespace ptxkit {

// What a parameter holds is a handle, or a map of 128 bytes; of a sampler no memory lies behind it.
struct ObjectSpec {
  std::variant<ImageSpec, emulator::TensorMap> what;

  bool is_sampler() const;
  uint64_t size_bytes() const;   // of its texels or elements
  uint64_t value_bytes() const;  // of the handle or map
};

// Errors name the word that is none.
Result<ObjectSpec> parse_object_spec(std::string_view text);

// What the parameter holds, of texels or elements at `data` of the device.
Result<std::vector<std::byte>> object_value(emulator::Device& device, const ObjectSpec& spec, emulator::Address data);

// The same on a GPU, with the memory behind it.
class GpuObject {
 public:
  // `bytes` are at least those of the specification.
  static Result<GpuObject> create(const driver::ContextPointer& context, const ObjectSpec& spec,
                                  std::span<const std::byte> bytes, const driver::Stream& stream);

  const std::vector<std::byte>& value() const { return value_; }
  // Makes a .texref or .surfref of a module stand for it. Error: it is neither texture nor surface.
  Result<void> bind(driver::CuModule module, const std::string& name) const;
  // What the memory holds: as many of `bytes` as there are; done once the stream has been waited for.
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
