#include "builder/kernel_program.hpp"

#include <charconv>
#include <filesystem>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "builder/emit.hpp"
#include "support/file.hpp"
#include "support/program.hpp"

namespace ptxkit::dsl {
namespace {

// A file name without extension: "lz4_decompress.sm_80" or "lz4_decompress.sm_80.debug".
std::string stem_of(const KernelDefinition& definition, unsigned sm, Variant variant) {
  std::string stem = fmt::format("{}.sm_{}", definition.spec.name, sm);
  if (variant != Variant::release) stem += fmt::format(".{}", name_of(variant));
  return stem;
}

void write_if_changed(const std::filesystem::path& path, const std::string& content) {
  const auto present = read_file(path);
  if (present && *present == content) return;
  if (const auto written = write_file(path, content); !written) throw std::runtime_error(written.error().message());
}

nlohmann::ordered_json describe(const Parameter& parameter) {
  const bool is_pointer = parameter.kind == ParameterKind::pointer;
  return {{"name", parameter.name},
          {"type", is_pointer ? "pointer" : name_of(parameter.scalar)},
          {"pointee_alignment_bytes", is_pointer ? parameter.align : 0}};
}

std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> words;
  for (size_t comma = 0; comma != list.npos; list.remove_prefix(comma == list.npos ? 0 : comma + 1)) {
    comma = list.find(',');
    words.push_back(list.substr(0, comma));
  }
  return words;
}

unsigned target_of(std::string_view word) {
  unsigned number = 0;
  const bool is_prefixed = word.starts_with("sm_");
  const char* const end = word.data() + word.size();
  if (!is_prefixed || std::from_chars(word.data() + 3, end, number).ptr != end) {
    throw std::runtime_error(fmt::format("expected a target as in sm_80, found '{}'", word));
  }
  return number;
}

Variant variant_of(std::string_view word) {
  for (const Variant variant : {Variant::release, Variant::checked, Variant::debug}) {
    if (word == name_of(variant)) return variant;
  }
  throw std::runtime_error(fmt::format("expected release, checked or debug, found '{}'", word));
}

}  // namespace

void emit_images(const std::vector<KernelDefinition>& kernels, const std::string& folder,
                 const std::vector<unsigned>& targets, const std::vector<Variant>& variants) {
  const std::filesystem::path path(folder);
  std::filesystem::create_directories(path);
  nlohmann::ordered_json manifest = nlohmann::ordered_json::array();
  for (const KernelDefinition& definition : kernels) {
    for (const Variant variant : variants) {
      nlohmann::ordered_json parameters = nlohmann::ordered_json::array();
      for (const Parameter& parameter : parameters_of(definition, variant)) parameters.push_back(describe(parameter));
      for (const unsigned sm : targets) {
        const Emitted emitted = emit(definition, {.sm = sm, .variant = variant});
        const std::string stem = stem_of(definition, sm, variant);
        write_if_changed(path / (stem + ".ptx"), emitted.ptx);
        write_if_changed(path / (stem + ".launch.json"), emitted.launch);
        manifest.push_back({{"name", definition.spec.name},
                            {"target", fmt::format("sm_{}", sm)},
                            {"variant", name_of(variant)},
                            {"file", stem + ".ptx"},
                            {"block_threads", definition.spec.block},
                            {"parameters", parameters}});
      }
    }
  }
  write_if_changed(path / "images.json", manifest.dump(1) + "\n");
}

int run_kernel_program(int argc, char** argv, std::vector<KernelDefinition> (*kernels)()) {
  if (!open_standard_descriptors()) return 1;
  const std::string name = std::filesystem::path(argv[0]).filename();
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 4 && words[0] == "emit") {
      std::vector<unsigned> targets;
      for (const std::string_view word : words_of(words[2])) targets.push_back(target_of(word));
      std::vector<Variant> variants;
      for (const std::string_view word : words_of(words[3])) variants.push_back(variant_of(word));
      const std::vector<KernelDefinition> defined = kernels();
      if (defined.empty()) throw std::runtime_error("no kernel is defined: PTXKIT_KERNEL(name) {...} defines one");
      emit_images(defined, words[1], targets, variants);
      return 0;
    }
    if (words.size() == 5 && words[0] == "embed") {
      embed_images(words[1], words[2], words[3], words[4]);
      return 0;
    }
    tell(
        fmt::format("usage: {0} emit FOLDER TARGETS VARIANTS\n"
                    "       {0} embed FOLDER REPORT.json NAMESPACE OUTPUT.cpp\n",
                    name));
    return 64;
  } catch (const std::exception& error) {
    tell(fmt::format("{}: {}\n", name, error.what()));
    return 1;
  }
}

}  // namespace ptxkit::dsl
