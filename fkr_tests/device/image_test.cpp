// Every instruction form of textures and surfaces: the emulator's bits must be the GPU's.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

#include "fkr_tests/device/device.hpp"
#include "fkr_tests/device/image_cases.hpp"
#include "runtime/launch/gpu_image.hpp"

namespace ptxkit::testing {
namespace {

Result<ImageResult> run_images(const ImageCase& each) {
  auto kernel = driver::Kernel::load_unverified(*device(), each.ptx, {"images", 0, {}});
  if (!kernel) return tl::unexpected(kernel.error());
  const auto stream = driver::Stream::create(*device());
  const size_t table_bytes = each.images.size() * 8;
  const auto in = driver::DeviceMemory::allocate(*device(), each.in.size()),
             out = driver::DeviceMemory::allocate(*device(), each.out_bytes()),
             table = driver::DeviceMemory::allocate(*device(), table_bytes);
  if (!stream || !in || !out || !table) return fail("no memory for the launch");
  std::vector<GpuImage> images;
  std::vector<uint64_t> handles;
  for (const CaseImage& image : each.images) {
    auto made = GpuImage::create(*device(), {image.use, image.description, image.sampling}, image.texels, *stream);
    if (!made) return tl::unexpected(made.error());
    if (each.is_named)
      if (auto bound = made->bind(kernel->handle(), fmt::format("image{}", images.size())); !bound)
        return tl::unexpected(bound.error());
    handles.push_back(made->handle());
    images.push_back(std::move(*made));
  }
  const auto argument = [](uint64_t address) {
    const auto bytes = std::as_bytes(std::span(&address, 1));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const std::vector<std::vector<std::byte>> arguments{argument(in->handle()), argument(out->handle()),
                                                      argument(table->handle())};
  ImageResult left;
  left.out.resize(each.out_bytes());
  for (const auto& step : {in->upload(each.in, *stream), out->fill(0, *stream),
                           table->upload({reinterpret_cast<const uint8_t*>(handles.data()), table_bytes}, *stream),
                           kernel->launch_unchecked(*stream, {.block = {kImageThreads, 1, 1}}, arguments),
                           out->download(left.out, *stream), stream->wait()})
    if (!step) return tl::unexpected(step.error());
  for (size_t i = 0; i < images.size(); ++i) {
    left.texels.emplace_back(each.images[i].texels.size());
    if (auto done = images[i].download(left.texels[i], *stream); !done) return tl::unexpected(done.error());
    if (auto done = stream->wait(); !done) return tl::unexpected(done.error());
  }
  return left;
}

std::string name_of(const CaseImage& image) {
  const auto& is = image.description;
  const auto& how = image.sampling;
  return fmt::format("shape {}, {}x{}x{}x{}, format {} x{}, mode {}{}{}{}", static_cast<int>(is.shape), is.width,
                     is.height, is.depth, is.layers, static_cast<int>(is.format), is.channels,
                     static_cast<int>(how.address), how.linear ? ", linear" : "", how.normalised ? ", normalised" : "",
                     how.reads_integer ? ", integer" : "");
}

// The threads whose rows differ, the first of them in full, and the texels that differ.
std::string difference(const ImageCase& each, size_t section, const ImageResult& real, const ImageResult& emulated) {
  std::string text;
  size_t rows = 0;
  for (size_t thread = 0; thread < kImageThreads; ++thread) {
    const size_t row = section * kImageThreads + thread;
    const auto part = [&](const std::vector<uint8_t>& bytes) {
      const auto* words = reinterpret_cast<const uint32_t*>(bytes.data() + row * kImageOutBytes);
      return std::vector<uint32_t>(words, words + 9);
    };
    const auto ours = part(emulated.out), theirs = part(real.out);
    if (ours == theirs || ++rows > 6) continue;
    const auto* in = reinterpret_cast<const uint32_t*>(each.in.data() + row * kImageInBytes);
    text += fmt::format(
        "  thread {}: GPU {:08x}\n    emulated {:08x}\n    at {:08x} layer {} offsets {} level {:08x}\n", thread,
        fmt::join(theirs, " "), fmt::join(ours, " "), fmt::join(in, in + 3, " "), static_cast<int>(in[3]),
        fmt::join(std::span(reinterpret_cast<const int*>(in) + 20, 3), " "), in[24]);
  }
  const auto &ours = emulated.texels[section], &theirs = real.texels[section];
  size_t bytes = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] == theirs[i] || ++bytes > 6) continue;
    text += fmt::format("  byte {} of the texels: GPU {:02x}, emulated {:02x}, before {:02x}\n", i, theirs[i], ours[i],
                        each.images[section].texels[i]);
  }
  if (text.empty()) return text;
  return fmt::format("{} of {} ({}): {} rows, {} bytes of the texels differ\n{}", each.instructions[section], section,
                     name_of(each.images[section]), rows, bytes, text);
}

class DeviceImages : public ::testing::TestWithParam<ImageCase> {};

// Each case is a test of its own, since a failure on the GPU destroys the context.
TEST_P(DeviceImages, TheEmulatorsBitsAreTheDevices) {
  PTXKIT_REQUIRE_DEVICE();
  if ((*device())->info().major != 9) GTEST_SKIP() << "the forms are those of compute capability 9.0";
  const ImageCase& each = GetParam();
  const auto real = run_images(each), emulated = emulate_images(each);
  ASSERT_TRUE(real) << real.error().message();
  ASSERT_TRUE(emulated) << emulated.error().message();
  if (const char* file = std::getenv("PTXKIT_RECORD_IMAGES"))
    std::ofstream(file, std::ios::app) << fmt::format("{} {}\n", image_hashes(each, *real), each.name);
  for (size_t i = 0; i < each.instructions.size(); ++i) {
    const std::string found = difference(each, i, *real, *emulated);
    if (image_exception(each, i).empty()) {
      EXPECT_EQ(found, "");
    } else if ((*device())->info().name != "Emulated GPU") {
      EXPECT_NE(found, "") << each.instructions[i] << " is no exception any more";
    }
  }
}

std::vector<ImageCase> all_cases() {
  std::vector<ImageCase> all;
  for (const ptx::Op op : image_ops())
    for (ImageCase& each : image_cases(op)) all.push_back(std::move(each));
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, DeviceImages, ::testing::ValuesIn(all_cases()), [](const auto& each) {
  std::string name = each.param.name.substr(0, each.param.name.find(" ("));
  name += each.param.name.substr(each.param.name.rfind(')') + 1);
  std::ranges::replace_if(name, [](unsigned char letter) { return !std::isalnum(letter); }, '_');
  return fmt::format("{}_{}", each.index, name);
});

}  // namespace
}  // namespace ptxkit::testing
