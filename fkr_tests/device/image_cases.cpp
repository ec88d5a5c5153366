// See image_cases.hpp.
#include "fkr_tests/device/image_cases.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <random>
#include <set>

#include <fmt/format.h>

#include "fkr_tests/device/form_cases.hpp"
#include "fkr_tests/device/spelled_form.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::testing {

namespace {

using emulator::AddressMode;
using emulator::ImageDescription;
using emulator::ImageShape;
using emulator::ImageUse;
using emulator::TexelFormat;
using ptx::Op;
using ptx::Type;

constexpr Op kOps[] = {Op::tex, Op::tld4, Op::txq, Op::suld, Op::sust, Op::sured, Op::suq};
constexpr size_t kInstructionsOfACase = 64;

// Words in a thread's row of `in`.
enum : unsigned {
  kPlace = 0,
  kLayer = 3,
  kData = 4,
  kGradientX = 12,
  kGradientY = 16,
  kOffset = 20,
  kLevel = 24,
  kNone = 25,
  kDepth = 26
};
constexpr unsigned kResident = 8;  // offset in `out`, after 32 bytes of data

struct Geometry {
  std::string_view word;
  ImageShape shape;
  unsigned axes;  // number of coordinates
  bool layered;
};
constexpr Geometry kGeometries[] = {
    {"1d", ImageShape::one_dim, 1, false},         {"2d", ImageShape::two_dim, 2, false},
    {"3d", ImageShape::three_dim, 3, false},       {"a1d", ImageShape::one_dim_array, 1, true},
    {"a2d", ImageShape::two_dim_array, 2, true},   {"cube", ImageShape::cube, 3, false},
    {"acube", ImageShape::cube_array, 3, true},    {"2dms", ImageShape::two_dim, 2, false},
    {"a2dms", ImageShape::two_dim_array, 2, true},
};

const Geometry* geometry_of(const SpelledForm& form) {
  const auto* const found =
      std::ranges::find_if(kGeometries, [&](const Geometry& each) { return form.has(each.word); });
  return found == std::end(kGeometries) ? nullptr : found;
}

// One instruction of the program.
struct Section {
  std::string instruction, text;
  CaseImage image;
  std::vector<uint32_t> in;  // the rows of all threads
};

ImageDescription description_of(ImageShape shape, TexelFormat format, unsigned channels) {
  ImageDescription is{.shape = shape, .width = 12, .height = 8, .format = format, .channels = channels};
  if (shape <= ImageShape::one_dim || shape == ImageShape::one_dim_array) is.height = 1;
  if (shape == ImageShape::three_dim) is.depth = 5;
  if (shape == ImageShape::one_dim_array || shape == ImageShape::two_dim_array) is.layers = 3;
  if (shape >= ImageShape::cube) {
    is.width = is.height = 8;
    is.layers = shape == ImageShape::cube ? 6 : 12;
  }
  return is;
}

bool is_floating(TexelFormat format) { return format == TexelFormat::f16 || format == TexelFormat::f32; }

// Finite texels; integers have random bits.
std::vector<uint8_t> random_texels(const ImageDescription& is, std::mt19937_64& random) {
  std::vector<uint8_t> bytes(is.size_bytes());
  const unsigned step = is.channel_bytes();
  for (size_t at = 0; at < bytes.size(); at += step) {
    uint64_t value = random();
    if (is.format == TexelFormat::f16) value = (value & 0x83ff) | (0x3000 + ((value >> 20) & 0x1fff));
    if (is.format == TexelFormat::f32) value = (value & 0x807fffff) | (uint64_t{120 + (value >> 40 & 15)} << 23);
    std::memcpy(bytes.data() + at, &value, step);
  }
  return bytes;
}

uint32_t size_of(const ImageDescription& is, unsigned axis) {
  return axis == 0 ? is.width : axis == 1 ? is.height : is.depth;
}

std::mt19937_64 seeded(std::string_view text, uint64_t number) {
  for (const char letter : text) number = number * 31 + static_cast<uint8_t>(letter);
  return std::mt19937_64(number);
}

// A list in braces of the first `count` registers.
std::string vector_of(std::string_view stem, unsigned count) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < count; ++i) names.push_back(fmt::format("%{}{}", stem, i));
  return fmt::format("{{{}}}", fmt::join(names, ", "));
}

