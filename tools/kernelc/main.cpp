// kernelc: emits the project's kernels as PTX files and maintains their golden copies.
//
//   kernelc emit …, kernelc embed …   the steps of the build; builder/kernel_program.hpp describes them
//   kernelc check --golden DIR NAME   compares a kernel's release PTX with its golden text; exit 1 and a diff
//   kernelc accept --golden DIR NAME  makes the present PTX the golden text
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "builder/dsl.hpp"
#include "builder/emit.hpp"
#include "builder/kernel_program.hpp"
#include "kernels/kernels.hpp"
#include "support/program.hpp"
#include "tools/kernelc/golden_text.hpp"

namespace {

using ptxkit::dsl::KernelDefinition;

// Golden texts of the release builds are kept for these, which are the TARGETS of CMakeLists.txt.
constexpr unsigned kTargets[] = {75, 80};

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
      const std::string target = fmt::format("sm_{}", sm);
      const std::string file = fmt::format("{}.{}.ptx", definition.spec.name, target);
      const std::string now = ptxkit::kernelc::normalise(ptxkit::dsl::emit_ptx(definition, {.sm = sm}));
      const std::string before = ptxkit::kernelc::accepted(golden, definition.spec.name, target).value_or("");
      const std::string difference = ptxkit::kernelc::describe_difference(before, now);
      if (difference.empty()) {
        fmt::print("{}: as accepted\n", file);
        continue;
      }
      fmt::print("{}: {}\n{}", file, accept ? "accepted" : "differs from what was accepted", difference);
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
  app.footer("emit and embed are steps of the build (builder/kernel_program.hpp).");
  std::string folder, name;
  auto* check = app.add_subcommand("check", "compare with the accepted PTX");
  auto* accept = app.add_subcommand("accept", "accept the present PTX");
  for (auto* command : {check, accept}) {
    command->add_option("--golden", folder, "folder of the accepted PTX")->required();
    command->add_option("name", name, "one kernel; all without");
  }
  CLI11_PARSE(app, argc, argv);
  return compare(folder, name, static_cast<bool>(*accept));
}

}  // namespace

// Does not use run_program: an exception of the DSL is a message to the author of a kernel, not an error of the
// program.
int main(int argc, char** argv) try {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "emit" || verb == "embed") {
    return ptxkit::dsl::run_kernel_program(argc, argv, ptxkit::kernels::all_kernels);
  }
  return ptxkit::open_standard_descriptors() ? run(argc, argv) : 2;
} catch (const std::exception& error) {
  ptxkit::tell(fmt::format("kernelc: {}\n", error.what()));
  return 2;
}
