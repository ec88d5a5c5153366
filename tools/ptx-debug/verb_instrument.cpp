// `ptx-debug instrument FILE -o OUT` adds markers to PTX; `ptx-debug crash-analyze --debug-buffer F --ptx F` finds the
// location of a crash from them. Exit codes: 0 done, or every thread ended; 3 some threads did not end; 10 the text
// does not parse or cannot be instrumented; 11 a file cannot be read, written or used; 64 wrong usage.
#include <algorithm>
#include <bit>
#include <charconv>
#include <memory>

#include <fmt/format.h>

#include "analyzer/analyze/identity.hpp"
#include "analyzer/analyze/place.hpp"
#include "analyzer/instrument/crash.hpp"
#include "analyzer/instrument/launch_markers.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/rules/score.hpp"
#include "analyzer/rules/table.hpp"
#include "support/file.hpp"
#include "support/json_depth.hpp"
#include "support/plural.hpp"
#include "support/printable.hpp"
#include "tools/ptx-debug/inputs.hpp"
#include "tools/ptx-debug/option_values.hpp"
#include "tools/ptx-debug/outputs.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {
namespace {

using instrument::Marker;

constexpr int kNotEndedExitCode = 3;
constexpr size_t kShownSuspects = 4, kShownLines = 12;

int fail_with(const Error& error, rules::Status status) {
  complain(error.message());
  return rules::exit_code(status);
}

struct InstrumentWords {
  std::string file, out = "-", markers, kinds;
  uint32_t records = 4096;
  SandboxOption sandbox;
};

int instrument_file(const InstrumentWords& words) {
  instrument::Options options;
  options.records = words.records;
  if (!std::has_single_bit(words.records))
    return usage_error("instrument", fmt::format("--records: expected a power of two, found {}", words.records));
  if (!words.kinds.empty()) {
    const auto kinds = instrument::parse_kinds(words.kinds);
    if (!kinds) return usage_error("instrument", "--at: " + kinds.error().message());
    options.kinds = *kinds;
  }
  if (const auto what = fault(words.sandbox)) return usage_error("instrument", *what);
  const Output outputs[] = {{"-o", words.out}, {"--markers", words.markers}};
  if (const auto what = fault(outputs, {&words.file, 1})) return usage_error("instrument", *what);
  if (const auto can = check_all_writable(outputs); !can) return fail_with(can.error(), rules::Status::unreadable);
  if (const auto code = begin_sandbox(words.sandbox, {{words.out, words.markers}})) return *code;
  auto image = read_one_image(words.file);
  if (!image) return fail_with(image.error(), rules::Status::unreadable);
  const ptx::ParseResult parsed = ptx::parse(std::move(image->text), image->name);
  if (!parsed.diagnostics.empty()) {
    print(report::rendered(parsed));
    return rules::exit_code(rules::Status::unparsable);
  }
  const auto done = instrument::instrument(parsed.module, options);
  if (!done) return fail_with(done.error(), rules::Status::unparsable);
  if (const auto written = write_file(words.out, done->ptx); !written)
    return fail_with(written.error(), rules::Status::unreadable);
  if (!words.markers.empty()) {
    const auto written = write_file(words.markers, instrument::to_json(done->map));
    if (!written) return fail_with(written.error(), rules::Status::unreadable);
  }
  fmt::print(stderr, "{}: {} markers; the debug buffer has {} bytes\n", printable_path(words.file),
             done->map.markers.size(), done->map.buffer_bytes());
  return 0;
}

struct CrashWords {
  std::string buffer, ptx, markers, error;
  SandboxOption sandbox;
};

// Accepts a CUDA error code such as "716", "deadline", or an empty word; returns false for anything else.
bool parse_ending(std::string_view word, instrument::Ending& ending) {
  if (word.empty()) return true;
  ending.deadline = word == "deadline";
  if (ending.deadline) return true;
  int code = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), code);
  ending.error = code;
  return error == std::errc() && end == word.data() + word.size() && code > 0;
}

std::string place(const std::string& path, uint32_t line, const std::string& source) {
  return fmt::format("{}:{}{}", path, line, source.empty() ? "" : fmt::format(" ({})", source));
}