bool has_samples(const Geometry& geometry) { return geometry.word.ends_with("ms"); }

// The coordinates as the instruction takes them: sample and layer first, padded to a length that exists.
std::string coordinates_of(const Geometry& geometry) {
  std::vector<std::string> names;
  if (has_samples(geometry)) names.emplace_back("%level0");
  if (geometry.layered) names.emplace_back("%layer");
  for (unsigned i = 0; i < geometry.axes; ++i) names.push_back(fmt::format("%c{}", i));
  if (names.size() == 3) names.push_back(names.back());
  return fmt::format("{{{}}}", fmt::join(names, ", "));
}

std::string load_words(std::string_view stem, unsigned word, unsigned count) {
  std::string text = fmt::format(".reg .b32 %{}<{}>;\n", stem, count);
  for (unsigned i = 0; i < count; ++i)
    text += fmt::format("ld.global.b32 %{}{}, [%from+{}];\n", stem, i, 4 * (word + i));
  return text;
}

std::string load_places(const Geometry& geometry) {
  std::string text = load_words("c", kPlace, geometry.axes);
  if (geometry.layered) text += fmt::format(".reg .b32 %layer;\nld.global.b32 %layer, [%from+{}];\n", 4 * kLayer);
  return text;
}

// A position on a texel, between two texels, or outside.
float coordinate(std::mt19937_64& random, uint32_t size, bool normalised) {
  const auto any = [&](double low, double high) {
    return low + (high - low) * (static_cast<double>(random() >> 11) * 0x1p-53);
  };
  const double place = random() % 4 == 0 ? static_cast<double>(random() % (2 * size + 5)) / 2 - 1 : any(-2, size + 2.0);
  return static_cast<float>(normalised ? place / size : place);
}

// How a texture is fetched: the kind of coordinates, and the choice of level.
struct Fetch {
  TexelFormat format;
  unsigned channels;
  AddressMode mode;
  bool linear, normalised, integer;
};

// Integers are read with `.u32` and `.s32`, numbers with the other types.
std::span<const Fetch> fetches_of(Type type) {
  using enum AddressMode;
  using enum TexelFormat;
  static constexpr Fetch kUnsigned[] = {
      {u8, 4, clamp, false, false, true}, {u32, 2, wrap, false, true, false}, {u16, 1, border, false, false, true}};
  static constexpr Fetch kSigned[] = {{s16, 4, mirror, false, true, true}, {s32, 1, clamp, false, false, false}};
  static constexpr Fetch kNumbers[] = {{f32, 4, wrap, true, true, false},
                                       {f16, 4, clamp, true, false, false},
                                       {u8, 4, mirror, true, true, false},
                                       {s16, 2, clamp, false, false, false},
                                       {f32, 1, border, false, true, false}};
  if (type == Type::u32) return kUnsigned;
  if (type == Type::s32) return kSigned;
  return kNumbers;
}

CaseImage texture_of(const Fetch& fetch, ImageShape shape, bool by_integers, std::mt19937_64& random) {
  const ImageDescription is = description_of(shape, fetch.format, fetch.channels);
  const bool plain = by_integers && shape == ImageShape::buffer;
  return {ImageUse::texture,
          is,
          {.address = plain ? AddressMode::clamp : fetch.mode,
           .linear = fetch.linear && !by_integers,
           .normalised = !by_integers && (fetch.normalised || shape >= ImageShape::cube),
           .reads_integer = fetch.integer,
           .border = {.25F, .5F, .75F, 1.F}},
          random_texels(is, random)};
}

