// Textures and surfaces: 55 configurations, equal to the bits of an H200 (fkr_tests/device/textures_h200.txt; FKR:
// falsification kernel regression), values computed by hand, and every fault.
#include "runtime/emulator/texture.hpp"

#include <bit>
#include <cstddef>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fkr_tests/device/form_cases.hpp"
#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "fkr_tests/unit/runtime/emulator/texture_programs.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::emulator {
namespace {

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> out;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    out.push_back(static_cast<std::byte>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return out;
}

const std::map<std::string, ImageShape> kShapes{{"1d", ImageShape::one_dim},
                                                {"2d", ImageShape::two_dim},
                                                {"3d", ImageShape::three_dim},
                                                {"a1d", ImageShape::one_dim_array},
                                                {"a2d", ImageShape::two_dim_array}};
const std::map<std::string, TexelFormat> kFormats{
    {"u8", TexelFormat::u8},   {"u16", TexelFormat::u16}, {"u32", TexelFormat::u32}, {"s8", TexelFormat::s8},
    {"s16", TexelFormat::s16}, {"s32", TexelFormat::s32}, {"f16", TexelFormat::f16}, {"f32", TexelFormat::f32}};
const std::map<std::string, AddressMode> kModes{{"wrap", AddressMode::wrap},
                                                {"clamp", AddressMode::clamp},
                                                {"mirror", AddressMode::mirror},
                                                {"border", AddressMode::border}};

struct Recorded {
  std::string geometry, name;
  ImageDescription description;
  Sampling sampling;
  std::vector<uint64_t> hashes;  // one for each instruction
  std::vector<std::byte> texels;
};

struct Records {
  std::vector<float> plain, normalised;  // coordinates: x, y, z of each thread
  std::vector<Recorded> cases;
};

Records read_records() {
  Records out;
  std::ifstream file(EMULATOR_TEST_FOLDER "/../../../device/textures_h200.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "coordinates") {
      words >> word;
      auto& to = out.plain.empty() ? out.plain : out.normalised;
      for (size_t i = 0; i + 8 <= word.size(); i += 8)
        to.push_back(std::bit_cast<float>(static_cast<uint32_t>(std::stoul(word.substr(i, 8), nullptr, 16))));
    } else if (word == "case") {
      Recorded each;
      std::string format, address, filter;
      unsigned flags = 0;
      uint32_t depth = 1;
      ImageDescription& is = each.description;
      words >> each.geometry >> format >> is.channels >> address >> filter >> flags >> is.width >> is.height >> depth;
      is.shape = kShapes.at(each.geometry);
      is.format = kFormats.at(format);
      (each.geometry[0] == 'a' ? is.layers : is.depth) = depth;
      each.sampling = {.address = kModes.at(address),
                       .linear = filter == "linear",
                       .normalised = (flags & 2) != 0,
                       .reads_integer = (flags & 1) != 0,
                       .border = {.25F, .5F, .75F, 1.F}};
      for (std::string hash; words >> hash;) each.hashes.push_back(std::stoull(hash, nullptr, 16));
      each.name = line.substr(0, line.find_last_of(' '));
      out.cases.push_back(each);
    } else if (word == "texels") {
      words >> word;
      out.cases.back().texels = from_hex(word);
    }
  }
  return out;
}

// Each thread fetches at its own coordinates with every instruction that was recorded for the case: tex by .f32, tld4
// of each channel for planes, tex by .s32.
const std::string kTexel = "{%r4, %r5, %r6, %r7}";

