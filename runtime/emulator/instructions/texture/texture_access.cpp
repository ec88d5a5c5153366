// tex, tld4, txq, suq, suld, sust, sured: resolves handles to images and lanes to texels, with the sanitizer. PTX ISA
// 9.0, 9.7.10 and 9.7.11.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/core/scalar.hpp"
#include "runtime/emulator/instructions/memory/access.hpp"
#include "runtime/emulator/sanitizer/undefined_output.hpp"
#include "runtime/emulator/sanitizer/undefined_update.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Space;
using ptx::Type;

bool is_query(const TextureForm& form) { return form.query != Mod::unknown; }

// The operands of one instruction for each of its lanes.
class Access {
 public:
  Access(Warp& warp, const Code& code, uint32_t mask)
      : warp_(warp),
        code_(code),
        launch_(*warp.cta->launch),
        form_(launch_.image->textures[code.target]),
        refs_(launch_.image->refs.data()),
        mask_(mask) {}

  const TextureForm& form() const { return form_; }
  Memory& memory() const { return *launch_.memory; }
  Ref data(unsigned i) const { return refs_[form_.data.first + i]; }

  bool wants(uint32_t check) const { return (launch_.options.checks & check) != 0; }

  void fail(FaultKind kind, unsigned lane, std::string message) const {
    report(warp_, {.kind = kind, .message = std::move(message), .lane = lane});
  }

  // The image of the lane's handle, which must have the instruction's use. Returns null after a fault.
  const Image* image(const HandleOperand& operand, unsigned lane, ImageUse use) const {
    uint64_t handle = operand.offset;
    if (operand.from == HandleOperand::From::reg) {
      handle = at<const uint64_t>(warp_, operand.ref)[lane];
      if (handle >= kGlobalBase && handle - kGlobalBase + 8 <= memory().limit) handle = stored(handle);
    } else if (operand.from == HandleOperand::From::global) {
      handle = stored(operand.offset);
    } else {
      std::memcpy(&handle, launch_.parameters.data() + operand.offset, sizeof handle);
    }
    const FaultKind kind = use == ImageUse::surface ? FaultKind::surface_handle : FaultKind::texture_handle;
    const Image* found = memory().image(handle);
    static constexpr std::string_view kUses[] = {"texture", "surface", "sampler"};
    if (!found) {
      fail(kind, lane, fmt::format("{:#x} is not a handle of a {}", handle, kUses[static_cast<unsigned>(use)]));
    } else if (found->use != use) {
      fail(kind, lane,
           fmt::format("the handle is that of a {}, the instruction needs a {}",
                       kUses[static_cast<unsigned>(found->use)], kUses[static_cast<unsigned>(use)]));
    } else if (use != ImageUse::sampler && !is_query(form_) && found->description.shape != form_.shape &&
               !(form_.shape == ImageShape::one_dim && found->description.shape == ImageShape::buffer)) {
      fail(kind, lane, "the geometry of the instruction is not that of the image");
    } else if (use != ImageUse::sampler && !is_live(*found)) {
      report(warp_, {.kind = FaultKind::use_after_free,
                     .message = "the memory of the image has been freed",
                     .lane = lane,
                     .has_address = true,
                     .space = Space::global,
                     .address = kGlobalBase + found->offset});
    } else {
      return found;
    }
    return nullptr;
  }

  // Coordinates, offsets and handles determine the address: undefined ones are reported as undefined addresses.
  void check_places() const {
    if (!wants(kCheckUninitialised) || !warp_.undefined[0]) return;
    auto look = [&](Ref ref) {
      if (const uint32_t lanes = undefined_lanes(warp_, ref) & mask_)
        report_undefined(warp_, FaultKind::uninitialised_address, ref, lanes);
    };
    for (const RegisterList& list : {form_.coordinates, form_.offsets})
      for (unsigned i = 0; i < list.count; ++i) look(refs_[list.first + i]);
    for (const Ref ref : {form_.layer, form_.level, form_.sample})
      if (ref != kNoRef) look(ref);
    for (const HandleOperand& each : {form_.image, form_.sampler})
      if (each.from == HandleOperand::From::reg) look(each.ref);
  }