// Adds the rows of a fetch: position, gradients, offsets, level.
void add_places(Section& section, const Geometry& geometry, bool by_integers, bool mixed_levels,
                std::mt19937_64& random) {
  const ImageDescription& is = section.image.description;
  section.in.resize(kImageThreads * kImageInBytes / 4);
  for (unsigned thread = 0; thread < kImageThreads; ++thread) {
    uint32_t* const row = section.in.data() + thread * kImageInBytes / 4;
    for (unsigned axis = 0; axis < geometry.axes; ++axis) {
      const uint32_t size = size_of(is, axis);
      if (by_integers) {
        row[kPlace + axis] = static_cast<uint32_t>(random() % (size + 4)) - 2;
      } else if (is.shape >= ImageShape::cube) {
        row[kPlace + axis] = std::bit_cast<uint32_t>(coordinate(random, 2, true) - 0.5F);
      } else {
        row[kPlace + axis] = std::bit_cast<uint32_t>(coordinate(random, size, section.image.sampling.normalised));
      }
      row[kOffset + axis] = static_cast<uint32_t>(random() % 16) - 8;
    }
    row[kLayer] = static_cast<uint32_t>(random() % 4);
    for (unsigned i = 0; i < 4; ++i) {
      row[kGradientX + i] = std::bit_cast<uint32_t>(coordinate(random, 4, true));
      row[kGradientY + i] = std::bit_cast<uint32_t>(coordinate(random, 4, true));
    }
    row[kDepth] = std::bit_cast<uint32_t>(coordinate(random, 4, true));
    const int level = mixed_levels ? static_cast<int>(random() % 4) - 1 : 0;
    row[kLevel] =
        by_integers ? static_cast<uint32_t>(level) : std::bit_cast<uint32_t>(static_cast<float>(level) * .75F);
  }
}

// The operands of tex and tld4 after the coordinates: none; the residency predicate, offsets or a level; or a depth for
// comparison.
enum class Behind { nothing, more, depth };

Section fetch_section(const SpelledForm& form, const Fetch& fetch, Behind behind) {
  const Geometry& geometry = *geometry_of(form);
  const bool with_more = behind == Behind::more;
  const Type type = form.types[0];
  const bool by_integers = form.types[1] == Type::s32;
  const bool has_offsets = with_more && geometry.shape < ImageShape::cube;
  const unsigned count = type == Type::f16x2 ? 2 : 4, bits = type == Type::f16 ? 16 : 32;
  Section out;
  out.instruction = form.spelling + " " + vector_of("d", count);
  if (with_more) out.instruction += "|%resident";
  out.instruction += ", [%image, " + coordinates_of(geometry) + "]";
  out.text = load_places(geometry);
  const unsigned vector = geometry.axes == 3 ? 4 : geometry.axes;
  if (form.has("level") || has_samples(geometry)) out.text += load_words("level", kLevel, 1);
  if (form.has("level")) out.instruction += ", %level0";
  if (form.has("grad")) {
    out.text += load_words("dx", kGradientX, vector) + load_words("dy", kGradientY, vector);
    out.instruction += ", " + vector_of("dx", vector) + ", " + vector_of("dy", vector);
  }
  if (has_offsets) {
    out.text += load_words("offset", kOffset, vector);
    out.instruction += ", " + vector_of("offset", vector);
  }
  if (behind == Behind::depth) {
    out.text += load_words("depth", kDepth, 1);
    out.instruction += ", %depth0";
  }
  out.instruction += ";";
  out.text +=
      fmt::format(".reg .b{0} %d<4>;\n.reg .pred %resident;\n.reg .b32 %flag;\n", bits) + out.instruction + "\n";
  for (unsigned i = 0; i < count; ++i)
    out.text += fmt::format("st.global.b{} [%to+{}], %d{};\n", bits, i * bits / 8, i);
  if (with_more)
    out.text += fmt::format("selp.b32 %flag, 1, 2, %resident;\nst.global.b32 [%to+{}], %flag;\n", 4 * kResident);
  const bool is_buffer = by_integers && geometry.shape == ImageShape::one_dim;
  std::mt19937_64 random = seeded(out.instruction, static_cast<unsigned>(fetch.format));
  out.image = texture_of(fetch, is_buffer ? ImageShape::buffer : geometry.shape, by_integers, random);
  add_places(out, geometry, by_integers, with_more, random);
  return out;
}

// suld, sust and sured: how an access is placed in the texels.
struct Elements {
  TexelFormat format = TexelFormat::u32;
  unsigned channels = 1;
};