std::string fetch_text(const Recorded& each) {
  const TexelFormat format = each.description.format;
  const bool integer = each.sampling.reads_integer || format == TexelFormat::u32 || format == TexelFormat::s32;
  const std::string type = !integer ? "f32" : format >= TexelFormat::s8 ? "s32" : "u32";
  auto coordinates = [&](const std::string& x, const std::string& y, const std::string& z) {
    const std::string& g = each.geometry;
    if (g == "1d") return "{" + x + "}";
    if (g == "2d") return "{" + x + ", " + y + "}";
    if (g == "3d") return "{" + x + ", " + y + ", " + z + ", " + z + "}";
    if (g == "a1d") return "{%r2, " + x + "}";
    return "{%r2, " + x + ", " + y + ", " + y + "}";
  };
  auto tex = [&](const std::string& from, const std::string& at) {
    return "tex." + each.geometry + ".v4." + type + from + " " + kTexel + ", [%rd4, " + at + "];";
  };
  std::vector<std::string> instructions{tex(".f32", coordinates("%f0", "%f1", "%f2"))};
  if (each.geometry == "2d")
    for (const std::string channel : {"r", "g", "b", "a"})
      instructions.push_back("tld4." + channel + ".2d.v4." + type + ".f32 " + kTexel + ", [%rd4, {%f0, %f1}];");
  instructions.push_back(tex(".s32", coordinates("%r8", "%r9", "%r10")));
  std::string body =
      "  ld.global.u64 %rd4, [%rd1];\n  and.b32 %r2, %r0, 7;\n  mad.wide.u32 %rd5, %r0, 12, %rd1;\n"
      "  ld.global.f32 %f0, [%rd5+8];\n  ld.global.f32 %f1, [%rd5+12];\n  ld.global.f32 %f2, [%rd5+16];\n"
      "  cvt.rmi.s32.f32 %r8, %f0;\n  cvt.rmi.s32.f32 %r9, %f1;\n  cvt.rmi.s32.f32 %r10, %f2;\n"
      "  mad.wide.u32 %rd6, %r0, 16, %rd0;\n";
  for (size_t i = 0; i < instructions.size(); ++i)
    body += "  " + instructions[i] + fmt::format("\n  st.global.v4.b32 [%rd6+{}], ", i * 16 * 256) + kTexel + ";\n";
  return entry_text(body);
}

TEST(Texture, TheBitsAreThoseOfAnH200) {
  const Records records = read_records();
  ASSERT_EQ(records.cases.size(), 55u);
  size_t compared = 0;
  for (const Recorded& each : records.cases) {
    SCOPED_TRACE(each.name);
    Device device;
    const Address texels = *device.allocate(each.texels.size(), "texels");
    ASSERT_TRUE(device.write(texels, each.texels));
    const auto texture = device.make_texture(texels, each.description, each.sampling);
    ASSERT_TRUE(texture) << texture.error().message();
    const auto& coordinates = each.sampling.normalised ? records.normalised : records.plain;
    const Address in = *device.allocate(8 + coordinates.size() * 4, "in");
    ASSERT_TRUE(device.write(in, std::as_bytes(std::span(&*texture, 1))));
    ASSERT_TRUE(device.write(in + 8, bytes_of(coordinates)));
    const size_t out_bytes = each.hashes.size() * 16 * 256;
    const Address out = *device.allocate(out_bytes, "out");
    const auto program = Program::load_text(device, fetch_text(each), "fetch.ptx");
    ASSERT_TRUE(program) << program.error().message();
    // A one-dimensional array has no fetch by .s32: without the check it gives zeros, as there.
    LaunchOptions options;
    if (each.geometry == "1d") options.checks &= ~uint32_t{kCheckBounds};
    const auto outcome =
        launch(*program, "k", {.block = {256}}, std::vector{Argument::of(out), Argument::of(in)}, options);
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_TRUE(outcome->ok()) << render(*outcome, "fetch.ptx");
    std::vector<std::byte> result(out_bytes);
    ASSERT_TRUE(device.read(out, result));
    for (size_t i = 0; i < each.hashes.size(); ++i) {
      const auto* first = reinterpret_cast<const uint8_t*>(result.data()) + i * 16 * 256;
      EXPECT_EQ(ptxkit::testing::form_hash({first, 16 * 256}), each.hashes[i]) << "instruction " << i;
      ++compared;
    }
  }
  fmt::print("{} fetches of 256 threads bit for bit as on an H200\n", compared);
}

// A kernel with a handle in %rd4 and one image.
struct ImageRun {
  Outcome outcome;
  std::vector<uint32_t> out;
  std::vector<std::byte> texels;
};

struct ImageSetup {
  ImageDescription description = {};
  Sampling sampling = {};
  std::vector<std::byte> texels = {};
  bool surface = false, initialised = true, freed = false;
  LaunchShape shape = {};
  std::string before = {};
};