  // Whether the lane names a level and a sample that exist: the first ones. Buffers have no levels.
  bool exists(unsigned lane, bool of_buffer) const {
    for (const Ref ref : {of_buffer ? kNoRef : form_.level, form_.sample})
      if (ref != kNoRef && at<const uint32_t>(warp_, ref)[lane] != 0) return false;
    return true;
  }
  uint32_t layer(unsigned lane) const { return at<const uint32_t>(warp_, form_.layer)[lane]; }
  int32_t integer(unsigned i, unsigned lane) const {
    return at<const int32_t>(warp_, refs_[form_.coordinates.first + i])[lane];
  }

  FetchPoint point(unsigned lane) const {
    FetchPoint out;
    for (unsigned i = 0; i < std::min(form_.coordinates.count, 3u); ++i)
      out.coordinate[i] = at<const float>(warp_, refs_[form_.coordinates.first + i])[lane];
    for (unsigned i = 0; i < std::min(form_.offsets.count, 3u); ++i)
      out.offset[i] = at<const int32_t>(warp_, refs_[form_.offsets.first + i])[lane];
    if (form_.shape == ImageShape::one_dim && out.offset[0] < 0) out.offset[1] = -1;  // the sign also selects the row
    out.layer = layer(lane);
    return out;
  }
  // Buffers ignore offsets.
  std::array<int32_t, 3> texel(unsigned lane, bool of_buffer) const {
    std::array<int32_t, 3> out{};
    for (unsigned i = 0; i < std::min(form_.coordinates.count, 3u); ++i) {
      out[i] = integer(i, lane);
      if (!of_buffer && i < form_.offsets.count)
        out[i] += at<const int32_t>(warp_, refs_[form_.offsets.first + i])[lane];
    }
    return out;
  }

  void write(unsigned lane, const Channels& values, bool undefined) {
    for (unsigned i = 0; i < form_.data.count; ++i) {
      if (form_.type == Type::f16) {
        at<uint16_t>(warp_, data(i))[lane] = half(values[i]);
        continue;
      }
      uint32_t bits = values[i];
      if (form_.type == Type::f16x2) bits = uint32_t{half(values[2 * i])} | uint32_t{half(values[2 * i + 1])} << 16;
      at<uint32_t>(warp_, data(i))[lane] = bits;
    }
    if (undefined) undefined_ |= 1u << lane;
  }

  // Marks the results of undefined texels as undefined, as for loads.
  void mark(uint64_t address) {
    for (unsigned i = 0; i < form_.data.count; ++i) {
      undefined_lanes(warp_, data(i)) = (undefined_lanes(warp_, data(i)) & ~mask_) | undefined_;
      const size_t bytes = form_.type == Type::f16 ? 2 : 4;
      for_lanes(undefined_,
                [&](unsigned lane) { std::memset(shadow_at<uint8_t>(warp_, data(i)) + lane * bytes, 0xff, bytes); });
    }
    if (!undefined_) return;
    const uint32_t origin = add_origin(*warp_.cta, {warp_.pc, static_cast<uint8_t>(std::countr_zero(undefined_)),
                                                    static_cast<uint16_t>(warp_.index), Space::global, address});
    for (unsigned i = 0; i < form_.data.count; ++i) origin_of(warp_, data(i)) = origin;
  }

  // Records the texels that the lane read, for races. Returns whether any of them is undefined.
  bool note(unsigned lane, const Image& image, const Footprint& touched) {
    bool undefined = false;
    const unsigned bytes = image.description.texel_bytes();
    for (unsigned k = 0; k < touched.count; ++k) {
      const uint64_t offset = image.offset + touched.texels[k];
      for (unsigned byte = 0; byte < bytes; ++byte) undefined |= memory().shadow[offset + byte] != 0xff;
      Places places;
      places.history[lane] = launch_.history.get();
      places.owner[lane] = nullptr;
      places.offset[lane] = offset;
      if (warp_.cta->order) note_read(warp_, code_, lane, places, bytes);
    }
    return undefined;
  }