// Adds rows of coordinates, and of data for stores. Every store has a place of its own: a thread that clamping would
// send to a place of another thread's store takes another one.
void add_elements(Section& section, const SpelledForm& form, const Geometry& geometry, unsigned access_bytes,
                  std::mt19937_64& random) {
  const ImageDescription& is = section.image.description;
  const bool formatted = form.has("p"), traps = form.has("trap"), clamps = form.has("clamp");
  const unsigned step = formatted ? is.texel_bytes() : access_bytes;  // bytes from one place to the next in a row
  const auto columns = static_cast<int64_t>(is.width) * is.texel_bytes() / step;
  const int64_t sizes[] = {columns, is.height, is.depth, is.layers};
  std::set<std::array<int64_t, 4>> taken;
  section.in.resize(kImageThreads * kImageInBytes / 4);
  for (unsigned thread = 0; thread < kImageThreads; ++thread) {
    uint32_t* const row = section.in.data() + thread * kImageInBytes / 4;
    std::array<int64_t, 4> place{};
    bool stored = true;
    for (unsigned attempt = 0;; ++attempt) {
      std::array<int64_t, 4> target{};
      stored = true;
      for (unsigned axis = 0; axis < 4; ++axis) {
        const bool used = axis < geometry.axes || (axis == 3 && geometry.layered);
        // Layers below the first one are used by loads only.
        const int64_t below = axis == 3 && form.form->op != Op::suld ? 0 : 3;
        const auto size = static_cast<uint64_t>(sizes[axis]);
        place[axis] = !used                        ? 0
                      : traps || random() % 4 != 0 ? static_cast<int64_t>(random() % size)
                                                   : static_cast<int64_t>(random() % (size + 6)) - below;
        stored &= place[axis] >= 0 && place[axis] < sizes[axis];
        target[axis] = std::clamp<int64_t>(place[axis], 0, sizes[axis] - 1);
      }
      stored |= clamps;
      if (form.form->op != Op::sust || !stored || taken.insert(target).second) break;
      if (attempt < 200) continue;
      place[0] = 0;  // no place is left: this thread stores nothing
      row[kNone] = 1;
      break;
    }
    for (unsigned axis = 0; axis < 3; ++axis) row[kPlace + axis] = static_cast<uint32_t>(place[axis]);
    if (!formatted) row[kPlace] = static_cast<uint32_t>(place[0] * step);
    row[kLayer] = static_cast<uint32_t>(place[3]);
    for (unsigned i = 0; i < 8; ++i) {
      row[kData + i] = static_cast<uint32_t>(random());
      if (formatted && is_floating(is.format))
        row[kData + i] = (row[kData + i] & 0x807fffff) | static_cast<uint32_t>(105 + random() % 40) << 23;
      if (formatted && !is_floating(is.format) && random() % 2 != 0) row[kData + i] %= 200;
    }
  }
}

Section surface_section(const SpelledForm& form, const Elements& elements) {
  const Geometry& geometry = *geometry_of(form);
  const unsigned bits = ptx::bit_width(form.type()), declared = std::max(16u, bits);
  const Op op = form.form->op;
  Section out;
  const std::string place = "[%image, " + coordinates_of(geometry) + "]";
  const std::string data = form.vector > 1 ? vector_of("d", form.vector) : "%d0";
  out.instruction = op == Op::suld ? fmt::format("{} {}, {};", form.spelling, data, place)
                                   : fmt::format("{} {}, {};", form.spelling, place, data);
  out.text = load_places(geometry) + fmt::format(".reg .b{} %d<4>;\n.reg .b32 %none;\n.reg .pred %skip;\n", declared);
  const auto data_at = [&](unsigned i) { return 4 * kData + i * std::max(bits, 32u) / 8; };
  for (unsigned i = 0; op != Op::suld && i < form.vector; ++i)
    out.text += fmt::format("ld.global.b{0} %d{1}, [%from+{2}];\n", declared, i, data_at(i));
  if (op == Op::sust)
    out.text += fmt::format("ld.global.b32 %none, [%from+{}];\nsetp.ne.u32 %skip, %none, 0;\n@!%skip ", 4 * kNone);
  out.text += out.instruction + "\n";
  for (unsigned i = 0; op == Op::suld && i < form.vector; ++i)
    out.text += fmt::format("st.global.b{} [%to+{}], %d{};\n", declared, i * declared / 8, i);
  std::mt19937_64 random = seeded(out.instruction, 8 * static_cast<unsigned>(elements.format) + elements.channels);
  ImageDescription is = description_of(geometry.shape, elements.format, elements.channels);
  if (geometry.axes == 1) is.width = 100;
  out.image = {ImageUse::surface, is, {}, random_texels(is, random)};
  add_elements(out, form, geometry, bits / 8 * form.vector, random);
  return out;
}

