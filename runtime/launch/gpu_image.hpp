// Textures and surfaces of a GPU that equal the emulator's, made by the driver.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "runtime/driver/context.hpp"
#include "runtime/launch/image_spec.hpp"

namespace ptxkit {

// A CUDA array with an object that reads or writes it; for a buffer, device memory.
class GpuImage {
 public:
  // `texels` are laid out as in the emulator: x first, then y, then z or the layer.
  static Result<GpuImage> create(const driver::ContextPointer& context, const ImageSpec& spec,
                                 std::span<const uint8_t> texels, const driver::Stream& stream);
  GpuImage(GpuImage&& other) noexcept;
  GpuImage& operator=(GpuImage&&) = delete;
  ~GpuImage();

  uint64_t handle() const { return handle_; }
  // Binds a .texref or .surfref variable of a module to it.
  Result<void> bind(driver::CuModule module, const std::string& name) const;
  // Copies the texels to the host; complete after the stream has been waited for.
  Result<void> download(std::span<uint8_t> texels, const driver::Stream& stream) const;

 private:
  GpuImage(driver::ContextPointer context, const ImageSpec& spec) : context_(std::move(context)), spec_(spec) {}
  Result<void> copy(driver::CuCopy3dSide host, bool to_array, const driver::Stream& stream) const;

  driver::ContextPointer context_;
  ImageSpec spec_;
  driver::CuArray array_ = nullptr;
  std::optional<driver::DeviceMemory> memory_;
  uint64_t handle_ = 0;
};

}  // namespace ptxkit