 private:
  static uint16_t half(uint32_t bits) { return scalar::f16_bits(static_cast<double>(std::bit_cast<float>(bits))); }

  uint64_t stored(uint64_t address) const {
    uint64_t handle = 0;
    std::memcpy(&handle, memory().bytes + (address - kGlobalBase), sizeof handle);
    return handle;
  }
  bool is_live(const Image& image) const {
    const Object* object = memory().table.find(image.offset);
    return object && object->live;
  }

  Warp& warp_;
  const Code& code_;
  const Launch& launch_;
  const TextureForm& form_;
  const Ref* refs_;
  uint32_t mask_;
  uint32_t undefined_ = 0;
};

template <bool kGather>
void sample(Warp& warp, const Code& code, uint32_t mask) {
  Access access(warp, code, mask);
  const TextureForm& form = access.form();
  const bool checked = warp.undefined[0] != nullptr;
  if (checked) access.check_places();
  uint64_t first = 0;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const Image* image = access.image(form.image, lane, ImageUse::texture);
    if (!image) return;
    Sampling sampling = image->sampling;
    if (form.sampler.from != HandleOperand::From::none) {
      const Image* sampler = access.image(form.sampler, lane, ImageUse::sampler);
      if (!sampler) return;
      sampling.address = sampler->sampling.address;
      sampling.linear = sampler->sampling.linear;
      sampling.border = sampler->sampling.border;
    }
    const bool from_buffer = image->description.shape == ImageShape::buffer;
    if (form.shape == ImageShape::one_dim && from_buffer != form.integer_coordinates && access.wants(kCheckBounds)) {
      access.fail(FaultKind::texture_handle, lane,
                  from_buffer ? "a buffer takes .s32 coordinates only"
                              : "a 1D array gives zeros with .s32 coordinates; only a buffer takes them");
      return;
    }
    const uint8_t* texels = access.memory().bytes + image->offset;
    Footprint touched;
    Channels values{};
    if constexpr (kGather)
      values = gather(*image, sampling, texels, access.point(lane), form.channel, touched);
    else if (!form.integer_coordinates)
      values = fetch(*image, sampling, texels, access.point(lane), touched);
    else if ((form.shape != ImageShape::one_dim || from_buffer) && access.exists(lane, from_buffer))
      values = fetch_texel(*image, sampling, texels, access.texel(lane, from_buffer), access.layer(lane),
                           form.level != kNoRef, touched);
    const bool undefined = checked && access.note(lane, *image, touched);
    if (undefined) first = kGlobalBase + image->offset + touched.texels[0];
    access.write(lane, values, undefined);
  }
  if (checked) access.mark(first);
  if (form.resident != kNoRef) {
    *at<uint32_t>(warp, form.resident) |= mask;
    if (checked) undefined_lanes(warp, form.resident) &= ~mask;
  }
}

// Numbers of OpenCL, to which the ISA refers (PTX ISA 9.0, 5.3.2).
uint32_t channel_type(const Image& image) {
  const bool fraction = image.use == ImageUse::texture && !image.sampling.reads_integer;
  switch (image.description.format) {
    case TexelFormat::u8:
      return fraction ? 0x10d2 : 0x10da;
    case TexelFormat::u16:
      return fraction ? 0x10d3 : 0x10db;
    case TexelFormat::u32:
      return 0x10dc;
    case TexelFormat::s8:
      return fraction ? 0x10d0 : 0x10d7;
    case TexelFormat::s16:
      return fraction ? 0x10d1 : 0x10d8;
    case TexelFormat::s32:
      return 0x10d9;
    case TexelFormat::f16:
      return 0x10dd;
    default:
      return 0x10de;
  }
}

