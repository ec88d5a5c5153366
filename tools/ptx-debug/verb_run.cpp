// `ptx-debug run FILE --entry E --grid X --block X --arg SPEC...`: runs one launch on the emulator, with the sanitizer,
// or on a GPU. Exit codes: 0 ran clean, 3 faults found, 10 the text does not parse or the kernel reached an unsupported
// instruction, 11 a file cannot be read or written or there is no GPU, 64 wrong usage, including a launch that does not
// fit the kernel.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/analyze/place.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/score.hpp"
#include "runtime/driver/error_catalogue.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/launch/generated_bytes.hpp"
#include "runtime/launch/generated_launch.hpp"
#include "runtime/launch/launch_file.hpp"
#include "runtime/launch/launch_file_use.hpp"
#include "runtime/launch/made_launch.hpp"
#include "runtime/launch/object_spec.hpp"
#include "runtime/launch/outcome_json.hpp"
#include "support/file.hpp"
#include "support/plural.hpp"
#include "support/printable.hpp"
#include "support/result.hpp"
#include "support/sandbox.hpp"
#include "tools/ptx-debug/argument_spec.hpp"
#include "tools/ptx-debug/fault_sarif.hpp"
#include "tools/ptx-debug/inputs.hpp"
#include "tools/ptx-debug/kernel_run.hpp"
#include "tools/ptx-debug/option_values.hpp"
#include "tools/ptx-debug/outputs.hpp"
#include "tools/ptx-debug/sandbox_option.hpp"
#include "tools/ptx-debug/stop_request.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {
namespace {

using emulator::Dim3;

constexpr int kFaultsExitCode = 3;

struct RunOptions {
  std::string file, entry, grid = "1", block = "1", cluster = "1", checks = "standard", schedule = "in-order",
                           backend = "emulator", json, sarif;
  std::vector<std::string> arguments, bindings, launch;
  std::optional<uint64_t> made;
  uint32_t shared_bytes = 0;
  uint64_t max_steps = 0;
  uint64_t max_idle_steps = emulator::kDefaultIdleSteps;
  uint64_t heap_bytes = emulator::LaunchOptions{}.heap_bytes;
  uint64_t print_fifo_bytes = emulator::LaunchOptions{}.print_fifo_bytes;
  unsigned threads = 1;
  double deadline_seconds = 0;
  SandboxOption sandbox;
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

// "in-order", "random:SEED" or "adversarial:SEED".
bool parse_schedule(std::string_view text, emulator::LaunchOptions& options) {
  if (text == "in-order") return true;
  options.adversarial = text.starts_with("adversarial:");
  if (!options.adversarial && !text.starts_with("random:")) return false;
  text.remove_prefix(text.find(':') + 1);
  uint64_t& seed = options.schedule_seed;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  return error == std::errc() && stop == text.data() + text.size() && seed != 0;
}

int fail_reading(const Error& error) {
  complain(error.message());
  return exit_code_of(rules::Status::unreadable);
}

struct RunSettings {
  emulator::LaunchOptions launch;
  double deadline_seconds = 0;
};

// Reads all options but the file and the arguments into `run` and `settings`. Returns an error message for a wrong one.
std::optional<std::string> read_settings(const RunOptions& options, KernelRun& run, RunSettings& settings) {
  if (options.json == "-" && options.sarif == "-")
    return "--json and --sarif: standard output can hold one of them; give the other a file";
  if (options.backend != "emulator" && options.backend != "cuda")
    return fmt::format("--backend: expected emulator or cuda, found '{}'", options.backend);
  if (!parse_dimensions(options.grid, run.shape.grid))
    return fmt::format("--grid: expected X, X,Y or X,Y,Z, found '{}'", options.grid);
  if (!parse_dimensions(options.block, run.shape.block))
    return fmt::format("--block: expected X, X,Y or X,Y,Z, found '{}'", options.block);
  if (!parse_dimensions(options.cluster, run.shape.cluster))
    return fmt::format("--cluster: expected X, X,Y or X,Y,Z, found '{}'", options.cluster);
  if (!parse_schedule(options.schedule, settings.launch))
    return fmt::format(
        "--schedule: expected in-order, random:SEED or adversarial:SEED with a seed of at least 1, found '{}'",
        options.schedule);
  const auto checks = emulator::parse_checks(options.checks);
  if (!checks) return checks.error().message();
  run.shape.dynamic_shared_bytes = options.shared_bytes;
  settings.launch.checks = *checks;
  settings.launch.max_steps = options.max_steps;
  settings.launch.max_idle_steps = options.max_idle_steps;
  settings.launch.heap_bytes = options.heap_bytes;
  settings.launch.print_fifo_bytes = options.print_fifo_bytes;
  settings.launch.threads = options.threads;
  settings.deadline_seconds = options.deadline_seconds;
  return std::nullopt;
}

// The report of a run, the same for both backends.
struct RunReport {
  std::string text;
  std::string json;
  std::string sarif;
  std::vector<std::optional<std::vector<std::byte>>> buffers;  // as in GpuOutcome
  int exit_code = 0;
  bool has_live_kernel = false;  // waiting for anything would hang
};

// The value of a piece; `address` is that of its buffer, if it has one.
Result<std::vector<std::byte>> piece_value(emulator::Device& device, const ArgumentSpec& piece,
                                           emulator::Address address, uint32_t address_bits) {
  if (piece.object) return object_value(device, *piece.object, address);
  return piece.is_buffer ? address_value(address, address_bits / 8) : piece.bytes;
}

// An address for each piece of the arguments; 0 for one without a buffer.
Result<PlacedLaunch> place_arguments(const KernelRun& run, emulator::Device& device, const emulator::Program& program) {
  PlacedLaunch placed;
  auto& [addresses, arguments] = placed;
  const auto value_of = [&](const ArgumentSpec& piece) -> Result<std::vector<std::byte>> {
    emulator::Address& address = addresses.emplace_back(0);
    if (piece.is_buffer) {
      const auto allocated = device.allocate(piece.bytes.size(), arguments.size() < run.entry.parameters.size()
                                                                     ? run.entry.parameters[arguments.size()].name
                                                                     : "buffer");
      if (!allocated) return tl::unexpected(allocated.error());
      address = *allocated;
      if (piece.initialised) {
        if (const auto written = device.write(address, piece.bytes); !written) return tl::unexpected(written.error());
      }
    }
    return piece_value(device, piece, address, run.address_bits);
  };
  for (const ArgumentSpec& argument : run.arguments) {
    const size_t number = arguments.size(), parameter_count = run.arguments.size() - run.bindings.size();
    if (number >= parameter_count && argument.is_content()) {
      addresses.push_back(0);
      arguments.push_back({argument.bytes});
    } else {
      auto value = argument_bytes(argument, value_of);
      if (!value) return tl::unexpected(value.error());
      arguments.push_back({std::move(*value)});
    }
    if (number < parameter_count) continue;
    const auto written = program.write(run.bindings[number - parameter_count], arguments.back().bytes);
    if (!written) return tl::unexpected(written.error());
  }
  arguments.resize(run.arguments.size() - run.bindings.size());
  return placed;
}

// Reads the buffers of all pieces after the launch, and the module variables that bindings initialised.
Result<void> read_buffers(const KernelRun& run, const PlacedLaunch& placed, const emulator::Device& device,
                          const emulator::Program& program, RunReport& report) {
  for (size_t i = 0; i < run.arguments.size(); ++i) {
    const size_t binding = i - (run.arguments.size() - run.bindings.size());  // wraps around for parameters
    Result<void> done;
    for_each_piece(run.arguments[i], [&](const ArgumentSpec& piece) {
      const emulator::Address address = placed.addresses[report.buffers.size()];
      auto& buffer = report.buffers.emplace_back();
      if (!piece.is_buffer || !done) return;
      buffer.emplace(piece.bytes.size());
      done = address != 0 ? device.read(address, *buffer) : program.read(run.bindings[binding], *buffer);
    });
    if (!done) return done;
  }
  return {};
}

Result<RunReport> run_emulated(const KernelRun& run, const RunSettings& settings, emulator::Device& device,
                               const emulator::Program& program, const std::optional<GeneratedLaunch>& made) {
  const auto placed = made ? place_launch(device, program, *made) : place_arguments(run, device, program);
  if (!placed) return tl::unexpected(placed.error());
  const auto outcome = emulator::launch(program, run.entry.name, run.shape, placed->arguments, settings.launch);
  if (!outcome) return tl::unexpected(outcome.error());
  RunReport report;
  report.text = outcome->output;
  if (outcome->lost_prints != 0)
    report.text +=
        fmt::format("{}: the text of {}, {}, is lost: --printf-fifo {} keeps the newest\n", printable_path(run.file),
                    plural(outcome->lost_prints, "call of printf", "calls of printf"),
                    plural(outcome->lost_print_bytes, "byte"), settings.launch.print_fifo_bytes);
  report.text += emulator::render(*outcome, printable_path(run.file));
  report.text += fmt::format("{}: '{}' {}: {} in {}\n", printable_path(run.file), run.entry.name,
                             outcome->ok() ? "ran clean" : "has " + plural(outcome->faults.size(), "fault"),
                             plural(outcome->statistics.thread_instructions, "thread instruction"),
                             plural(outcome->statistics.cta_count, "block"));
  report.json = outcome_json(*outcome, run.file, run.entry.name);
  if (const auto read = read_buffers(run, *placed, device, program, report); !read) return tl::unexpected(read.error());
  report.exit_code = outcome->ok() ? 0 : kFaultsExitCode;
  for (const emulator::Fault& fault : outcome->faults) {
    if (fault.kind == emulator::FaultKind::unsupported) report.exit_code = exit_code_of(rules::Status::unparsable);
  }
  report.sarif = fault_sarif(program.module(), outcome->faults, outcome->notes, report.exit_code);
  return report;
}

Result<RunReport> run_cuda(const KernelRun& run, const RunSettings& settings, const ptx::Module& module) {
  auto outcome = run_on_gpu(run, settings.deadline_seconds, *settings.launch.stop);
  if (!outcome) return tl::unexpected(outcome.error());
  RunReport report;
  GpuEnd ended{outcome->device, outcome->status, outcome->timed_out, outcome->interrupted, {}};
  std::string what = "ran clean", kind;
  if (outcome->timed_out) {
    what = fmt::format("is still running after {} s", settings.deadline_seconds);
    kind = "deadline";
    ended.fault = {kind, what, {}};
  } else if (outcome->interrupted) {
    what = "was interrupted and is still running";
    kind = "interrupted";
    ended.fault = {kind, what, {}};
  } else if (outcome->status != 0) {
    const Error error = driver::driver_error(outcome->status, "the launch ended");
    what = fmt::format("has 1 fault: {}", error.message());
    kind = driver::explain(outcome->status).name;
    ended.fault = {kind, error.what, error.todo};
  }
  report.json = outcome_json(ended, run.file, run.entry.name);
  report.text = fmt::format("{}: '{}' {} on {}\n", printable_path(run.file), run.entry.name, what, outcome->device);
  report.buffers = std::move(outcome->buffers);
  report.has_live_kernel = outcome->is_running();
  report.exit_code = outcome->is_running() || outcome->status != 0 ? kFaultsExitCode : 0;
  report.sarif = gpu_fault_sarif(module, run.entry.name, kind, what, report.exit_code);
  return report;
}

// Writes standard output, the buffers' files, JSON and SARIF. Returns the exit code.
int deliver(const RunReport& report, const KernelRun& run, const RunOptions& options) {
  const bool written = options.json == "-" || options.sarif == "-" || print(report.text);
  const auto pieces = run.pieces();
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string& path = pieces[i]->output;
    if (path.empty()) continue;
    if (!report.buffers[i]) {
      complain(fmt::format("{} is not written: the buffer was lost with its context; use mapped:BYTES:OUT", path));
      continue;
    }
    const auto& bytes = *report.buffers[i];
    if (const auto saved = write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}); !saved)
      return fail_reading(saved.error());
  }
  if (!options.sarif.empty()) {
    if (const auto saved = write_file(options.sarif, report.sarif); !saved) return fail_reading(saved.error());
  }
  if (!options.json.empty()) {
    const auto saved = write_file(options.json, report.json);
    if (!saved) return fail_reading(saved.error());
  }
  return written ? report.exit_code : exit_code_of(rules::Status::unreadable);
}