ImageRun run_image(const std::string& body, const ImageSetup& setup) {
  Device device;
  ImageRun run;
  const uint64_t size_bytes = setup.description.size_bytes();
  const Address texels = *device.allocate(size_bytes, "texels");
  if (setup.initialised) {
    std::vector<std::byte> data = setup.texels;
    data.resize(size_bytes);
    EXPECT_TRUE(device.write(texels, data));
  }
  const auto handle = setup.surface ? device.make_surface(texels, setup.description)
                                    : device.make_texture(texels, setup.description, setup.sampling);
  if (!handle) {
    ADD_FAILURE() << handle.error().message();
    return run;
  }
  const uint64_t sampler = device.make_sampler(setup.sampling);
  const Address in = *device.allocate(16, "in"), out = *device.allocate(4096, "out");
  EXPECT_TRUE(device.write(in, std::as_bytes(std::span(&*handle, 1))));
  EXPECT_TRUE(device.write(in + 8, std::as_bytes(std::span(&sampler, 1))));
  EXPECT_TRUE(device.fill(out, std::byte{0}, 4096));
  std::string text = entry_text("  ld.global.u64 %rd4, [%rd1];\n" + body, setup.before);
  if (setup.before.find(".samplerref") != std::string::npos)
    text.replace(text.find("sm_90\n"), 6, "sm_90, texmode_independent\n");
  const auto program = Program::load_text(device, text, "test.ptx");
  if (!program) {
    ADD_FAILURE() << program.error().message();
    return run;
  }
  for (const auto& [name, value] : {std::pair{"named", *handle}, std::pair{"how", sampler}})
    if (const auto variable = program->global(name)) {
      EXPECT_TRUE(device.write(variable->address, std::as_bytes(std::span(&value, 1))));
    }
  if (setup.freed) {
    EXPECT_TRUE(device.release(texels));
  }
  auto outcome = launch(*program, "k", setup.shape, std::vector{Argument::of(out), Argument::of(in)},
                        {.checks = kCheckStandard & ~kCheckOutputs});
  if (!outcome) {
    ADD_FAILURE() << outcome.error().message();
    return run;
  }
  run.outcome = std::move(*outcome);
  run.out.resize(1024);
  EXPECT_TRUE(device.read(out, std::as_writable_bytes(std::span(run.out))));
  run.texels.resize(size_bytes);
  if (!setup.freed) {
    EXPECT_TRUE(device.read(texels, run.texels));
  }
  return run;
}

std::vector<std::byte> words(std::vector<uint32_t> values) {
  const auto view = bytes_of(values);
  return {view.begin(), view.end()};
}

void expect_fault(const ImageRun& run, FaultKind kind, std::string_view part) {
  ASSERT_EQ(run.outcome.faults.size(), 1u) << render(run.outcome, "test.ptx");
  EXPECT_EQ(run.outcome.faults[0].kind, kind);
  EXPECT_NE(run.outcome.faults[0].message.find(part), std::string::npos) << run.outcome.faults[0].message;
}

const ImageDescription kWords{.shape = ImageShape::two_dim, .width = 4, .height = 2, .format = TexelFormat::u32};
const std::vector<std::byte> kEight = words({10, 11, 12, 13, 20, 21, 22, 23});
const std::string kFetch =
    "  tex.2d.v4.u32.s32 {%r4, %r5, %r6, %r7}, [%rd4, {%r2, %r3}];\n  st.global.u32 [%rd2], %r4;\n";
const std::string kAt21 = "  mov.b32 %r2, 1;\n  mov.b32 %r3, 1;\n";

// An H200 truncates a normalised coordinate to 21 bits before it multiplies. Three fetches of a mirrored line of 1000
// texels whose weight depends on it: coordinate, two texels with their places, result, all as bits.
TEST(Texture, NormalisedCoordinatesAreCutAsAnH200Does) {
  struct Fetch {
    uint32_t coordinate, left_place, left, right_place, right, result;
  };
  constexpr Fetch kAll[] = {{0xbf65972b, 897, 0xc0946a32, 896, 0xc0d00aeb, 0xc0bbc74c},
                            {0x3f270ebe, 652, 0xc00d74e7, 653, 0x410d06e7, 0xbfbd349d},
                            {0xbfa3af09, 720, 0x40915a62, 721, 0xbe7878f4, 0x3f8d32d0}};
  for (const Fetch& each : kAll) {
    std::vector<uint32_t> texels(1000);
    texels[each.left_place] = each.left;
    texels[each.right_place] = each.right;
    const ImageRun run = run_image(fmt::format("  mov.b32 %f0, {};\n", each.coordinate) +
                                       "  tex.1d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd4, {%f0}];\n"
                                       "  st.global.f32 [%rd2], %f4;\n",
                                   {.description = {.shape = ImageShape::one_dim, .width = 1000},
                                    .sampling = {.address = AddressMode::mirror, .linear = true, .normalised = true},
                                    .texels = words(texels)});
    EXPECT_TRUE(run.outcome.ok()) << render(run.outcome, "test.ptx");
    EXPECT_EQ(run.out[0], each.result);
  }
}