// Texels as long as the access, and longer ones; for .p every format that the data fit.
std::vector<Elements> elements_of(const SpelledForm& form) {
  using enum TexelFormat;
  const unsigned bytes = ptx::byte_width(form.type());
  if (form.form->op == Op::sured) {
    if (form.has("p")) return {{u32, 1}, {s32, 1}};
    const TexelFormat format = form.type() == Type::s32 || form.type() == Type::s64 ? s32 : u32;
    return {{format, bytes / 4}, {format, 4}};
  }
  std::vector<Elements> all;
  if (form.has("p")) {
    for (const TexelFormat format : {u8, u16, u32, s8, s16, s32, f16, f32}) {
      all.push_back({format, form.vector});
      if (form.vector > 1) all.push_back({format, 1});
    }
    return all;
  }
  if (bytes * form.vector > 16) return all;  // ptxas: "Vector type too large, exceeds 128 bit limit"
  const TexelFormat format = bytes == 1 ? u8 : bytes == 2 ? u16 : u32;
  all.push_back({format, bytes == 8 ? 2 * form.vector : form.vector});
  if (bytes * form.vector < 16) all.push_back({u32, 4});
  return all;
}

std::vector<CaseImage> questioned_images(ImageUse use) {
  using enum AddressMode;
  using enum TexelFormat;
  struct Questioned {
    ImageShape shape;
    Fetch fetch;
  };
  static constexpr Questioned kAll[] = {
      {ImageShape::one_dim, {u8, 1, clamp, false, false, false}},
      {ImageShape::two_dim, {f32, 4, wrap, true, true, false}},
      {ImageShape::three_dim, {s16, 2, mirror, true, true, false}},
      {ImageShape::one_dim_array, {u32, 4, clamp, false, false, false}},
      {ImageShape::two_dim_array, {f16, 1, border, true, false, false}},
      {ImageShape::two_dim, {u16, 4, border, false, true, false}},
      {ImageShape::two_dim, {s8, 2, clamp, false, true, true}},
      {ImageShape::one_dim, {s32, 1, wrap, false, true, false}},
      {ImageShape::three_dim, {u8, 4, clamp, false, false, true}},
      {ImageShape::two_dim, {s8, 4, clamp, true, false, false}},
      {ImageShape::two_dim, {u16, 1, clamp, false, false, true}},
      {ImageShape::two_dim, {s16, 4, clamp, false, false, true}},
      {ImageShape::cube, {f32, 1, clamp, true, true, false}},
      {ImageShape::cube_array, {f16, 4, clamp, false, true, false}},
      {ImageShape::buffer, {f32, 2, clamp, false, false, false}},
  };
  std::vector<CaseImage> images;
  std::mt19937_64 random(1);
  for (const auto& [shape, fetch] : kAll) {
    CaseImage image = texture_of(fetch, shape, false, random);
    image.use = use;
    if (use == ImageUse::surface && (shape == ImageShape::buffer || shape >= ImageShape::cube)) continue;
    images.push_back(std::move(image));
  }
  return images;
}

Section question_section(const SpelledForm& form, const CaseImage& image) {
  Section out;
  out.image = image;
  const bool of_level = form.has("level");
  out.instruction = form.spelling + " %d0, [%image]" + (of_level ? ", %level0;" : ";");
  out.text = ".reg .b32 %d<1>;\n" + (of_level ? load_words("level", kLevel, 1) : "") + out.instruction +
             "\nst.global.b32 [%to], %d0;\n";
  out.in.resize(kImageThreads * kImageInBytes / 4);
  for (unsigned thread = 0; thread < kImageThreads; ++thread)
    out.in[thread * kImageInBytes / 4 + kLevel] = thread < kImageThreads / 2 ? 0 : thread % 4;
  return out;
}

