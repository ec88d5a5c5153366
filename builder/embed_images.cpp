// The C++ source that embeds kernels: PTX, launch facts, and the verdict of `ptx-debug` on each text.
#include <cmath>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "builder/kernel_program.hpp"
#include "support/file.hpp"

namespace ptxkit::dsl {
namespace {

using nlohmann::json;

std::string read(const std::string& path) {
  auto text = read_file(path);
  if (!text) throw std::runtime_error(text.error().message());
  return std::move(*text);
}

json read_json(const std::string& path) {
  try {
    return json::parse(read(path));
  } catch (const json::exception& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

// The text as adjacent raw string literals, since compilers limit the length of one.
std::string literal_of(std::string_view text) {
  constexpr size_t kPieceBytes = 16000;
  std::string literal;
  for (size_t at = 0; at < text.size(); at += kPieceBytes) {
    literal += fmt::format("R\"ptx({})ptx\"\n", text.substr(at, kPieceBytes));
  }
  return literal;
}

// The initialiser "Verdict{...}" for each file of the report, by file name.
std::map<std::string, std::string> verdicts_of(const json& report) {
  std::map<std::string, std::string> verdicts;
  for (const json& file : report.at("files")) {
    const auto score = static_cast<uint32_t>(std::floor(file.at("score").get<double>()));
    verdicts[std::filesystem::path(file.at("path").get<std::string>()).filename()] =
        fmt::format("images::Verdict{{\"{}\", {}, {}, \"{}\"}}", file.at("xxh128").get<std::string>(), score,
                    file.at("critical_count").get<uint32_t>(), report.at("tool").at("version").get<std::string>());
  }
  return verdicts;
}

std::string parameters_of(const json& image, size_t index) {
  const json& parameters = image.at("parameters");
  std::string text =
      fmt::format("constexpr std::array<images::KernelParameter, {}> kParameters{}{{{{\n", parameters.size(), index);
  for (const json& parameter : parameters) {
    text +=
        fmt::format("    {{\"{}\", images::ParameterType::{}, {}}},\n", parameter.at("name").get<std::string>(),
                    parameter.at("type").get<std::string>(), parameter.at("pointee_alignment_bytes").get<uint32_t>());
  }
  return text + "}};\n";
}

constexpr std::string_view kFunctions = R"(
std::span<const images::KernelImage> kernel_images() { return kImages; }

const images::KernelImage* find_kernel_variant(std::string_view name, uint32_t major, uint32_t minor,
                                               std::string_view variant) {
  return images::find_image(kImages, name, major, minor, variant);
}

const images::KernelImage* find_kernel_image(std::string_view name, uint32_t major, uint32_t minor) {
  return find_kernel_variant(name, major, minor, "release");
}
)";

}  // namespace

void embed_images(const std::string& folder, const std::string& report, const std::string& name_space,
                  const std::string& output) {
  const json manifest = read_json(folder + "/images.json");
  const auto verdicts = verdicts_of(read_json(report));
  std::string definitions, rows;
  size_t index = 0;
  for (const json& image : manifest) {
    const auto text_of = [&image](const char* key) { return image.at(key).get<std::string>(); };
    const auto verdict = verdicts.find(text_of("file"));
    if (verdict == verdicts.end()) throw std::runtime_error(report + ": no verdict on " + text_of("file"));
    definitions +=
        fmt::format("constexpr char kText{}[] =\n{};\n", index, literal_of(read(folder + "/" + text_of("file"))));
    definitions += parameters_of(image, index);
    rows += fmt::format(
        "    {{\"{0}\", \"{1}\", \"{2}\", {{kText{3}, sizeof kText{3} - 1}}, {4}, kParameters{3},\n     {5}}},\n",
        text_of("name"), text_of("target"), text_of("variant"), index, image.at("block_threads").get<uint32_t>(),
        verdict->second);
    ++index;
  }
  const std::string source = fmt::format(
      "// Written by ptxkit from kernels in the DSL.\n#include <array>\n\n#include \"kernels/images.hpp\"\n\n"
      "namespace {0} {{\n\nnamespace images = ::ptxkit::kernels;\n\nnamespace {{\n\n{1}\n"
      "constexpr images::KernelImage kImages[] = {{\n{2}}};\n\n}}  // namespace\n{3}\n}}  // namespace {0}\n",
      name_space, definitions, rows, kFunctions);
  if (const auto written = write_file(output, source); !written) throw std::runtime_error(written.error().message());
}

}  // namespace ptxkit::dsl