// Half of 1/256 of a texel beyond the middle of texel 1 counts as a whole one, as on an H200.
TEST(Texture, TiesOfCoordinatesGoUp) {
  const std::vector<float> ramp{0, 0, 256, 512};
  const auto view = bytes_of(ramp);
  const ImageRun run = run_image(
      "  mov.f32 %f0, 0f3fc04000;\n  tex.1d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd4, {%f0}];\n"
      "  st.global.f32 [%rd2], %f4;\n",
      {.description = {.shape = ImageShape::one_dim, .width = 4},
       .sampling = {.linear = true},
       .texels = {view.begin(), view.end()}});
  EXPECT_TRUE(run.outcome.ok()) << render(run.outcome, "test.ptx");
  EXPECT_EQ(std::bit_cast<float>(run.out[0]), 1.0F);
}

// .p truncates halves towards zero, as an H200 does; integers are clamped to their range.
TEST(Surface, FormattedStoresConvert) {
  const ImageDescription halves{
      .shape = ImageShape::two_dim, .width = 1, .height = 1, .format = TexelFormat::f16, .channels = 2};
  const std::string store =
      "  mov.b32 %r2, 0;\n  mov.b32 %r4, 0x3f803fff;\n  mov.b32 %r5, 0xc9742400;\n"
      "  sust.p.2d.v2.b32.trap [%rd4, {%r2, %r2}], {%r4, %r5};\n";
  EXPECT_EQ(run_image(store, {.description = halves, .surface = true}).texels, words({0xfbff3c01}));
  ImageDescription bytes = halves;
  bytes.format = TexelFormat::s8;
  const ImageRun run = run_image(store, {.description = bytes, .surface = true});
  EXPECT_EQ(std::to_integer<int>(run.texels[0]), 0x7f);
  EXPECT_EQ(std::to_integer<int>(run.texels[1]), 0x80);
}

TEST(Texture, IsBoundByNameToo) {
  const std::string body = kAt21 +
                           "  tex.2d.v4.u32.s32 {%r4, %r5, %r6, %r7}, [named, {%r2, %r3}];\n"
                           "  st.global.u32 [%rd2], %r4;\n  mov.u64 %rd6, named;\n"
                           "  tex.2d.v4.u32.s32 {%r4, %r5, %r6, %r7}, [%rd6, {%r2, %r3}];\n"
                           "  st.global.u32 [%rd2+4], %r4;\n";
  const ImageRun run = run_image(body, {.description = kWords, .texels = kEight, .before = ".global .texref named;\n"});
  EXPECT_TRUE(run.outcome.ok()) << render(run.outcome, "test.ptx");
  EXPECT_EQ(run.out[0], 21u);
  EXPECT_EQ(run.out[1], 21u);
}

// In independent mode the sampler gives the filter and address mode.
TEST(Texture, SamplersAreTheirOwnInIndependentMode) {
  ImageDescription floats = kWords;
  floats.format = TexelFormat::f32;
  const std::vector<float> values{0, 1, 2, 3, 4, 5, 6, 7};
  const auto view = bytes_of(values);
  const std::string body =
      "  mov.f32 %f0, 0f3fc00000;\n  mov.f32 %f1, 0f3f800000;\n"
      "  tex.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [named, how, {%f0, %f1}];\n  st.global.f32 [%rd2], %f4;\n"
      "  txq.filter_mode.b32 %r5, [how];\n  st.global.u32 [%rd2+4], %r5;\n";
  const ImageRun run = run_image(body, {.description = floats,
                                        .sampling = {.linear = true},
                                        .texels = {view.begin(), view.end()},
                                        .before = ".global .texref named;\n.global .samplerref how;\n"});
  EXPECT_TRUE(run.outcome.ok()) << render(run.outcome, "test.ptx");
  EXPECT_EQ(std::bit_cast<float>(run.out[0]), 3.0F);  // between 1 and 5
  EXPECT_EQ(run.out[1], 1u);
}

