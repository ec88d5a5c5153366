// `ptx-debug check FILE...`: the front end alone; does this text parse, and if not, what is wrong where.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/report/place.hpp"
#include "analyzer/rules/score.hpp"
#include "support/file.hpp"
#include "tools/ptx-debug/verb.hpp"

namespace ptxkit::tools {
namespace {

rules::Status check_file(const std::string& path, std::string& out) {
  auto text = read_file(path);
  if (!text) {
    complain(text.error().message());
    return rules::Status::unreadable;
  }
  const ptx::ParseResult parsed = ptx::parse(std::move(*text), path);
  out += report::rendered(parsed);
  const std::string name = report::printable(path);
  if (!parsed.diagnostics.empty()) {
    out += fmt::format("{}: {} error{}\n", name, parsed.diagnostics.size(), parsed.diagnostics.size() == 1 ? "" : "s");
    return rules::Status::unparsable;
  }
  const auto entry_count = std::ranges::count_if(
      parsed.module.functions, [](const ptx::Function& function) { return function.is_entry && function.has_body; });
  out += fmt::format("{}: ok, PTX {}.{} for {}, {} kernel{}\n", name, parsed.module.version_major,
                     parsed.module.version_minor, parsed.module.target, entry_count, entry_count == 1 ? "" : "s");
  return rules::Status::good;
}

int check_files(const std::vector<std::string>& files) {
  if (std::ranges::count(files, "-") > 1) return usage_error("check", "standard input can be read only once");
  rules::Status status = rules::Status::good;
  std::string out;
  for (const std::string& path : files) status = std::max(status, check_file(path, out));
  return rules::exit_code(print(out) ? status : rules::Status::unreadable);
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("check", "parse and validate FILE..., nothing more");
  const auto files = std::make_shared<std::vector<std::string>>();
  verb->add_option("FILE", *files, "PTX files; - is standard input")->required();
  verb->callback([files, &action] { action = [files] { return check_files(*files); }; });
}

}  // namespace ptxkit::tools
