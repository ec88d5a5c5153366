// kernelc: emits the project's kernels as PTX files and maintains their golden copies.
//
//   kernelc emit --out DIR            every kernel, target and variant, with launch files and a manifest
//   kernelc check --golden DIR NAME   compares a kernel's release PTX with its golden text; exit 1 and a diff
//   kernelc accept --golden DIR NAME  makes the present PTX the golden text
//
// A file whose content has not changed is not touched, so that a build does not repeat the steps that depend on it.
#include <filesystem>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "builder/emit.hpp"
#include "builder/error.hpp"
#include "kernels/kernels.hpp"
#include "support/file.hpp"
#include "support/program.hpp"
#include "tools/kernelc/golden_text.hpp"

namespace {

using ptxkit::dsl::EmitOptions;
using ptxkit::dsl::KernelDefinition;
using ptxkit::dsl::Variant;

// ptxas 13.0 produces the same machine code for sm_90 from the text for sm_80 (docs/kernels.md).
constexpr unsigned kTargets[] = {75, 80};

// A file name without extension: "lz4_decompress.sm_80" or "lz4_decompress.sm_80.debug".
std::string stem_of(const KernelDefinition& definition, const EmitOptions& options) {
  std::string stem = fmt::format("{}.sm_{}", definition.spec.name, options.sm);
  if (options.variant != Variant::release) stem += fmt::format(".{}", ptxkit::dsl::name_of(options.variant));
  return stem;
}

void write_if_changed(const std::filesystem::path& path, const std::string& content) {
  const auto present = ptxkit::read_file(path);
  if (present && *present == content) return;
  if (const auto written = ptxkit::write_file(path, content); !written) {
    throw std::runtime_error(written.error().message());
  }
}

const char* type_of(const ptxkit::dsl::Parameter& parameter) {
  if (parameter.kind == ptxkit::dsl::ParameterKind::pointer) return "pointer";
  switch (parameter.scalar) {
    case ptxkit::dsl::Scalar::uint32:
      return "u32";
    case ptxkit::dsl::Scalar::uint64:
      return "u64";
    default:
      throw std::runtime_error("parameter " + parameter.name + " is neither a pointer nor u32 nor u64");
  }
}

void emit_all(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  nlohmann::ordered_json manifest = nlohmann::ordered_json::array();
  for (const KernelDefinition& definition : ptxkit::kernels::all_kernels()) {
    for (const Variant variant : {Variant::debug, Variant::release}) {
      nlohmann::ordered_json parameters = nlohmann::ordered_json::array();
      for (const auto& parameter : ptxkit::dsl::parameters_of(definition, variant)) {
        const bool is_pointer = parameter.kind == ptxkit::dsl::ParameterKind::pointer;
        parameters.push_back({{"name", parameter.name},
                              {"type", type_of(parameter)},
                              {"pointee_alignment_bytes", is_pointer ? parameter.align : 0}});
      }
      for (const unsigned sm : kTargets) {
        const EmitOptions options{.sm = sm, .variant = variant};
        const auto emitted = ptxkit::dsl::emit(definition, options);
        const std::string stem = stem_of(definition, options);
        write_if_changed(folder / (stem + ".ptx"), emitted.ptx);
        write_if_changed(folder / (stem + ".launch.json"), emitted.launch);
        manifest.push_back({{"name", definition.spec.name},
                            {"target", fmt::format("sm_{}", sm)},
                            {"variant", ptxkit::dsl::name_of(variant)},
                            {"file", stem + ".ptx"},
                            {"block_threads", definition.spec.block},
                            {"parameters", parameters}});
      }
    }
  }
  write_if_changed(folder / "images.json", manifest.dump(1) + "\n");
}

// The kernels selected by `name`: one, or all for "".
std::vector<KernelDefinition> chosen(const std::string& name) {
  std::vector<KernelDefinition> kernels;
  std::string names;
  for (auto& definition : ptxkit::kernels::all_kernels()) {
    names += " " + definition.spec.name;
    if (name.empty() || definition.spec.name == name) kernels.push_back(std::move(definition));
  }
  if (kernels.empty()) throw std::runtime_error(fmt::format("no kernel `{}`; there are:{}", name, names));
  return kernels;
}

// Compares the selected kernels with their golden texts, or accepts them. Returns 0 if all are equal or were accepted.
int compare(const std::filesystem::path& golden, const std::string& name, bool accept) {
  bool equal = true;
  for (const KernelDefinition& definition : chosen(name)) {
    for (const unsigned sm : kTargets) {
      const EmitOptions options{.sm = sm};
      const std::string target = fmt::format("sm_{}", sm);
      const std::string now = ptxkit::kernelc::normalise(ptxkit::dsl::emit_ptx(definition, options));
      const std::string before = ptxkit::kernelc::accepted(golden, definition.spec.name, target).value_or("");
      const std::string difference = ptxkit::kernelc::describe_difference(before, now);
      if (difference.empty()) {
        fmt::print("{}: as accepted\n", stem_of(definition, options) + ".ptx");
        continue;
      }
      fmt::print("{}: {}\n{}", stem_of(definition, options) + ".ptx",
                 accept ? "accepted" : "differs from what was accepted", difference);
      if (accept) {
        const auto stored = ptxkit::kernelc::store(golden, definition.spec.name, target, now);
        if (!stored) throw std::runtime_error(stored.error().message());
      }
      equal = equal && accept;
    }
  }
  if (!equal) fmt::print("to accept: ./dev kernel {} --accept\n", name.empty() ? "NAME" : name);
  return equal ? 0 : 1;
}

int run(int argc, char** argv) {
  CLI::App app{"the project's kernels as PTX"};
  app.require_subcommand(1);
  std::string folder, name;
  auto* emit = app.add_subcommand("emit", "write every kernel, target and variant");
  emit->add_option("--out", folder, "folder for the files")->required();
  auto* check = app.add_subcommand("check", "compare with the accepted PTX");
  auto* accept = app.add_subcommand("accept", "accept the present PTX");
  for (auto* command : {check, accept}) {
    command->add_option("--golden", folder, "folder of the accepted PTX")->required();
    command->add_option("name", name, "one kernel; all without");
  }
  CLI11_PARSE(app, argc, argv);
  if (!*emit) return compare(folder, name, static_cast<bool>(*accept));
  emit_all(folder);
  return 0;
}

}  // namespace

// Does not use run_program: an exception of the DSL is a message to the author of a kernel, not an error of the
// program.
int main(int argc, char** argv) try {
  return ptxkit::open_standard_descriptors() ? run(argc, argv) : 2;
} catch (const std::exception& error) {
  ptxkit::tell(fmt::format("kernelc: {}\n", error.what()));
  return 2;
}
