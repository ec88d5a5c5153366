// kernelc-embed: writes the C++ source that embeds the kernels' PTX and the verdict of `ptx-debug` on each.
//
//   kernelc-embed FOLDER REPORT.json OUTPUT.cpp
//
// FOLDER is the output of `kernelc emit`. REPORT.json is the output of `ptx-debug analyze --falsify --json` for its PTX
// files, which it names by path. That analysis has already stopped the build if a kernel is not good enough. A file
// that is missing in the report is an error here, since it would be embedded without a verdict.
#include <cmath>
#include <filesystem>
#include <map>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/file.hpp"
#include "support/program.hpp"

namespace {

using nlohmann::json;

std::string read(const std::string& path) {
  auto text = ptxkit::read_file(path);
  if (!text) throw std::runtime_error(text.error().message());
  return std::move(*text);
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
        fmt::format("Verdict{{\"{}\", {}, {}, \"{}\"}}", file.at("xxh128").get<std::string>(), score,
                    file.at("critical_count").get<uint32_t>(), report.at("tool").at("version").get<std::string>());
  }
  return verdicts;
}

std::string source_of(const std::string& folder, const std::string& report_path) {
  const json manifest = json::parse(read(folder + "/images.json"));
  const auto verdicts = verdicts_of(json::parse(read(report_path)));
  std::string definitions, rows;
  size_t index = 0;
  for (const json& image : manifest) {
    const auto text_of = [&image](const char* key) { return image.at(key).get<std::string>(); };
    const auto verdict = verdicts.find(text_of("file"));
    if (verdict == verdicts.end()) throw std::runtime_error(report_path + ": no verdict on " + text_of("file"));
    definitions +=
        fmt::format("constexpr char kText{}[] =\n{};\n", index, literal_of(read(folder + "/" + text_of("file"))));
    definitions += fmt::format("constexpr KernelParameter kParameters{}[] = {{\n", index);
    for (const json& parameter : image.at("parameters")) {
      definitions +=
          fmt::format("    {{\"{}\", ParameterType::{}, {}}},\n", parameter.at("name").get<std::string>(),
                      parameter.at("type").get<std::string>(), parameter.at("pointee_alignment_bytes").get<uint32_t>());
    }
    definitions += "};\n";
    rows += fmt::format(
        "    {{\"{0}\", \"{1}\", \"{2}\", {{kText{3}, sizeof kText{3} - 1}}, {4}, kParameters{3},\n     {5}}},\n",
        text_of("name"), text_of("target"), text_of("variant"), index, image.at("block_threads").get<uint32_t>(),
        verdict->second);
    ++index;
  }
  return fmt::format(
      "// Written by kernelc-embed.\n#include \"kernels/images.hpp\"\n\n"
      "namespace ptxkit::kernels {{\nnamespace {{\n\n{}\nconstexpr KernelImage kImages[] = {{\n{}}};\n\n"
      "}}  // namespace\n\nstd::span<const KernelImage> kernel_images() {{ return kImages; }}\n\n"
      "}}  // namespace ptxkit::kernels\n",
      definitions, rows);
}

}  // namespace

int main(int argc, char** argv) {
  if (!ptxkit::open_standard_descriptors()) return 1;
  if (argc != 4) {
    ptxkit::tell("usage: kernelc-embed FOLDER REPORT.json OUTPUT.cpp\n");
    return 64;
  }
  try {
    const auto written = ptxkit::write_file(argv[3], source_of(argv[1], argv[2]));
    if (!written) throw std::runtime_error(written.error().message());
    return 0;
  } catch (const std::exception& error) {
    ptxkit::tell(fmt::format("kernelc-embed: {}\n", error.what()));
    return 1;
  }
}
