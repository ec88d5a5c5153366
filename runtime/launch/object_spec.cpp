// See object_spec.hpp.
#include "runtime/launch/object_spec.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "analyzer/ptx/names.hpp"
#include "runtime/emulator/tensor_map.hpp"
#include "runtime/emulator/texture.hpp"
#include "runtime/launch/gpu_tensor_map.hpp"

namespace ptxkit {

using emulator::ImageUse;

namespace {

std::vector<std::byte> bytes_of(uint64_t handle) {
  std::vector<std::byte> bytes(sizeof handle);
  std::memcpy(bytes.data(), &handle, sizeof handle);
  return bytes;
}

}  // namespace

bool ObjectSpec::is_sampler() const {
  const auto* image = std::get_if<ImageSpec>(&what);
  return image != nullptr && image->use == ImageUse::sampler;
}

uint64_t ObjectSpec::size_bytes() const {
  if (is_sampler()) return 0;
  if (const auto* image = std::get_if<ImageSpec>(&what)) return image->description.size_bytes();
  const auto& map = std::get<emulator::TensorMap>(what);
  uint64_t bytes = ptx::byte_width(map.element);
  for (unsigned i = 0; i < map.rank; ++i) bytes *= map.size[i];
  return bytes;
}

uint64_t ObjectSpec::value_bytes() const {
  return std::holds_alternative<ImageSpec>(what) ? sizeof(uint64_t) : emulator::kTensorMapBytes;
}

Result<ObjectSpec> parse_object_spec(std::string_view text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string_view kind = text.substr(0, colon), list = text.substr(std::min(colon + 1, text.size()));
  if (kind == "tensor") {
    auto map = parse_tensor_spec(list);
    if (!map) return tl::unexpected(map.error());
    return ObjectSpec{*map};
  }
  if (kind != "tex" && kind != "surf" && kind != "sampler")
    return fail(fmt::format("'{}' is not an object of a launch", text), "",
                "give tex:LIST, surf:LIST, sampler:LIST or tensor:LIST");
  auto image = parse_image_spec(kind == "tex"    ? ImageUse::texture
                                : kind == "surf" ? ImageUse::surface
                                                 : ImageUse::sampler,
                                list);
  if (!image) return tl::unexpected(image.error());
  return ObjectSpec{*image};
}

Result<std::vector<std::byte>> object_value(emulator::Device& device, const ObjectSpec& spec, emulator::Address data) {
  if (const auto* map = std::get_if<emulator::TensorMap>(&spec.what)) {
    emulator::TensorMap placed = *map;
    placed.address = data;
    const auto encoded = emulator::encode(placed);
    if (!encoded) return tl::unexpected(encoded.error());
    return std::vector<std::byte>(encoded->begin(), encoded->end());
  }
  const auto& image = std::get<ImageSpec>(spec.what);
  if (image.use == ImageUse::sampler) return bytes_of(device.make_sampler(image.sampling));
  const auto handle = image.use == ImageUse::texture ? device.make_texture(data, image.description, image.sampling)
                                                     : device.make_surface(data, image.description);
  if (!handle) return tl::unexpected(handle.error());
  return bytes_of(*handle);
}

Result<GpuObject> GpuObject::create(const driver::ContextPointer& context, const ObjectSpec& spec,
                                    std::span<const std::byte> bytes, const driver::Stream& stream) {
  const uint64_t size_bytes = spec.size_bytes();
  if (bytes.size() < size_bytes)
    return fail(fmt::format("{} bytes are given for an object of {}", bytes.size(), size_bytes));
  const std::span given(reinterpret_cast<const uint8_t*>(bytes.data()), size_bytes);
  if (const auto* image = std::get_if<ImageSpec>(&spec.what)) {
    auto made = GpuImage::create(context, *image, given, stream);
    if (!made) return tl::unexpected(made.error());
    auto value = bytes_of(made->handle());
    return GpuObject(std::move(*made), std::move(value), size_bytes);
  }
  auto memory = driver::DeviceMemory::allocate(context, size_bytes);
  if (!memory) return tl::unexpected(memory.error());
  if (auto done = memory->upload(given, stream); !done) return tl::unexpected(done.error());
  emulator::TensorMap map = std::get<emulator::TensorMap>(spec.what);
  map.address = memory->handle();
  auto value = driver_tensor_map(*context, map);
  if (!value) return tl::unexpected(value.error());
  return GpuObject(std::move(*memory), std::move(*value), size_bytes);
}

Result<void> GpuObject::bind(driver::CuModule module, const std::string& name) const {
  if (const auto* image = std::get_if<GpuImage>(&storage_)) return image->bind(module, name);
  return fail("a tensor map has no name in a module", name, "pass it as a parameter");
}

Result<void> GpuObject::download(std::span<std::byte> bytes, const driver::Stream& stream) const {
  const std::span to(reinterpret_cast<uint8_t*>(bytes.data()), std::min<uint64_t>(bytes.size(), size_bytes_));
  return std::visit([&](const auto& storage) { return storage.download(to, stream); }, storage_);
}

}  // namespace ptxkit