std::string text_of(const Marker& marker, const std::string& path) {
  if (marker.kind == instrument::MarkerKind::own) {
    return fmt::format("marker {} of {}, set at {}: {}:{}", marker.id, marker.function, marker.source, path,
                       marker.line);
  }
  return fmt::format("{} marker {} of {}, {}: {}", instrument::text(marker.kind), marker.id, marker.function,
                     place(path, marker.line, marker.source), marker.ptx);
}

std::string text_of(const instrument::Standing& standing, const std::string& path) {
  const size_t count = standing.threads.size();
  std::string out = count == 1
                        ? fmt::format("thread {}", standing.threads.front())
                        : fmt::format("{} threads, {} to {}", count, standing.threads.front(), standing.threads.back());
  out += fmt::format(" behind {}\n", text_of(*standing.marker, path));
  if (standing.marker->kind == instrument::MarkerKind::own) {
    out += fmt::format("  its value{} was {}\n", count == 1 ? "" : " in the latest record", standing.last_value);
  }
  const auto& lines = standing.marker->next_lines;
  out += fmt::format("  next come lines {}{}\n",
                     fmt::join(lines.begin(), lines.begin() + std::min(lines.size(), kShownLines), ", "),
                     lines.size() > kShownLines ? ", ..." : "");
  if (standing.loop != nullptr) {
    out += fmt::format("  went round the loop at {} {} times in the markers that are left\n",
                       place(path, standing.loop->line, standing.loop->source), standing.turns);
  }
  return out;
}

std::string text_of(const instrument::Suspect& suspect, const std::string& path) {
  const rules::RuleInfo* rule = rules::find_rule(suspect.rule);
  return fmt::format("likely: {} {}, {}: {}\n  {}\n", suspect.rule, rule != nullptr ? rule->name : "",
                     place(path, suspect.line, suspect.source), suspect.message, suspect.ptx);
}

// Whether a kernel writes markers already: a debug build of the DSL, or a text that was instrumented.
bool has_debug_buffer(const ptx::Module& module) {
  return std::ranges::any_of(module.functions, [&](const ptx::Function& function) {
    return function.is_entry && std::ranges::any_of(function.parameters, [&](ptx::VariableId id) {
             return module.variables[id].name.ends_with("_debug_buffer");
           });
  });
}