std::vector<Section> sections_of(const SpelledForm& form) {
  std::vector<Section> all;
  const Op op = form.form->op;
  if (op == Op::txq || op == Op::suq) {
    if (!form.has("width") && !form.has("height") && !form.has("depth")) return all;
    for (const CaseImage& image : questioned_images(op == Op::txq ? ImageUse::texture : ImageUse::surface))
      all.push_back(question_section(form, image));
  } else if (op == Op::tex || op == Op::tld4) {
    const bool compares = form.types[1] == Type::f32 && !form.has("3d");
    for (const Fetch& fetch : fetches_of(form.types[0])) {
      for (const Behind behind : {Behind::nothing, Behind::more}) all.push_back(fetch_section(form, fetch, behind));
      if (compares) all.push_back(fetch_section(form, fetch, Behind::depth));
    }
  } else {
    for (const Elements& elements : elements_of(form)) all.push_back(surface_section(form, elements));
  }
  return all;
}

// If `by_name`, the images are those of variables.
std::string program(std::vector<Section>& sections, bool by_name) {
  std::string variables;
  for (size_t i = 0; by_name && i < sections.size(); ++i) {
    variables +=
        fmt::format(".global .{} image{};\n", sections[i].image.use == ImageUse::surface ? "surfref" : "texref", i);
    for (std::string* text : {&sections[i].instruction, &sections[i].text})
      text->replace(text->find("%image"), 6, fmt::format("image{}", i));
  }
  std::string text = fmt::format(
      ".version 8.6\n.target sm_90a\n.address_size 64\n{}"
      ".visible .entry images(.param .u64 in, .param .u64 out, .param .u64 handles) .reqntid {}\n{{\n"
      ".reg .b32 %thread;\n.reg .b64 %from, %to, %handles, %wide, %image;\n"
      "mov.u32 %thread, %tid.x;\nld.param.u64 %from, [in];\nld.param.u64 %to, [out];\n"
      "ld.param.u64 %handles, [handles];\nmul.wide.u32 %wide, %thread, {};\nadd.u64 %from, %from, %wide;\n"
      "mul.wide.u32 %wide, %thread, {};\nadd.u64 %to, %to, %wide;\n",
      variables, kImageThreads, kImageInBytes, kImageOutBytes);
  for (size_t i = 0; i < sections.size(); ++i) {
    if (!by_name) text += fmt::format("ld.global.u64 %image, [%handles+{}];\n", 8 * i);
    text += "{\n" + sections[i].text + "}\n";
    if (i + 1 == sections.size()) break;
    text += fmt::format("add.u64 %from, %from, {};\nadd.u64 %to, %to, {};\n", kImageThreads * kImageInBytes,
                        kImageThreads * kImageOutBytes);
  }
  return text + "ret;\n}\n";
}

std::span<const std::byte> bytes_of(const std::vector<uint8_t>& values) { return std::as_bytes(std::span(values)); }

}  // namespace

std::span<const Op> image_ops() { return kOps; }

std::vector<ImageCase> image_cases(Op op) {
  std::vector<ImageCase> cases;
  const bool is_question = op == Op::txq || op == Op::suq;
  for (const ptx::Form& form : ptx::forms_of(op)) {
    const auto add = [&](std::vector<Section>& sections, const std::string& which, bool by_name) {
      ImageCase each;
      each.name = fmt::format("{} {} ({}){}", text(form.op), form.modifiers, form.operands, which);
      each.is_named = by_name;
      each.ptx = program(sections, by_name);
      for (Section& section : sections) {
        each.instructions.push_back(std::move(section.instruction));
        const auto rows = std::as_bytes(std::span(section.in));
        const auto* const first = reinterpret_cast<const uint8_t*>(rows.data());
        each.in.insert(each.in.end(), first, first + rows.size());
        each.images.push_back(std::move(section.image));
      }
      cases.push_back(std::move(each));
      sections.clear();
    };
    std::vector<Section> sections;
    unsigned part = 0;
    for (const SpelledForm& one : spell_form(form, 64)) {
      // Queries are alone in their program: a driver refuses a query that it does not know with the whole program.
      const std::string which = is_question ? fmt::format(", {}", one.words[one.words.size() - 2]) : "";
      for (Section& section : sections_of(one)) {
        sections.push_back(std::move(section));
        if (!is_question && sections.size() == kInstructionsOfACase)
          add(sections, fmt::format(", part {}", ++part), false);
      }
      if (is_question && !sections.empty()) add(sections, which, false);
      // The first of each row is also run by name. Linear memory has no name.
      if (one.number != 0 && !is_question) continue;
      std::vector<Section> named = sections_of(one);
      std::erase_if(named, [](const Section& each) { return each.image.description.shape == ImageShape::buffer; });
      if (!named.empty()) add(named, which + ", by name", true);
    }
    if (!sections.empty()) add(sections, fmt::format(", part {}", ++part), false);
  }
  return cases;
}