// istypep of a handle, and of the address of a variable; any other value is none of the three.
TEST(Texture, TypesOfWhatAPointerNames) {
  std::string body =
      "  mov.u64 %rd6, named;\n  mov.u64 %rd7, how;\n  mov.u64 %rd8, 5;\n  ld.global.u64 %rd9, [%rd1+8];\n";
  const std::vector<std::pair<std::string, uint32_t>> values{{"%rd4", 1}, {"%rd6", 1}, {"%rd7", 2},
                                                             {"%rd9", 2}, {"%rd8", 0}, {"%rd0", 0}};
  for (size_t i = 0; i < values.size(); ++i)
    body += fmt::format(
        "  istypep.texref %p1, {0};\n  istypep.samplerref %p2, {0};\n  istypep.surfref %p3, {0};\n"
        "  selp.u32 %r4, 1, 0, %p1;\n  selp.u32 %r5, 2, 0, %p2;\n  selp.u32 %r6, 4, 0, %p3;\n"
        "  or.b32 %r4, %r4, %r5;\n  or.b32 %r4, %r4, %r6;\n  st.global.u32 [%rd2+{1}], %r4;\n",
        values[i].first, 4 * i);
  const ImageRun run = run_image(
      body, {.description = kWords, .texels = kEight, .before = ".global .texref named;\n.global .samplerref how;\n"});
  EXPECT_TRUE(run.outcome.ok()) << render(run.outcome, "test.ptx");
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(run.out[i], values[i].second) << values[i].first;
  const ImageRun surface = run_image(
      "  istypep.surfref %p1, %rd4;\n  mov.u64 %rd6, place;\n  istypep.surfref %p2, %rd6;\n"
      "  selp.u32 %r4, 1, 0, %p1;\n  selp.u32 %r5, 2, 0, %p2;\n  or.b32 %r4, %r4, %r5;\n  st.global.u32 [%rd2], %r4;\n",
      {.description = kWords, .texels = kEight, .surface = true, .before = ".global .surfref place;\n"});
  EXPECT_EQ(surface.out[0], 3u);
}

TEST(Texture, QueriesSayWhatItIs) {
  std::string body;
  const std::vector<std::pair<std::string, uint32_t>> queries{{"width", 4},
                                                              {"height", 2},
                                                              {"depth", 0},
                                                              {"channel_data_type", 0x10dc},
                                                              {"channel_order", 0x10b0},
                                                              {"normalized_coords", 1},
                                                              {"filter_mode", 0},
                                                              {"addr_mode_0", 1},
                                                              {"num_mipmap_levels", 1},
                                                              {"array_size", 1}};
  for (size_t i = 0; i < queries.size(); ++i)
    body += fmt::format("  txq.{}.b32 %r5, [%rd4];\n  st.global.u32 [%rd2+{}], %r5;\n", queries[i].first, 4 * i);
  const ImageRun run = run_image(
      body,
      {.description = kWords, .sampling = {.address = AddressMode::mirror, .normalised = true}, .texels = kEight});
  EXPECT_TRUE(run.outcome.ok()) << render(run.outcome, "test.ptx");
  for (size_t i = 0; i < queries.size(); ++i) EXPECT_EQ(run.out[i], queries[i].second) << queries[i].first;
}

// Each of the six faces of a cube holds its number; an axis meets the middle of its face.
TEST(Texture, ACubeIsFetchedByDirection) {
  const ImageDescription cube{.shape = ImageShape::cube, .width = 1, .height = 1, .layers = 6};
  const std::vector<float> faces{1, 2, 3, 4, 5, 6};
  const auto view = bytes_of(faces);
  std::string body;
  const char* kOnes[] = {"0f3f800000", "0fbf800000"};
  for (unsigned face = 0; face < 6; ++face) {
    for (unsigned axis = 0; axis < 3; ++axis)
      body += fmt::format("  mov.f32 %f{}, {};\n", axis, axis == face / 2 ? kOnes[face % 2] : "0f3e800000");
    body += "  tex.cube.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd4, {%f0, %f1, %f2, %f2}];\n";
    body += fmt::format("  st.global.f32 [%rd2+{}], %f4;\n", 4 * face);
  }
  const ImageRun run = run_image(body, {.description = cube, .texels = {view.begin(), view.end()}});
  EXPECT_TRUE(run.outcome.ok()) << render(run.outcome, "test.ptx");
  for (unsigned face = 0; face < 6; ++face)
    EXPECT_EQ(std::bit_cast<float>(run.out[face]), static_cast<float>(face + 1));
}