std::string names_of(const std::vector<emulator::EntryInfo>& entries) {
  std::string names;
  for (const emulator::EntryInfo& entry : entries) names += (names.empty() ? "" : ", ") + entry.name;
  return names;
}

std::string wrong_count(const emulator::EntryInfo& entry, size_t count) {
  std::string expected;
  for (const emulator::EntryParameter& parameter : entry.parameters) {
    expected +=
        fmt::format("{}{} ({})", expected.empty() ? ": " : ", ", parameter.name, plural(parameter.size_bytes, "byte"));
  }
  return fmt::format("launch of '{}': {}, expected {}{}", entry.name, plural(count, "argument"),
                     entry.parameters.size(), expected);
}

// What is wrong with --made and --launch, or with other options beside them.
std::optional<std::string> fault_of_made(const RunOptions& options, const KernelRun& run) {
  if (!options.made) {
    if (options.launch.empty()) return std::nullopt;
    return "--launch: expected --made N beside it, which says what the launch file leaves open";
  }
  if (options.backend != "emulator") return "--made: runs on the emulator alone";
  const Dim3 one;
  const auto is_one = [&](const Dim3& dim) { return dim.x == one.x && dim.y == one.y && dim.z == one.z; };
  if (!run.arguments.empty() || !is_one(run.shape.grid) || !is_one(run.shape.block) || !is_one(run.shape.cluster) ||
      options.shared_bytes != 0)
    return "--made: makes the launch; expected none of --arg, --bind, --grid, --block, --cluster, --shared beside it";
  return std::nullopt;
}