Result<ImageResult> emulate_images(const ImageCase& each) {
  emulator::Device device({.memory_bytes = uint64_t{64} << 20});
  auto program = emulator::Program::load_text(device, each.ptx, "images.ptx");
  if (!program) return tl::unexpected(program.error());
  std::vector<uint64_t> handles;
  std::vector<emulator::Address> texels;
  for (const CaseImage& image : each.images) {
    const auto data = device.allocate(image.texels.size(), "texels");
    if (!data) return tl::unexpected(data.error());
    (void)device.write(*data, bytes_of(image.texels));
    const auto handle = image.use == ImageUse::surface ? device.make_surface(*data, image.description)
                                                       : device.make_texture(*data, image.description, image.sampling);
    if (!handle) return tl::unexpected(handle.error());
    texels.push_back(*data);
    handles.push_back(*handle);
  }
  for (size_t i = 0; each.is_named && i < handles.size(); ++i)
    if (const auto bound = program->write(fmt::format("image{}", i), std::as_bytes(std::span(&handles[i], 1))); !bound)
      return tl::unexpected(bound.error());
  const auto in = device.allocate(each.in.size(), "in"), out = device.allocate(each.out_bytes(), "out"),
             table = device.allocate(handles.size() * 8, "handles");
  if (!in || !out || !table) return fail("no memory for the case");
  (void)device.write(*in, bytes_of(each.in));
  (void)device.fill(*out, std::byte{0}, each.out_bytes());
  (void)device.write(*table, std::as_bytes(std::span(handles)));
  const std::vector<emulator::Argument> arguments{emulator::Argument::of(*in), emulator::Argument::of(*out),
                                                  emulator::Argument::of(*table)};
  auto outcome = emulator::launch(*program, "images", {.block = {kImageThreads}}, arguments);
  if (!outcome) return tl::unexpected(outcome.error());
  if (!outcome->ok()) return fail(emulator::render(outcome->faults.front(), "images.ptx"));
  ImageResult left;
  left.out.resize(each.out_bytes());
  (void)device.read(*out, std::as_writable_bytes(std::span(left.out)));
  for (size_t i = 0; i < texels.size(); ++i) {
    left.texels.emplace_back(each.images[i].texels.size());
    (void)device.read(texels[i], std::as_writable_bytes(std::span(left.texels.back())));
  }
  return left;
}

std::string_view image_exception(const ImageCase& each, size_t i) {
  const std::string_view instruction = each.instructions[i];
  if (each.name.starts_with("tex .base .cube .v4 .{") && i == 15)
    return "ptxas 13.0 divides a direction by an approximate reciprocal: one thread's place is 1/256 of a texel "
           "further";
  const std::string_view spelling = instruction.substr(0, instruction.find(' '));
  if (spelling.starts_with("tex.grad.") && spelling.ends_with(".s32"))
    return "ptxas 13.0 takes the bits of integer coordinates for a number beside gradients (`TXD`)";
  if (spelling.starts_with("tex.grad.1d.") && instruction.ends_with("%depth0;"))
    return "with a depth beside gradients a line gives zeros";
  return {};
}

std::string image_hashes(const ImageCase& each, const ImageResult& result) {
  std::string text;
  constexpr size_t kRows = size_t{kImageThreads} * kImageOutBytes;
  for (size_t i = 0; i < each.instructions.size(); ++i) {
    const auto rows = std::span(result.out).subspan(i * kRows, kRows);
    const uint64_t hash = form_hash(rows) * 31 + form_hash(result.texels[i]);
    text += fmt::format("{:06x}", hash & 0xffffff);
  }
  return text;
}

}  // namespace ptxkit::testing