uint32_t query_value(const Image& image, Mod query) {
  const ImageDescription& is = image.description;
  const uint32_t layers = is.shape == ImageShape::cube_array ? is.layers / 6 : is.layers;
  static constexpr uint32_t kAddressModes[] = {0, 1, 3,
                                               4};  // of wrap, mirror, clamp_ogl, clamp_to_edge, clamp_to_border
  switch (query) {
    case Mod::width:
      return is.width;
    // For lines, planes and cubes the value after the width is their number, as on an H200.
    case Mod::height:
      if (is.shape == ImageShape::one_dim && image.use == ImageUse::surface) return 0;
      return is.shape == ImageShape::one_dim_array ? layers : is.shape == ImageShape::buffer ? 0 : is.height;
    case Mod::depth:
      if (is.shape == ImageShape::two_dim_array || is.shape == ImageShape::cube_array) return layers;
      return is.shape == ImageShape::three_dim ? is.depth : 0;
    case Mod::array_size:
      return layers;
    case Mod::channel_data_type:
      return channel_type(image);
    case Mod::channel_order:
      return is.channels == 1 ? 0x10b0 : is.channels == 2 ? 0x10b2 : 0x10b5;
    case Mod::normalized_coords:
      return image.sampling.normalised;
    case Mod::force_unnormalized_coords:
      return image.sampling.normalised ? 0 : 1;
    case Mod::filter_mode:
      return image.sampling.linear;
    case Mod::addr_mode_0:
    case Mod::addr_mode_1:
    case Mod::addr_mode_2:
      return kAddressModes[static_cast<unsigned>(image.sampling.address)];
    case Mod::num_mipmap_levels:
    case Mod::num_samples:
      return 1;
    default:
      return 0;  // also for memory_layout: images are arrays, whose layout is not linear
  }
}

void query(Warp& warp, const Code& code, uint32_t mask) {
  const Access access(warp, code, mask);
  const TextureForm& form = access.form();
  const bool checked = warp.undefined[0] != nullptr;
  if (checked) access.check_places();
  const ImageUse use = code.sub ? ImageUse::surface : ImageUse::texture;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    // In unified mode a texture contains its sampler.
    const Image* image = access.image(form.image, lane, form.of_sampler ? ImageUse::sampler : use);
    if (!image) return;
    at<uint32_t>(warp, access.data(0))[lane] = access.exists(lane, false) ? query_value(*image, form.query) : 0;
  }
  if (checked) undefined_lanes(warp, access.data(0)) &= ~mask;
}

// The lane's element of a surface, as an offset in device memory. Outside of the surface it does not exist and reads as
// zero. Returns false after a fault.
struct Element {
  bool exists = false;
  uint64_t offset = 0;
};
bool locate_element(const Access& access, const Image& image, unsigned lane, unsigned size_bytes, Element& out) {
  const TextureForm& form = access.form();
  const ImageDescription& is = image.description;
  const bool layered = is.shape == ImageShape::one_dim_array || is.shape == ImageShape::two_dim_array;
  const unsigned texel_bytes = is.texel_bytes();
  const int64_t row_bytes = int64_t{is.width} * texel_bytes;
  int64_t x = access.integer(0, lane);
  if (form.formatted) x *= texel_bytes;
  const int64_t width_bytes = form.formatted ? texel_bytes : size_bytes;
  if (!form.formatted && x % width_bytes != 0 && access.wants(kCheckAlignment)) {
    access.fail(FaultKind::misaligned, lane,
                fmt::format("byte {} of a row of the surface is not aligned to {}", x, width_bytes));
    return false;
  }
  int64_t i[] = {x, form.coordinates.count > 1 ? access.integer(1, lane) : 0,
                 form.coordinates.count > 2 ? access.integer(2, lane) : 0, layered ? int64_t{access.layer(lane)} : 0};
  const int64_t last[] = {row_bytes - width_bytes, int64_t{is.height} - 1, int64_t{is.depth} - 1,
                          int64_t{is.layers} - 1};
  bool inside = true;
  for (unsigned axis = 0; axis < 4; ++axis) {
    inside &= i[axis] >= 0 && i[axis] <= last[axis];
    if (form.out_of_range == OutOfRange::clamp)
      i[axis] = std::clamp<int64_t>(i[axis], 0, std::max<int64_t>(last[axis], 0));
  }
  out.exists = inside || form.out_of_range == OutOfRange::clamp;
  if (!inside && form.out_of_range == OutOfRange::trap && access.wants(kCheckBounds)) {
    access.fail(
        FaultKind::out_of_bounds, lane,
        fmt::format("({}, {}, {}) of layer {} is outside of the surface of {} x {} x {}, {} layers", i[0], i[1], i[2],
                    i[3], form.formatted ? int64_t{is.width} : row_bytes, is.height, is.depth, is.layers));
    return false;
  }
  if (out.exists)
    out.offset = image.offset + static_cast<uint64_t>(((i[3] * is.depth + i[2]) * is.height + i[1]) * row_bytes + i[0]);
  return true;
}