TEST(Texture, OffsetsHalvesAndResidency) {
  ImageDescription floats = kWords;
  floats.format = TexelFormat::f32;
  floats.channels = 2;
  const std::vector<float> values{0, .5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5};
  const auto view = bytes_of(values);
  const std::string body =
      "  mov.f32 %f0, 0f3f000000;\n  mov.b32 %r2, 2;\n  mov.b32 %r3, 1;\n"
      "  tex.level.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}|%p1, [%rd4, {%f0, %f0}], %f0, {%r2, %r3};\n"
      "  st.global.f32 [%rd2], %f4;\n  selp.u32 %r5, 1, 0, %p1;\n  st.global.u32 [%rd2+4], %r5;\n"
      "  tex.2d.v2.f16x2.f32 {%r6, %r7}, [%rd4, {%f0, %f0}], {%r2, %r3};\n  st.global.u32 [%rd2+8], %r6;\n"
      "  tex.2d.v4.f16.f32 {%rs4, %rs5, %rs6, %rs7}, [%rd4, {%f0, %f0}], {%r2, %r3};\n"
      "  mov.b32 %r6, {%rs5, %rs6};\n  st.global.u32 [%rd2+12], %r6;\n";
  const ImageRun run = run_image(body, {.description = floats, .texels = {view.begin(), view.end()}});
  EXPECT_TRUE(run.outcome.ok()) << render(run.outcome, "test.ptx");
  EXPECT_EQ(std::bit_cast<float>(run.out[0]), 6.0F);
  EXPECT_EQ(run.out[1], 1u);
  EXPECT_EQ(run.out[2], 0x46804600u);  // 6 and 6.5
  EXPECT_EQ(run.out[3], 0x00004680u);
}

TEST(Texture, FaultsAreToldApart) {
  const ImageSetup good{.description = kWords, .texels = kEight};
  EXPECT_TRUE(run_image(kAt21 + kFetch, good).outcome.ok());
  expect_fault(run_image("  mov.u64 %rd4, 77;\n" + kAt21 + kFetch, good), FaultKind::texture_handle,
               "0x4d is not a handle");
  expect_fault(run_image(kAt21 + "  tex.a2d.v4.u32.s32 {%r4, %r5, %r6, %r7}, [%rd4, {%r2, %r2, %r3, %r3}];\n", good),
               FaultKind::texture_handle, "geometry");
  expect_fault(run_image(kAt21 + "  tex.1d.v4.u32.s32 {%r4, %r5, %r6, %r7}, [%rd4, {%r2}];\n",
                         {.description = {.shape = ImageShape::one_dim, .width = 8, .format = TexelFormat::u32}}),
               FaultKind::texture_handle, "gives zeros");
  ImageSetup other = good;
  other.surface = true;
  expect_fault(run_image(kAt21 + kFetch, other), FaultKind::texture_handle, "that of a surface");
  other = good;
  other.freed = true;
  expect_fault(run_image(kAt21 + kFetch, other), FaultKind::use_after_free, "freed");
  expect_fault(run_image("  mov.b32 %r3, 1;\n" + kFetch, good), FaultKind::uninitialised_address, "%r2");
  other = good;
  other.initialised = false;
  const std::string decides = kAt21 + kFetch + "  setp.eq.u32 %p1, %r4, 0;\n  @%p1 exit;\n";
  expect_fault(run_image(decides, other), FaultKind::uninitialised_branch, "%p1");
  EXPECT_TRUE(run_image(decides, good).outcome.ok());
}

TEST(Texture, ABufferIsFetchedByIntegers) {
  const ImageDescription buffer{.shape = ImageShape::buffer, .width = 8, .format = TexelFormat::u32};
  const std::string fetch = "  tex.1d.v4.u32.s32 {%r4, %r5, %r6, %r7}, [%rd4, {%r0}];\n  st.global.u32 [%rd2], %r4;\n";
  const ImageRun run = run_image(fetch, {.description = buffer, .texels = kEight, .shape = {.block = {9}}});
  EXPECT_TRUE(run.outcome.ok()) << render(run.outcome, "test.ptx");
  EXPECT_EQ((std::vector<uint32_t>{run.out.begin(), run.out.begin() + 9}),
            (std::vector<uint32_t>{10, 11, 12, 13, 20, 21, 22, 23, 0}));
  expect_fault(run_image("  mov.f32 %f0, 0f00000000;\n  tex.1d.v4.u32.f32 {%r4, %r5, %r6, %r7}, [%rd4, {%f0}];\n",
                         {.description = buffer, .texels = kEight}),
               FaultKind::texture_handle, ".s32 coordinates only");
}