int analyze_crash(const CrashWords& words) {
  instrument::Ending ending;
  if (!parse_ending(words.error, ending))
    return usage_error("crash-analyze",
                       fmt::format("--error: expected a CUDA error code or deadline, found '{}'", words.error));
  if (const auto what = fault(words.sandbox)) return usage_error("crash-analyze", *what);
  if (const auto code = begin_sandbox(words.sandbox, {})) return *code;
  auto image = read_one_image(words.ptx);
  if (!image) return fail_with(image.error(), rules::Status::unreadable);
  const auto bytes = read_file(words.buffer);
  if (!bytes) return fail_with(bytes.error(), rules::Status::unreadable);
  const ptx::ParseResult parsed = ptx::parse(std::move(image->text), image->name);
  if (!parsed.diagnostics.empty()) {
    print(report::rendered(parsed));
    return rules::exit_code(rules::Status::unparsable);
  }
  instrument::MarkerMap map;
  if (!words.markers.empty()) {
    const auto json = read_file(words.markers, kMaxJsonBytes);
    if (!json) return fail_with(json.error(), rules::Status::unreadable);
    auto read = instrument::is_launch_file(*json) ? instrument::launch_markers(*json, parsed.module, words.markers)
                                                  : instrument::parse_marker_map(*json, words.markers);
    if (!read) return fail_with(read.error(), rules::Status::unreadable);
    map = std::move(*read);
  } else if (has_debug_buffer(parsed.module)) {
    return fail_with(
        {"this is a debug build, whose markers its launch file lists", words.ptx, "give --markers its .launch.json"},
        rules::Status::unreadable);
  } else {
    // Assume the default markers and a ring that fills the buffer. Nothing in the buffer can confirm this.
    complain(fmt::format("without --markers these are taken for the markers of 'ptx-debug instrument {}' without --at",
                         words.ptx));
    instrument::Options options;
    const size_t records = std::max<size_t>(bytes->size() / 16, 2) - 1;
    if (!std::has_single_bit(records))
      return fail_with(
          {fmt::format("expected the 16 · (N + 1) bytes of a debug buffer, N a power of two, found {} bytes",
                       bytes->size()),
           words.buffer, "give the whole buffer and nothing else"},
          rules::Status::unreadable);
    options.records = static_cast<uint32_t>(records);
    auto again = instrument::instrument(parsed.module, options);
    if (!again) return fail_with(again.error(), rules::Status::unreadable);
    map = std::move(again->map);
  }
  if (map.xxh128 != report::xxh128_hex(parsed.module.text)) {
    return fail_with({fmt::format("these are the markers of another text than {}", words.ptx), words.markers,
                      "give the PTX that was instrumented, not the outcome"},
                     rules::Status::unreadable);
  }
  const auto buffer = instrument::read_debug_buffer(std::as_bytes(std::span(*bytes)), map, words.buffer);
  if (!buffer) return fail_with(buffer.error(), rules::Status::unreadable);
  if (buffer->marker_count == 0)
    return fail_with(
        {"no marker was written: no thread of the kernel came to one, or these are not the bytes that it left",
         words.buffer,
         "a launch that was refused writes nothing, and a buffer in device memory goes with its context: "
         "give the kernel one of mapped host memory (run --arg mapped:BYTES:OUT)"},
        rules::Status::unreadable);

  instrument::Crash crash = instrument::locate(map, *buffer);
  // A kernel that died behind its author's last marker.
  const bool has_died = ending.error || ending.deadline;
  if (crash.standing.empty() && has_died) crash.standing = std::move(crash.at_last);
  std::string out =
      fmt::format("{}: {} of {}, {} of which ended", printable_path(words.buffer),
                  plural(buffer->marker_count, "marker"), plural(crash.thread_count, "thread"), crash.ended_count);
  if (map.is_set_by_author) out += " or stand behind the last marker";
  if (buffer->lost_count != 0) out += fmt::format("; the first {} markers are overwritten", buffer->lost_count);
  if (buffer->unwritten_count != 0) out += fmt::format("; {} were never written", buffer->unwritten_count);
  out += "\n";
  for (const instrument::Standing& standing : crash.standing) out += text_of(standing, words.ptx);
  if (!crash.standing.empty()) {
    const auto found = instrument::suspects(parsed.module, crash, ending);
    for (size_t i = 0; i < std::min(found.size(), kShownSuspects); ++i) out += text_of(found[i], words.ptx);
    if (found.empty()) out += "no rule and no marker names a cause: instrument --at all says more\n";
  }
  if (!print(out)) return rules::exit_code(rules::Status::unreadable);
  return crash.standing.empty() ? 0 : kNotEndedExitCode;
}

}  // namespace

void add_instrument(CLI::App& app, Action& action) {
  Verb verb(app, "instrument", "make the kernels of FILE write down where their threads are");
  const auto words = std::make_shared<InstrumentWords>();
  verb.option("FILE", words->file, std::string(kOneFile)).required();
  verb.option("-o,--output", words->out, "where to write the PTX; standard output by default")
      .type_name("OUT")
      .check(file_name());
  verb.option("--markers", words->markers, "where to write what each marker means, as JSON")
      .type_name("F")
      .check(file_name());
  verb.option("--at", words->kinds,
              "all, or a list of entry, loop, barrier, store, load, call, exit (default: all but load)")
      .type_name("KINDS");
  verb.option("--records", words->records, "markers that the buffer keeps, a power of two (default 4096)")
      .type_name("N")
      .check(whole_number(std::numeric_limits<uint32_t>::max()));
  add_sandbox(verb, words->sandbox);
  verb.callback([words, &action] { action = [words] { return instrument_file(*words); }; });
}

void add_crash_analyze(CLI::App& app, Action& action) {
  Verb verb(app, "crash-analyze", "where a kernel died, from the debug buffer it left");
  const auto words = std::make_shared<CrashWords>();
  verb.option("--debug-buffer", words->buffer, "the buffer's bytes").required().type_name("F");
  verb.option("--ptx", words->ptx, "the PTX that was instrumented, or that of a debug build").required().type_name("F");
  verb.option("--markers", words->markers,
              "what instrument --markers wrote, or the launch file of a debug build; without it, default markers")
      .type_name("F");
  verb.option("--error", words->error, "how it ended: a CUDA error code, or deadline").type_name("CODE");
  add_sandbox(verb, words->sandbox);
  verb.callback([words, &action] { action = [words] { return analyze_crash(*words); }; });
}

}  // namespace ptxkit::tools
