// `ptx-debug run FILE --entry E --grid X --block X --arg SPEC...`: one launch on the emulator, with the sanitizer.
// Exit codes: 0 ran clean, 3 faults found, 10 the text does not parse or reached what cannot be run, 11 a file cannot
// be read or written, 64 wrong usage, which a launch that does not fit the kernel is.
#include <charconv>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/report/place.hpp"
#include "analyzer/rules/score.hpp"
#include "runtime/backend/emulator/emulator.hpp"
#include "support/file.hpp"
#include "tools/ptx-debug/argument_spec.hpp"
#include "tools/ptx-debug/verb.hpp"

namespace ptxkit::tools {
namespace {

using emulator::Dim3;

constexpr int kFaultsExitCode = 3;

struct RunOptions {
  std::string file, entry, grid = "1", block = "1", checks = "all", schedule = "in-order", backend = "emulator", json;
  std::vector<std::string> arguments;
  uint32_t shared_bytes = 0;
  uint64_t max_steps = 0;
  unsigned threads = 1;
};

int exit_code_of(rules::Status status) { return rules::exit_code(status); }

bool parse_dimensions(std::string_view text, Dim3& out) {
  uint32_t* const axes[] = {&out.x, &out.y, &out.z};
  size_t axis = 0;
  for (size_t begin = 0; begin <= text.size(); ++axis) {
    if (axis == 3) return false;
    const size_t end = std::min(text.find(',', begin), text.size());
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, *axes[axis]);
    if (error != std::errc() || stop != text.data() + end) return false;
    begin = end + 1;
  }
  return axis > 0;
}

// "in-order", or "random:SEED".
bool parse_schedule(std::string_view text, uint64_t& seed) {
  if (text == "in-order") return true;
  if (!text.starts_with("random:")) return false;
  text.remove_prefix(7);
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  return error == std::errc() && stop == text.data() + text.size() && seed != 0;
}

nlohmann::ordered_json place_json(const emulator::Site& site, const emulator::ThreadId& thread) {
  return {{"entry", site.entry},   {"line", site.line},       {"column", site.column}, {"ptx", site.text},
          {"source", site.source}, {"thread", thread.thread}, {"block", thread.block}};
}

std::string to_json(const emulator::Outcome& outcome, const RunOptions& options) {
  nlohmann::ordered_json out{
      {"file", options.file}, {"entry", options.entry}, {"faults", nlohmann::ordered_json::array()}};
  for (const emulator::Fault& fault : outcome.faults) {
    nlohmann::ordered_json each{{"kind", emulator::name(fault.kind)},
                                {"rule", emulator::rule(fault.kind)},
                                {"message", fault.message},
                                {"at", place_json(fault.site, fault.thread)}};
    if (fault.has_address) {
      each["address"] = fmt::format("{:#x}", fault.address);
      each["access_bytes"] = fault.access_bytes;
    }
    if (!fault.object.empty())
      each["object"] = {
          {"name", fault.object}, {"size_bytes", fault.object_bytes}, {"offset_bytes", fault.object_offset}};
    if (fault.has_other) {
      each["other"] = place_json(fault.other_site, fault.other_thread);
      each["other"]["message"] = fault.other_message;
    }
    out["faults"].push_back(std::move(each));
  }
  const emulator::Statistics& counts = outcome.statistics;
  out["statistics"] = {{"warp_instructions", counts.warp_instructions},
                       {"thread_instructions", counts.thread_instructions},
                       {"divergent_branches", counts.divergent_branches},
                       {"barriers", counts.barriers},
                       {"blocks", counts.cta_count}};
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int fail_reading(const Error& error) {
  complain(error.message());
  return exit_code_of(rules::Status::unreadable);
}

int run_kernel(RunOptions options) {
  if (options.backend != "emulator")
    return usage_error("run", fmt::format("backend '{}' is not in this program; there is emulator", options.backend));
  emulator::LaunchShape shape;
  emulator::LaunchOptions launch_options;
  if (!parse_dimensions(options.grid, shape.grid))
    return usage_error("run", fmt::format("--grid: expected X, X,Y or X,Y,Z, found '{}'", options.grid));
  if (!parse_dimensions(options.block, shape.block))
    return usage_error("run", fmt::format("--block: expected X, X,Y or X,Y,Z, found '{}'", options.block));
  if (!parse_schedule(options.schedule, launch_options.schedule_seed))
    return usage_error("run",
                       fmt::format("--schedule: expected in-order or random:SEED with a seed of at least 1, found '{}'",
                                   options.schedule));
  const auto checks = emulator::parse_checks(options.checks);
  if (!checks) return usage_error("run", checks.error().message());
  shape.dynamic_shared_bytes = options.shared_bytes;
  launch_options.checks = *checks;
  launch_options.max_steps = options.max_steps;
  launch_options.threads = options.threads;

  auto text = read_file(options.file);
  if (!text) return fail_reading(text.error());
  ptx::ParseResult parsed = ptx::parse(std::move(*text), options.file);
  if (!parsed.diagnostics.empty()) {
    print(report::rendered(parsed));
    return exit_code_of(rules::Status::unparsable);
  }
  emulator::Device device;
  const auto program = emulator::Program::load(device, std::make_shared<const ptx::Module>(std::move(parsed.module)));
  if (!program) {
    complain(program.error().message());
    return exit_code_of(rules::Status::unparsable);
  }
  if (options.entry.empty()) {
    if (program->entries().size() != 1)
      return usage_error(
          "run", fmt::format("{} has {} kernels: name one with --entry", options.file, program->entries().size()));
    options.entry = program->entries().front().name;
  }
  const auto entry = program->entry(options.entry);
  if (!entry) return usage_error("run", entry.error().message());

  std::vector<ArgumentSpec> specs;
  std::vector<emulator::Address> addresses;
  std::vector<emulator::Argument> arguments;
  for (const std::string& spec : options.arguments) {
    auto parsed_spec = parse_argument_spec(spec);
    if (!parsed_spec)
      return parsed_spec.error().where.empty() ? usage_error("run", parsed_spec.error().message())
                                               : fail_reading(parsed_spec.error());
    emulator::Address address = 0;
    if (parsed_spec->is_buffer) {
      const size_t index = specs.size();
      const auto allocated = device.allocate(parsed_spec->bytes.size(),
                                             index < entry->parameters.size() ? entry->parameters[index].name : spec);
      if (!allocated) return usage_error("run", allocated.error().message());
      address = *allocated;
      if (parsed_spec->initialised) {
        if (const auto written = device.write(address, parsed_spec->bytes); !written)
          return usage_error("run", written.error().message());
      }
      arguments.push_back(program->module().address_size == 32 ? emulator::Argument::of(static_cast<uint32_t>(address))
                                                               : emulator::Argument::of(address));
    } else {
      arguments.push_back({parsed_spec->bytes});
    }
    addresses.push_back(address);
    specs.push_back(std::move(*parsed_spec));
  }

  const auto outcome = emulator::launch(*program, options.entry, shape, arguments, launch_options);
  if (!outcome) return usage_error("run", outcome.error().message());
  std::string out = outcome->output + emulator::render(*outcome, options.file);
  out += fmt::format(
      "{}: '{}' {}: {} thread instructions in {} block{}\n", options.file, options.entry,
      outcome->ok() ? "ran clean"
                    : fmt::format("has {} fault{}", outcome->faults.size(), outcome->faults.size() == 1 ? "" : "s"),
      outcome->statistics.thread_instructions, outcome->statistics.cta_count,
      outcome->statistics.cta_count == 1 ? "" : "s");
  bool written = options.json == "-" || print(out);
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].output.empty()) continue;
    std::string bytes(specs[i].bytes.size(), '\0');
    const auto read = device.read(addresses[i], std::as_writable_bytes(std::span(bytes)));
    const auto saved = read ? write_file(specs[i].output, bytes) : read;
    if (!saved) return fail_reading(saved.error());
  }
  if (!options.json.empty()) {
    if (const auto saved = write_file(options.json, to_json(*outcome, options)); !saved)
      return fail_reading(saved.error());
  }
  if (!written) return exit_code_of(rules::Status::unreadable);
  for (const emulator::Fault& fault : outcome->faults)
    if (fault.kind == emulator::FaultKind::unsupported) return exit_code_of(rules::Status::unparsable);
  return outcome->ok() ? 0 : kFaultsExitCode;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("run", "run one kernel of FILE on the emulator and say what is wrong with it");
  const auto options = std::make_shared<RunOptions>();
  verb->add_option("FILE", options->file, "PTX file; - is standard input")->required();
  verb->add_option("--entry", options->entry, "kernel to run; may be left out where there is only one");
  verb->add_option("--grid", options->grid, "blocks: X, X,Y or X,Y,Z");
  verb->add_option("--block", options->block, "threads of a block: X, X,Y or X,Y,Z");
  verb->add_option("--shared", options->shared_bytes, "bytes of dynamic shared memory");
  verb->add_option("--arg", options->arguments,
                   "the next parameter: u32:5 s64:-1 f32:1.5 b8:ff ..., in:FILE inout:FILE:OUT out:BYTES:OUT "
                   "uninit:BYTES:OUT zero:BYTES hex:00ff");
  verb->add_option("--backend", options->backend, "emulator");
  verb->add_option("--check", options->checks,
                   "all, none, or a list of bounds, alignment, uninitialised, races, barriers");
  verb->add_option("--schedule", options->schedule, "in-order, or random:SEED");
  verb->add_option("--max-steps", options->max_steps, "stop after so many warp instructions; 0: no limit");
  verb->add_option("--threads", options->threads, "blocks to run at the same time");
  verb->add_option("--json", options->json, "write faults and statistics to this file; - is standard output");
  verb->callback([options, &action] { action = [options] { return run_kernel(*options); }; });
}

}  // namespace ptxkit::tools