// Outside of a surface: a fault, the nearest texel, or nothing.
TEST(Surface, OutOfRangeIsAsTheInstructionSays) {
  const ImageSetup setup{.description = kWords, .texels = kEight, .surface = true};
  auto load = [](std::string_view mode, int x, int y) {
    return fmt::format(
        "  mov.b32 %r2, {};\n  mov.b32 %r3, {};\n  suld.b.2d.b32.{} %r4, [%rd4, {{%r2, %r3}}];\n"
        "  st.global.u32 [%rd2], %r4;\n",
        x, y, mode);
  };
  EXPECT_EQ(run_image(load("trap", 8, 1), setup).out[0], 22u);
  EXPECT_EQ(run_image(load("clamp", 400, -3), setup).out[0], 13u);
  EXPECT_EQ(run_image(load("zero", 0, 2), setup).out[0], 0u);
  expect_fault(run_image(load("trap", 16, 0), setup), FaultKind::out_of_bounds, "outside of the surface");
  expect_fault(run_image(load("trap", 2, 0), setup), FaultKind::misaligned, "not aligned to 4");
  ImageSetup texture = setup;
  texture.surface = false;
  expect_fault(run_image(load("trap", 0, 0), texture), FaultKind::surface_handle, "that of a texture");
  ImageSetup fresh = setup;
  fresh.initialised = false;
  expect_fault(run_image(load("trap", 0, 0) + "  setp.eq.u32 %p1, %r4, 0;\n  @%p1 exit;\n", fresh),
               FaultKind::uninitialised_branch, "%p1");
}

TEST(Surface, StoresReductionsAndFormats) {
  const ImageSetup setup{.description = kWords, .texels = kEight, .surface = true};
  const std::string body =
      "  mov.b32 %r2, 4;\n  mov.b32 %r3, 0;\n  mov.b32 %r4, 99;\n  mov.b32 %r5, 98;\n  mov.b32 %r6, -4;\n"
      "  sust.b.2d.b32.trap [%rd4, {%r2, %r3}], %r4;\n  sust.b.2d.b32.zero [%rd4, {%r6, %r3}], %r4;\n"
      "  mov.b32 %r7, 8;\n  sust.b.2d.v2.b32.trap [%rd4, {%r7, %r3}], {%r4, %r5};\n"
      "  sured.b.add.2d.u32.trap [%rd4, {%r2, %r3}], %r4;\n"
      "  mov.b32 %r8, 1;\n  sust.p.2d.b32.trap [%rd4, {%r3, %r8}], %r5;\n"
      "  suq.width.b32 %r9, [%rd4];\n  suq.memory_layout.b32 %r10, [%rd4];\n  mad.lo.u32 %r9, %r10, 100, %r9;\n"
      "  st.global.u32 [%rd2], %r9;\n";
  const ImageRun run = run_image(body, setup);
  EXPECT_TRUE(run.outcome.ok()) << render(run.outcome, "test.ptx");
  EXPECT_EQ(run.texels, words({10, 198, 99, 98, 98, 21, 22, 23}));
  EXPECT_EQ(run.out[0], 4u);
}

