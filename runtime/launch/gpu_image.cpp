// See gpu_image.hpp. The numbers are those of cuda.h: CUarray_format, CUaddress_mode, flags of arrays and textures.
#include "runtime/launch/gpu_image.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/emulator/texture.hpp"

namespace ptxkit {

using emulator::ImageShape;
using emulator::ImageUse;

namespace {

constexpr unsigned kLayered = 1, kWithStores = 2, kCubes = 4, kWithGather = 8;  // of arrays
constexpr unsigned kReadsInteger = 1, kNormalised = 2;                          // of textures
constexpr unsigned kFormatOfArray = 1;                                          // CU_TRSA_OVERRIDE_FORMAT
constexpr int kHostMemory = 1, kArrayMemory = 3, kOfArray = 0, kOfLinearMemory = 2;

int format_of(emulator::TexelFormat format) {
  static constexpr int kFormats[] = {0x01, 0x02, 0x03, 0x08, 0x09, 0x0a, 0x10, 0x20};
  return kFormats[static_cast<unsigned>(format)];
}

driver::CuArrayDescriptor array_description(const ImageSpec& spec) {
  const auto& is = spec.description;
  const bool line = is.shape == ImageShape::one_dim || is.shape == ImageShape::one_dim_array;
  const bool cube = is.shape == ImageShape::cube || is.shape == ImageShape::cube_array;
  driver::CuArrayDescriptor out{is.width, line ? 0 : is.height, 0, format_of(is.format), is.channels, 0};
  if (is.shape == ImageShape::three_dim) out.depth = is.depth;
  if (is.shape >= ImageShape::one_dim_array) out.depth = is.layers;
  if (is.shape == ImageShape::one_dim_array || is.shape == ImageShape::two_dim_array ||
      is.shape == ImageShape::cube_array)
    out.flags |= kLayered;
  if (cube) out.flags |= kCubes;
  if (spec.use == ImageUse::surface) out.flags |= kWithStores;
  if (spec.use == ImageUse::texture && is.shape == ImageShape::two_dim) out.flags |= kWithGather;
  return out;
}

driver::CuTextureDescriptor texture_description(const emulator::Sampling& descriptor) {
  static constexpr int kModes[] = {0, 2, 1, 3};  // of wrap, mirror, clamp, border
  driver::CuTextureDescriptor out{};
  std::ranges::fill(out.address_mode, kModes[static_cast<unsigned>(descriptor.address)]);
  out.filter_mode = descriptor.linear;
  out.flags = (descriptor.reads_integer ? kReadsInteger : 0) | (descriptor.normalised ? kNormalised : 0);
  std::ranges::copy(descriptor.border, out.border);
  return out;
}

}  // namespace

GpuImage::GpuImage(GpuImage&& other) noexcept
    : context_(std::move(other.context_)),
      spec_(other.spec_),
      array_(std::exchange(other.array_, nullptr)),
      memory_(std::move(other.memory_)),
      handle_(std::exchange(other.handle_, 0)) {}

GpuImage::~GpuImage() {
  // An error here repeats an earlier one of the context, which has been reported.
  if ((handle_ == 0 && array_ == nullptr) || !context_->make_current()) return;
  const driver::Api& api = context_->api();
  if (handle_ != 0) (void)(spec_.use == ImageUse::surface ? api.surface_destroy : api.texture_destroy)(handle_);
  if (array_ != nullptr) (void)api.array_destroy(array_);
}

Result<GpuImage> GpuImage::create(const driver::ContextPointer& context, const ImageSpec& spec,
                                  std::span<const uint8_t> texels, const driver::Stream& stream) {
  const driver::Api& api = context->api();
  if (api.array_create == nullptr || api.array_destroy == nullptr || api.memcpy_3d_async == nullptr ||
      api.texture_create == nullptr || api.texture_destroy == nullptr || api.surface_create == nullptr ||
      api.surface_destroy == nullptr)
    return fail("the driver makes no textures", "", "install a driver for CUDA 11 or later");
  if (spec.use == ImageUse::sampler)
    return fail("on a GPU a sampler is part of a texture", "", "name its words in tex:LIST");
  if (auto fits = emulator::check_image(spec.use, spec.description); !fits) return tl::unexpected(fits.error());
  if (texels.size() != spec.description.size_bytes())
    return fail(fmt::format("{} bytes of texels, expected {}", texels.size(), spec.description.size_bytes()));
  if (const auto current = context->make_current(); !current) return tl::unexpected(current.error());
  GpuImage image(context, spec);
  driver::CuResourceDescriptor resource{};
  if (spec.description.shape == ImageShape::buffer) {
    auto memory = driver::DeviceMemory::allocate(context, texels.size());
    if (!memory) return tl::unexpected(memory.error());
    if (auto done = memory->upload(texels, stream); !done) return tl::unexpected(done.error());
    resource.kind = kOfLinearMemory;
    resource.linear = {memory->handle(), format_of(spec.description.format), spec.description.channels, texels.size()};
    image.memory_.emplace(std::move(*memory));
  } else {
    const driver::CuArrayDescriptor description = array_description(spec);
    if (auto done = context->check(api.array_create(&image.array_, &description), "cuArray3DCreate"); !done)
      return tl::unexpected(done.error());
    driver::CuCopy3dSide host{};
    host.host = const_cast<uint8_t*>(texels.data());
    if (auto done = image.copy(host, true, stream); !done) return tl::unexpected(done.error());
    resource.kind = kOfArray;
    resource.array = image.array_;
  }
  if (spec.use == ImageUse::surface) {
    if (auto done = context->check(api.surface_create(&image.handle_, &resource), "cuSurfObjectCreate"); !done)
      return tl::unexpected(done.error());
  } else {
    const driver::CuTextureDescriptor sampling = texture_description(spec.sampling);
    if (auto done =
            context->check(api.texture_create(&image.handle_, &resource, &sampling, nullptr), "cuTexObjectCreate");
        !done)
      return tl::unexpected(done.error());
  }
  return image;
}

Result<void> GpuImage::bind(driver::CuModule module, const std::string& name) const {
  const driver::Api& api = context_->api();
  if (api.module_get_texture == nullptr || api.module_get_surface == nullptr || api.texture_set_array == nullptr ||
      api.texture_set_address_mode == nullptr || api.texture_set_filter_mode == nullptr ||
      api.texture_set_flags == nullptr || api.texture_set_border == nullptr || api.surface_set_array == nullptr)
    return fail("the driver cannot bind textures by name", name, "pass a handle");
  if (array_ == nullptr) return fail("a buffer has no name on a GPU", name, "pass its handle");
  if (const auto current = context_->make_current(); !current) return current;
  if (spec_.use == ImageUse::surface) {
    driver::CuSurfaceReference surface = nullptr;
    if (auto done = context_->check(api.module_get_surface(&surface, module, name.c_str()), "cuModuleGetSurfRef");
        !done)
      return done;
    return context_->check(api.surface_set_array(surface, array_, 0), "cuSurfRefSetArray");
  }
  driver::CuTextureReference texture = nullptr;
  if (auto done = context_->check(api.module_get_texture(&texture, module, name.c_str()), "cuModuleGetTexRef"); !done)
    return done;
  driver::CuTextureDescriptor descriptor = texture_description(spec_.sampling);
  for (int axis = 0; axis < 3; ++axis)
    if (auto done = context_->check(api.texture_set_address_mode(texture, axis, descriptor.address_mode[axis]),
                                    "cuTexRefSetAddressMode");
        !done)
      return done;
  if (auto done =
          context_->check(api.texture_set_filter_mode(texture, descriptor.filter_mode), "cuTexRefSetFilterMode");
      !done)
    return done;
  if (auto done = context_->check(api.texture_set_flags(texture, descriptor.flags), "cuTexRefSetFlags"); !done)
    return done;
  if (auto done = context_->check(api.texture_set_border(texture, descriptor.border), "cuTexRefSetBorderColor"); !done)
    return done;
  return context_->check(api.texture_set_array(texture, array_, kFormatOfArray), "cuTexRefSetArray");
}

Result<void> GpuImage::copy(driver::CuCopy3dSide host, bool to_array, const driver::Stream& stream) const {
  const auto& is = spec_.description;
  host.memory_type = kHostMemory;
  host.pitch_bytes = size_t{is.width} * is.texel_bytes();
  host.height = is.height;
  driver::CuCopy3dSide array{};
  array.memory_type = kArrayMemory;
  array.array = array_;
  const driver::CuCopy3d copy{to_array ? host : array, to_array ? array : host, host.pitch_bytes, is.height,
                              size_t{is.depth} * is.layers};
  if (const auto current = context_->make_current(); !current) return current;
  return context_->check(context_->api().memcpy_3d_async(&copy, stream.handle()), "cuMemcpy3DAsync");
}

Result<void> GpuImage::download(std::span<uint8_t> texels, const driver::Stream& stream) const {
  if (memory_) return memory_->download(texels, stream);
  driver::CuCopy3dSide host{};
  host.host = texels.data();
  return copy(host, false, stream);
}

}  // namespace ptxkit