enum class SurfaceAction : uint8_t { load, store, update };

template <SurfaceAction kAction>
void surface(Warp& warp, const Code& code, uint32_t mask) {
  Access access(warp, code, mask);
  const TextureForm& form = access.form();
  const bool checked = warp.undefined[0] != nullptr;
  if (checked) access.check_places();
  const unsigned count = form.data.count, bytes = form.element_bytes;
  const unsigned size_bytes = bytes * count;
  const bool alone = warp.cta->launch->options.threads <= 1;
  Memory& memory = access.memory();
  uint32_t undefined[4] = {};
  uint64_t first_undefined = 0;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const Image* image = access.image(form.image, lane, ImageUse::surface);
    if (!image) return;
    Element element;
    if (!locate_element(access, *image, lane, size_bytes, element)) return;
    Places places;
    places.history[lane] = warp.cta->launch->history.get();
    places.owner[lane] = nullptr;
    places.offset[lane] = element.offset;
    uint8_t* texel = memory.bytes + element.offset;
    uint8_t* shadow = memory.shadow + element.offset;
    const unsigned touched = form.formatted ? image->description.texel_bytes() : size_bytes;
    auto value_of = [&](unsigned i) { return at<uint8_t>(warp, access.data(i)) + size_t{lane} * form.register_bytes; };
    auto is_undefined = [&](unsigned i) {
      if (!checked || !(undefined_lanes(warp, access.data(i)) >> lane & 1)) return false;
      const auto* const undefined_bits = shadow_at<uint8_t>(warp, access.data(i)) + size_t{lane} * form.register_bytes;
      return std::any_of(undefined_bits, undefined_bits + bytes, [](uint8_t bits) { return bits != 0; });
    };
    if constexpr (kAction == SurfaceAction::load) {
      for (unsigned i = 0; i < count; ++i) {
        std::memset(value_of(i), 0, form.register_bytes);
        if (!element.exists) continue;
        std::memcpy(value_of(i), texel + size_t{i} * bytes, bytes);
        if (!checked) continue;
        for (unsigned byte = 0; byte < bytes; ++byte)
          if (shadow[i * bytes + byte] != 0xff) undefined[i] |= 1u << lane;
        if (undefined[i]) first_undefined = kGlobalBase + element.offset;
      }
      if (checked && element.exists && warp.cta->order) note_read(warp, code, lane, places, touched);
      continue;
    }
    if (!element.exists) continue;
    if constexpr (kAction == SurfaceAction::store) {
      std::array<uint8_t, 32> before;
      std::memcpy(before.data(), texel, touched);
      if (form.formatted) {
        Channels values{};
        for (unsigned i = 0; i < count; ++i) std::memcpy(&values[i], value_of(i), 4);
        write_texel(image->description, texel, values, count);
      } else {
        for (unsigned i = 0; i < count; ++i) std::memcpy(texel + size_t{i} * bytes, value_of(i), bytes);
      }
      if (!checked) continue;
      const unsigned step = form.formatted ? image->description.channel_bytes() : bytes;
      bool changes = std::memcmp(before.data(), texel, touched) != 0;
      const Origin* origin = nullptr;
      for (unsigned i = 0; i < count && (i + 1) * step <= touched; ++i) {
        const uint8_t defined = is_undefined(i) ? 0 : 0xff;
        changes |= shadow[i * step] != defined;
        std::memset(shadow + size_t{i} * step, defined, step);
        if (defined == 0) origin = find_origin(*warp.cta, origin_of(warp, access.data(i)));
      }
      note_output(warp, lane, shadow, touched, origin);
      if (warp.cta->order) note_write(warp, code, lane, places, touched, !changes);
    } else {
      uint64_t operand = 0;
      std::memcpy(&operand, value_of(0), bytes);
      const bool is_signed =
          image->description.format >= TexelFormat::s8 && image->description.format <= TexelFormat::s32;
      const Update& update = is_signed ? form.signed_update : form.update;
      const uint64_t old = apply_update(update, texel, operand, 0, alone);
      if (!checked) continue;
      note_undefined_update(warp, update, {old, operand}, {.b = is_undefined(0) ? ~uint64_t{0} : 0}, shadow,
                            {lane, ptx::Space::global, kGlobalBase + element.offset});
      if (warp.cta->order) note_update(warp, code, lane, places, bytes);
    }
  }
  if constexpr (kAction == SurfaceAction::load) {
    if (!checked) return;
    for (unsigned i = 0; i < count; ++i) {
      undefined_lanes(warp, access.data(i)) = (undefined_lanes(warp, access.data(i)) & ~mask) | undefined[i];
      if (!undefined[i]) continue;
      for_lanes(undefined[i], [&](unsigned lane) {
        auto* const undefined_bits = shadow_at<uint8_t>(warp, access.data(i)) + size_t{lane} * form.register_bytes;
        std::memset(undefined_bits, 0, form.register_bytes);
        std::memset(undefined_bits, 0xff, bytes);
      });
      origin_of(warp, access.data(i)) =
          add_origin(*warp.cta, {warp.pc, static_cast<uint8_t>(std::countr_zero(undefined[i])),
                                 static_cast<uint16_t>(warp.index), Space::global, first_undefined});
    }
  }
}