// The bytes of an H200 (driver 580.159.04): loaded values are padded with zeros, stores take the low bytes.
TEST(Surface, RegistersMayBeWiderThanTheData) {
  const ImageDescription bytes{.shape = ImageShape::one_dim, .width = 32, .format = TexelFormat::u8};
  std::vector<std::byte> texels(32);
  for (unsigned i = 0; i < 32; ++i) texels[i] = std::byte(0x80 + i);
  const std::string body =
      "  mov.b32 %r2, 4;\n  mov.b32 %r4, 0xAABBCCDD;\n  mov.b32 %r5, %r4;\n  mov.b64 %rd5, 0x1122334455667788;\n"
      "  mov.b64 %rd6, %rd5;\n  mov.b32 %r6, %r4;\n  mov.b32 %r7, %r4;\n  mov.b32 %r8, 0x55667788;\n"
      "  suld.b.1d.b8.trap {%r4}, [%rd4, {%r2}];\n  suld.b.1d.b16.trap {%rd5}, [%rd4, {%r2}];\n"
      "  suld.b.1d.b32.trap {%rd6}, [%rd4, {%r2}];\n  suld.b.1d.v2.b8.trap {%r5, %r6}, [%rd4, {%r2}];\n"
      "  st.global.u32 [%rd2], %r4;\n  st.global.u64 [%rd2+8], %rd5;\n  st.global.u64 [%rd2+16], %rd6;\n"
      "  st.global.v2.u32 [%rd2+24], {%r5, %r6};\n"
      "  mov.b64 %rd5, 0x1122334455667788;\n  mov.b32 %r2, 8;\n  sust.b.1d.b8.trap [%rd4, {%r2}], {%r7};\n"
      "  mov.b32 %r2, 14;\n  sust.b.1d.b16.trap [%rd4, {%r2}], {%rd5};\n"
      "  mov.b32 %r2, 16;\n  sust.b.1d.b32.trap [%rd4, {%r2}], {%rd5};\n"
      "  mov.b32 %r2, 20;\n  sust.b.1d.v2.b8.trap [%rd4, {%r2}], {%r7, %r8};\n";
  const ImageRun run = run_image(body, {.description = bytes, .texels = texels, .surface = true});
  EXPECT_TRUE(run.outcome.ok()) << render(run.outcome, "test.ptx");
  EXPECT_EQ((std::vector<uint32_t>{run.out.begin(), run.out.begin() + 8}),
            (std::vector<uint32_t>{0x84, 0, 0x8584, 0, 0x87868584, 0, 0x84, 0x85}));
  const auto put = [&](unsigned at, std::initializer_list<unsigned> values) {
    for (const unsigned value : values) texels[at++] = std::byte(value);
  };
  put(8, {0xdd});
  put(14, {0x88, 0x77, 0x88, 0x77, 0x66, 0x55, 0xdd, 0x88});
  EXPECT_EQ(run.texels, texels);
}

// Two threads access one texel: a race, except for reductions.
TEST(Surface, RacesAreFound) {
  const std::string place = "  mov.b32 %r2, 0;\n  mov.b32 %r3, 0;\n";
  const ImageSetup setup{.description = kWords, .texels = kEight, .surface = true, .shape = {.block = {64}}};
  const ImageRun racing = run_image(place + "  sust.b.2d.b32.trap [%rd4, {%r2, %r3}], %r0;\n", setup);
  ASSERT_FALSE(racing.outcome.ok());
  EXPECT_EQ(racing.outcome.faults[0].kind, FaultKind::global_race);
  const ImageRun adding = run_image(place + "  sured.b.add.2d.u32.trap [%rd4, {%r2, %r3}], %r0;\n", setup);
  EXPECT_TRUE(adding.outcome.ok()) << render(adding.outcome, "test.ptx");
  EXPECT_EQ(std::to_integer<unsigned>(adding.texels[0]) + 256 * std::to_integer<unsigned>(adding.texels[1]), 2026u);
  const ImageRun own = run_image(
      "  and.b32 %r2, %r0, 1;\n  shl.b32 %r2, %r2, 2;\n  mov.b32 %r3, 0;\n"
      "  sust.b.2d.b32.trap [%rd4, {%r2, %r3}], %r0;\n",
      {.description = kWords, .texels = kEight, .surface = true, .shape = {.block = {2}}});
  EXPECT_TRUE(own.outcome.ok()) << render(own.outcome, "test.ptx");
}

TEST(Texture, ImagesThatDoNotFitAreRefused) {
  Device device;
  const Address data = *device.allocate(64, "data");
  auto message = [&](const ImageDescription& description, bool surface = false) {
    const auto made = surface ? device.make_surface(data, description) : device.make_texture(data, description);
    return made ? std::string() : made.error().message();
  };
  EXPECT_EQ(message({.width = 4, .height = 4}), "");
  EXPECT_NE(message({.width = 5, .height = 4}).find("leaves the allocation"), std::string::npos);
  EXPECT_NE(message({.width = 4, .channels = 3}).find("expected 1, 2 or 4"), std::string::npos);
  EXPECT_NE(message({.width = 0}).find("do not fit the shape"), std::string::npos);
  EXPECT_NE(message({.shape = ImageShape::cube, .layers = 5}).find("6 square faces"), std::string::npos);
  EXPECT_NE(message({.width = 1u << 28}).find("too large"), std::string::npos);
  EXPECT_NE(message({.shape = ImageShape::cube, .layers = 6}, true).find("a surface is 1D"), std::string::npos);
}

}  // namespace

std::vector<std::string> texture_programs() {
  std::vector<std::string> texts;
  for (const Recorded& each : read_records().cases) texts.push_back(fetch_text(each));
  return texts;
}

}  // namespace ptxkit::emulator