Result<GeneratedLaunch> made_launch_of(const RunOptions& options, const KernelRun& run, const ptx::Module& module) {
  rules::LaunchSet launch;
  for (const std::string& path : options.launch)
    if (const auto read = read_launch_file(path, launch); !read) return tl::unexpected(read.error());
  complain_of(launch_file_remarks(launch, module));
  const auto facts = launch.find(run.entry.name);
  const auto kernel = std::ranges::find_if(module.functions, [&](const ptx::Function& each) {
    return each.is_entry && each.has_body && each.name == run.entry.name;
  });
  auto made =
      make_launch(module, *kernel, facts == launch.end() ? nullptr : &facts->second,
                  static_cast<unsigned>(*options.made), options.max_steps != 0 ? options.max_steps : kMadeSteps);
  if (!made) return tl::unexpected(made.error());
  return std::move(made->launch);
}

int run_kernel(const RunOptions& options) {
  KernelRun run;
  RunSettings settings;
  if (const auto what = read_settings(options, run, settings)) return usage_error("run", *what);
  settings.launch.stop = &stop_request();  // install the signal handlers before long work
  if (const auto what = fault(options.sandbox)) return usage_error("run", *what);
  const Output outputs[] = {{"--json", options.json}, {"--sarif", options.sarif}};
  if (const auto what = fault(outputs, {&options.file, 1})) return usage_error("run", *what);
  if (const auto can = check_all_writable(outputs); !can) return fail_reading(can.error());
  for (const std::string& spec : options.arguments) {
    auto argument = parse_argument_spec(spec);
    if (!argument)
      return argument.error().where.empty() ? usage_error("run", argument.error().message())
                                            : fail_reading(argument.error());
    run.arguments.push_back(std::move(*argument));
  }
  for (const std::string& binding : options.bindings) {
    const size_t equals = binding.find('=');
    if (equals == std::string::npos || equals == 0)
      return usage_error("run", fmt::format("--bind: expected NAME=SPEC, found '{}'", binding));
    auto argument = parse_argument_spec(std::string_view(binding).substr(equals + 1));
    if (!argument)
      return argument.error().where.empty() ? usage_error("run", argument.error().message())
                                            : fail_reading(argument.error());
    run.bindings.push_back(binding.substr(0, equals));
    run.arguments.push_back(std::move(*argument));
  }
  SandboxNeeds needs{{options.json, options.sarif}};
  for (const ArgumentSpec* piece : run.pieces()) {
    if (const auto can = check_writable(piece->output); !can) return fail_reading(can.error());
    needs.outputs.push_back(piece->output);
  }
  const bool on_gpu = options.backend == "cuda";
  if (const auto what = fault_of_made(options, run)) return usage_error("run", *what);
  if (const auto code = begin_sandbox(options.sandbox, needs, {on_gpu ? "--backend cuda" : ""})) return *code;
  auto image = read_one_image(options.file);
  if (!image) return fail_reading(image.error());
  run.file = image->name;
  run.ptx = image->text;
  ptx::ParseResult parsed = ptx::parse(std::move(image->text), image->name);
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
  run.address_bits = program->module().address_size;
  if (options.entry.empty() && program->entries().size() != 1)
    return usage_error("run", program->entries().empty()
                                  ? fmt::format("{} has no kernel", run.file)
                                  : fmt::format("{} has {} kernels: name one with --entry: {}", run.file,
                                                program->entries().size(), names_of(program->entries())));
  auto entry = program->entry(options.entry.empty() ? program->entries().front().name : options.entry);
  if (!entry) return usage_error("run", entry.error().message());
  run.entry = std::move(*entry);

  std::optional<GeneratedLaunch> made;
  if (options.made) {
    auto launch = made_launch_of(options, run, program->module());
    if (!launch) return usage_error("run", launch.error().message());
    made = std::move(*launch);
    run.shape = made->shape;
  } else if (const size_t count = run.arguments.size() - run.bindings.size(); count != run.entry.parameters.size())
    return usage_error("run", wrong_count(run.entry, count));
  if (!on_gpu && settings.deadline_seconds > 0) request_stop_after(settings.deadline_seconds);
  const auto report =
      on_gpu ? run_cuda(run, settings, program->module()) : run_emulated(run, settings, device, *program, made);
  if (!report) {
    // A launch that does not fit is the caller's mistake; memory that is used up, and a driver that is missing or
    // refuses, are not.
    const bool is_system = on_gpu ? !report.error().where.empty() : report.error().kind == ErrorKind::no_memory;
    return is_system ? fail_reading(report.error()) : usage_error("run", report.error().message());
  }
  const int exit_code = deliver(*report, run, options);
  if (report->has_live_kernel) std::_Exit(exit_code);  // a regular exit would wait for the kernel
  return exit_code;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  Verb verb(app, "run", "run one kernel of FILE on the emulator or a GPU and report its faults");
  const auto options = std::make_shared<RunOptions>();
  verb.option("FILE", options->file, std::string(kOneFile)).required();
  verb.option("--entry", options->entry, "kernel to run; may be omitted if there is only one");
  verb.option("--grid", options->grid, "blocks: X, X,Y or X,Y,Z (default 1)");
  verb.option("--block", options->block, "threads of a block: X, X,Y or X,Y,Z (default 1)");
  verb.option("--cluster", options->cluster, "blocks of a cluster: X, X,Y or X,Y,Z (default 1)");
  verb.option("--shared", options->shared_bytes, "bytes of dynamic shared memory (default 0)")
      .check(whole_number(std::numeric_limits<uint32_t>::max()));
  verb.option(
          "--arg", options->arguments,
          "the next parameter: u32:5 s64:-1 f32:1.5 b8:ff ..., in:FILE inout:FILE:OUT out:BYTES:OUT "
          "mapped:BYTES:OUT uninit:BYTES:OUT zero:BYTES hex:00ff; bytes:00ff struct:SPEC,SPEC,...; tex:LIST:FILE "
          "surf:LIST:FILE:OUT sampler:LIST, LIST such as 2d,8x8,f32x4,linear,wrap,normalised; tensor:LIST:FILE, LIST "
          "such as f16,64x64,box16x64,swizzle128")
      .repeated();
  verb.option("--made", options->made,
              fmt::format("the launch that `analyze --run` makes up under this number, 0 to {}, in place of --arg, "
                          "--grid, --block and the like",
                          kMadeLaunches - 1))
      .type_name("N")
      .check(whole_number(kMadeLaunches - 1));
  verb.option("--launch", options->launch, "with --made: a launch file, whose facts are kept")
      .type_name("F")
      .repeated();
  verb.option("--bind", options->bindings,
              "NAME=SPEC: the .global or .const variable of that name holds these bytes, the .texref, .surfref or "
              ".samplerref that handle")
      .repeated();
  verb.option("--backend", options->backend, "emulator (default), or cuda: the GPU $PTXKIT_DEVICE (default 0)");
  verb.option(
      "--check", options->checks,
      "standard (default: all but leaks and stores), all, none, or a list of bounds, alignment, uninitialised, races, "
      "barriers, division, outputs, leaks, stores");
  verb.option("--schedule", options->schedule, "in-order (default), random:SEED or adversarial:SEED");
  verb.option("--max-steps", options->max_steps, "stop after this many warp instructions; 0: no limit")
      .check(whole_number());
  verb.option("--max-idle-steps", options->max_idle_steps,
              "stop after this many warp instructions in a row without a store to shared or global memory; 0: no limit "
              "(default 536870912)")
      .check(whole_number());
  verb.option("--heap", options->heap_bytes, "bytes that malloc may have in use at a time (default 8388608)")
      .check(whole_number());
  verb.option("--printf-fifo", options->print_fifo_bytes,
              "bytes of printed text that are kept, the newest (default 1048576)")
      .check(whole_number());
  verb.option("--deadline", options->deadline_seconds,
              "give up after this many seconds, write the buffers (cuda: the mapped ones) and exit 3; 0: no limit")
      .check(number());
  verb.option("--threads", options->threads, "blocks to run at the same time (default 1)")
      .check(whole_number(std::numeric_limits<uint32_t>::max()));
  verb.option("--json", options->json, "write faults and statistics to this file; - is standard output");
  verb.option("--sarif", options->sarif, "write the faults to this file as SARIF 2.1.0; - is standard output");
  add_sandbox(verb, options->sandbox);
  verb.callback([options, &action] { action = [options] { return run_kernel(*options); }; });
}

}  // namespace ptxkit::tools