// istypep: whether the operand is a handle of this use, or the address of a variable of this type.
void test_image(Warp& warp, const Code& code, uint32_t mask) {
  const Launch& launch = *warp.cta->launch;
  const auto use = static_cast<ImageUse>(code.sub);
  const auto& variables = launch.image->opaque_variables;
  uint32_t holds = 0;
  for_lanes(mask, [&](unsigned lane) {
    const uint64_t value = at<const uint64_t>(warp, code.a)[lane];
    const auto variable = variables.find(value);
    const Image* image = launch.memory->image(value);
    if (variable != variables.end() ? variable->second == use : image && image->use == use) holds |= 1u << lane;
  });
  uint32_t& d = *at<uint32_t>(warp, code.dst);
  d = (d & ~mask) | holds;
}

}  // namespace

void select_image_test(Code& code, ImageUse use) {
  code.sub = static_cast<uint8_t>(use);
  code.run = test_image;
}

void select_texture(Code& code, ptx::Op op) {
  switch (op) {
    case ptx::Op::tex:
      code.run = sample<false>;
      break;
    case ptx::Op::tld4:
      code.run = sample<true>;
      break;
    case ptx::Op::txq:
    case ptx::Op::suq:
      code.sub = op == ptx::Op::suq;
      code.run = query;
      break;
    case ptx::Op::suld:
      code.run = surface<SurfaceAction::load>;
      break;
    case ptx::Op::sust:
      code.run = surface<SurfaceAction::store>;
      break;
    default:
      code.run = surface<SurfaceAction::update>;
  }
}

}  // namespace ptxkit::emulator
