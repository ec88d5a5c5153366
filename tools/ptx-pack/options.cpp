// The command line. Letters mean the same as for `lz4`. Options of `lz4` that this program lacks are errors that name
// the reason: ignoring -9 would mislead.
#include "tools/ptx-pack/options.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iostream>
#include <map>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "support/byte_size.hpp"
#include "support/printable.hpp"
#include "support/program.hpp"
#include "support/suggest.hpp"
#include "tools/ptx-pack/man_page.hpp"

namespace ptxkit::pack {
namespace {

struct RefusedFlag {
  const char* flag;
  const char* reason;
};
constexpr std::array kRefusedFlags = {
    RefusedFlag{"--best", "-3 is the highest level"},
    RefusedFlag{"--fast", "there is one speed"},
    RefusedFlag{"-l", "legacy frames are read but not written"},
    RefusedFlag{"-D", "dictionaries are not supported"},
};

const std::map<std::string, codec::Policy> kPolicies = {{"auto", codec::Policy::automatic},
                                                        {"cpu", codec::Policy::cpu},
                                                        {"gpu", codec::Policy::gpu},
                                                        {"mixed", codec::Policy::mixed}};

// Words such as "-0", "-4", "-12", which CLI11 would take for a file, or for -1 and a file.
bool is_other_level(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && word.find_first_not_of("0123456789", 1) == word.npos && word != "-1" &&
         word != "-2" && word != "-3";
}

ExitCode report_usage(std::string_view program, const std::string& message) {
  tell(fmt::format("{0}: {1}; see {0} --help\n", program, printable(message)));
  return kUsage;
}

bool looks_compressed(const std::string& name) { return format::format_of_name(name).has_value(); }

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// -B takes lz4's spellings: 4 to 7 for a size, D and I for linked and independent blocks, X for block checksums.
// Returns what is wrong, or an empty string.
std::string apply_block_flags(const std::vector<std::string>& values, Options& options) {
  for (const std::string& value : values) {
    for (const char letter : value) {
      if (letter >= '4' && letter <= '7' && value.size() == 1)
        options.block_size_id = letter - '0';
      else if (letter == 'D')
        options.linked_blocks = true;
      else if (letter == 'I')
        options.linked_blocks = false;
      else if (letter == 'X')
        options.block_checksum = true;
      else
        return fmt::format("expected -B4, -B5, -B6, -B7, -BD, -BI or -BX, found -B{}", value);
    }
  }
  return {};
}

// "BEGIN:END", each may be absent.
std::optional<ByteRange> parse_range(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  ByteRange range;
  for (const auto& [part, number] :
       {std::pair(text.substr(0, colon), &range.begin), std::pair(text.substr(colon + 1), &range.end)}) {
    if (part.empty()) continue;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), *number);
    if (error != std::errc{} || end != part.data() + part.size()) return std::nullopt;
  }
  return range.begin < range.end ? std::optional(range) : std::nullopt;
}

// "0,2", or "all", which is the empty list.
std::optional<std::vector<int>> parse_devices(std::string_view text) {
  std::vector<int> devices;
  if (text == "all") return devices;
  for (bool more = true; more;) {
    const std::string_view part = text.substr(0, text.find(','));
    int number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc{} || end != part.data() + part.size() || number < 0) return std::nullopt;
    if (std::find(devices.begin(), devices.end(), number) != devices.end()) return std::nullopt;
    devices.push_back(number);
    more = part.size() != text.size();
    if (more) text.remove_prefix(part.size() + 1);
  }
  return devices;
}

// --list-codecs, which needs nothing else on the command line.
struct CodecsAsked {};
// --man: likewise.
struct ManPageAsked {};

std::vector<std::string_view> names_of_fast_codecs() {
  std::vector<std::string_view> names;
  for (const format::PtzCodecRow& row : format::ptz_codecs())
    if (row.has_match_search()) names.push_back(row.name);
  return names;
}

// A line for each codec: name, suffix of its files, components.
std::string codec_table() {
  std::string text;
  for (const format::FileFormatRow& row : format::file_formats())
    if (row.format != format::FileFormat::ptz)
      text += fmt::format("{:<14} {}  {}\n", row.name, row.suffix, row.summary);
  for (const format::PtzCodecRow& row : format::ptz_codecs())
    text += fmt::format("{:<14} {}  {}\n", row.name, row_of(format::FileFormat::ptz).suffix, row.summary);
  return text;
}

// The exit code after standard output has been flushed.
ExitCode flushed(std::string_view program) {
  if (std::cout.flush()) return kOk;
  tell(fmt::format("{}: standard output: cannot write: {}\n", program, std::strerror(errno)));
  return kFailed;
}

}  // namespace

std::variant<Options, ExitCode> parse_options(int argc, char** argv, const Program& program) {
  const auto usage = [&](const std::string& message) { return report_usage(program.name, message); };
  Options options;
  CLI::App app{program.description};
  app.set_version_flag("-V,--version", std::string(program.name) + " " PTXKIT_VERSION);
  app.footer("Exit status: 0 all done; 1 an input or output failed; 2 wrong usage.");

  bool compress = false, decompress = false, test = false, list = false, bench = false, to_stdout = false, keep = false;
  bool multiple = false, level_two = false, sparse = false, no_sparse = false;
  int verbose = 0, quiet = 0;
  bool content_size = false, no_content_size = false, frame_crc = false, no_frame_crc = false;
  std::vector<std::string> names, block_flags;
  const std::string suffixes = format::file_suffixes();
  std::string output, range;
  app.add_option("FILE", names, "input; - or none is standard input; a second name without -m is the output");
  app.add_flag("-z,--compress", compress,
               fmt::format("compress (default, unless the first name ends in {})", suffixes));
  app.add_flag("-d,--decompress", decompress, fmt::format("decompress (default for names that end in {})", suffixes));
  app.add_flag("-t,--test", test, "decompress, check everything, write nothing");
  app.add_flag("--list", list, "say what is in compressed files");
  app.add_flag("-b,--bench", bench, "compress to LZ4 and decompress in memory, and say how fast");
  app.add_flag("-c,--stdout", to_stdout, "write to standard output, terminals included");
  auto* output_option = app.add_option("-o,--output", output, "write to this file; - is standard output");
  app.add_flag("-k,--keep", keep, "keep the input (default)");
  app.add_flag("--rm", options.remove_source, "remove each input once its output lies on the disk");
  app.add_flag("-f,--force", options.force, "overwrite outputs; write compressed data to a terminal");
  app.add_flag("-m,--multiple", multiple, "every name is an input; outputs go beside them");
  app.add_flag("-r,--recursive", options.recursive, "take the files below a directory (implies -m)");
  app.add_flag("--share-by-rank", options.share_by_rank,
               "with the other processes of an MPI job: each takes a part of the inputs");
  app.add_flag("--sparse", sparse, "leave holes where pages of zeros would be written, on standard output too");
  app.add_flag("--no-sparse", no_sparse, "leave none (default: holes in files, not on standard output)");
  app.add_flag("--verify", options.verify, "read each output back and check it before it is put in place");
  auto* range_option = app.add_option("--range", range,
                                      "BEGIN:END: decompress these raw bytes only, END excluded; either may be absent");
  app.add_option(
         "-B", block_flags,
         "4 to 7: blocks of 64 KiB (default), 256 KiB, 1 MiB, 4 MiB; D: linked blocks; I: independent (default); "
         "X: block checksums")
      ->allow_extra_args(false);
  app.add_flag("--content-size", content_size, "record the size of the content (default where it is known)");
  app.add_flag("--no-content-size", no_content_size, "do not");
  app.add_flag("--frame-crc", frame_crc, "record a checksum of the content (default)");
  app.add_flag("--no-frame-crc", no_frame_crc, "do not");
  app.add_option("-T,--threads", options.thread_count, "CPU threads; 0 (default): all cores")
      ->check(CLI::Range(0, 1024));
  app.add_option("--memory", options.memory_bytes,
                 "the most memory to use, at least 24M; default: as the backend prefers, whatever the file's size")
      ->transform(CLI::Validator(byte_size_to_digits, "SIZE"));
  app.add_option("--prefetch", options.prefetch, "batches that are read ahead of the one that is written (default 2)")
      ->check(CLI::Range(0, 64));
  app.add_option("--backend", options.backend, "auto (default), cpu, cuda or emulator")
      ->check(CLI::IsMember({"auto", "cpu", "cuda", "emulator"}));
  std::string policy = "auto";
  app.add_option("--policy", policy,
                 "of --backend auto: auto (default), whichever is faster for the inputs' size; cpu; gpu; mixed, both")
      ->check(CLI::IsMember({"auto", "cpu", "gpu", "mixed"}));
  std::string devices = program.devices;
  app.add_option("--device", devices, program.devices_help);
  std::string codec = "lz4";
  app.add_option("--codec", codec,
                 fmt::format("lz4 (default); zstd: Zstandard frames; gzip: gzip members; {}: smaller, in .ptz files; "
                             "lzr takes options, as in "
                             "lzr:lanes=8,chunk=4K: chunks that are coded apart, of 1, 4, 8 or 16 KiB, in 4, 8 or 32 "
                             "lanes; and rans what the numbers are, as in rans:dtype=bfloat16 or rans:stride=4",
                             format::ptz_codec_names()));
  bool is_auto = false;
  std::string trial;
  app.add_flag("--auto", is_auto,
               "choose the codec for each input by a sample: entropy and repetitions; for the smallest output");
  auto* trial_option = app.add_flag("--trial{ratio}", trial,
                                    "code a sample of each input with every codec, and take the one that makes it "
                                    "smallest; --trial=speed: the fastest one");
  app.add_flag_callback("--man", [] { throw ManPageAsked(); }, "print this program's manual page, for man(1)");
  app.add_flag_callback("--list-codecs", [] { throw CodecsAsked(); }, "name, file type and parts of every codec");
  app.add_flag("--seekable", options.seekable,
               "of zstd: frames of 512 KiB and a table of them, for --range, in place of one frame");
  app.add_flag("--reproducible", options.reproducible, "the encoder whose bytes are the same on every backend");
  app.add_flag(
      "-1", options.fast,
      fmt::format(
          "the usual level of lz4; zstd, gzip: faster, larger; {}: several times as fast on a GPU, some 8 % larger",
          fmt::join(names_of_fast_codecs(), ", ")));
  app.add_flag("-2", level_two, "the usual compression level (default)");
  app.add_flag("-3", options.high_ratio, "a higher ratio, slower; the bytes are the same on every backend");
  app.add_option("--sandbox", options.sandbox,
                 "before an input is read, give up new files but the outputs, programs and sockets: auto (default), "
                 "where no GPU is used and the kernel can; require, or fail; off")
      ->type_name("auto|require|off");
  bool measure_rates = false;
  app.add_flag("--measure-rates", measure_rates,
               "measure how fast the CPU and the GPU are, for --policy auto, and end; takes ten seconds");
  std::string trace;
  auto* trace_option =
      app.add_option("--trace", trace,
                     "write a time line of reading, copies, kernels, coding, writing and waits to this "
                     "file, in Chrome's trace event format");
  app.add_flag("-v,--verbose", verbose, "say what is done; twice: details");
  app.add_flag("-q,--quiet", quiet, "no warnings and no progress; twice: no errors either");
  for (const RefusedFlag& refused : kRefusedFlags) app.add_flag(refused.flag)->group("");

  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    if (is_other_level(argv[i])) return usage(fmt::format("{} is refused: the levels are -1, -2 and -3", argv[i]));
  }
  try {
    app.parse(argc, argv);
  } catch (const CodecsAsked&) {
    std::cout << codec_table();
    return flushed(program.name);
  } catch (const ManPageAsked&) {
    std::cout << man_page(app, program.name, PTXKIT_VERSION);
    return flushed(program.name);
  } catch (const CLI::Success& success) {  // --help, --version
    app.exit(success);
    return flushed(program.name);
  } catch (const CLI::ExtrasError&) {
    const std::string word = app.remaining().front();
    return usage(fmt::format("unknown option '{}'{}", word, did_you_mean(word, option_names(app))));
  } catch (const CLI::ParseError& error) {
    return usage(error.what());
  }

  for (const RefusedFlag& refused : kRefusedFlags) {
    if (app.count(refused.flag) != 0) return usage(fmt::format("{} is refused: {}", refused.flag, refused.reason));
  }
  const auto device_list = parse_devices(devices);
  if (!device_list) return usage(fmt::format("expected --device N, N,N or all, each N once, found {}", devices));
  options.devices = *device_list;
  options.policy = kPolicies.at(policy);
  if (app.count("--policy") != 0 && options.backend != "auto") return usage("--policy is for --backend auto");
  const bool is_without_gpu =
      options.backend == "cpu" || options.backend == "emulator" || options.policy == codec::Policy::cpu;
  if (app.count("--device") != 0 && is_without_gpu) return usage("--device is for a GPU, and none is to be used");
  if (const std::string wrong = apply_block_flags(block_flags, options); !wrong.empty()) return usage(wrong);
  if (content_size && no_content_size) return usage("--content-size and --no-content-size exclude each other");
  if (frame_crc && no_frame_crc) return usage("--frame-crc and --no-frame-crc exclude each other");
  if (sparse && no_sparse) return usage("--sparse and --no-sparse exclude each other");
  if (sparse || no_sparse) options.sparse = sparse;
  if (keep && options.remove_source) return usage("-k and --rm exclude each other");
  if (options.reproducible && options.linked_blocks) {
    return usage("--reproducible and -BD exclude each other: the reproducible encoder has no linked blocks");
  }
  if (options.fast && level_two) return usage("-1 and -2 exclude each other");
  if (options.high_ratio && (options.linked_blocks || options.fast || level_two)) {
    return usage(options.linked_blocks ? "-3 and -BD exclude each other: the high-ratio encoder has no linked blocks"
                                       : "-3 and -1 or -2 exclude each other");
  }
  if (options.memory_bytes != 0 && options.memory_bytes < kLeastMemoryBytes) {
    return usage(
        fmt::format("--memory takes at least {}M, found {} bytes", kLeastMemoryBytes >> 20, options.memory_bytes));
  }
  if (is_auto || trial_option->count() != 0) {
    const std::string name = is_auto ? "--auto" : "--trial";
    if (is_auto && trial_option->count() != 0) return usage("--auto and --trial exclude each other");
    if (!is_auto && trial != "ratio" && trial != "speed")
      return usage(fmt::format("expected --trial, --trial=ratio or --trial=speed, found --trial={}", trial));
    if (app.count("--codec") != 0) return usage(fmt::format("{} and --codec exclude each other", name));
    if (decompress || test || list || bench || measure_rates || range_option->count() != 0)
      return usage(fmt::format("{} is for compression", name));
    if (!block_flags.empty() || options.reproducible || options.high_ratio || options.fast || content_size ||
        no_content_size || frame_crc || no_frame_crc || options.seekable) {
      return usage(fmt::format(
          "-B, --reproducible, -1, -3, --seekable, --[no-]content-size and --[no-]frame-crc are for a codec that "
          "--codec names, not for {}",
          name));
    }
    options.chooses = is_auto ? Chooses::by_statistics : trial == "ratio" ? Chooses::by_ratio : Chooses::by_speed;
  }
  const bool has_frame_flags = content_size || no_content_size || frame_crc || no_frame_crc;
  const auto is = [&](format::FileFormat format) { return codec == row_of(format).name; };
  if (is(format::FileFormat::zstd) || is(format::FileFormat::gzip)) {
    options.format = is(format::FileFormat::zstd) ? format::FileFormat::zstd : format::FileFormat::gzip;
    if (options.format == format::FileFormat::gzip && has_frame_flags)
      return usage("--[no-]content-size and --[no-]frame-crc are for lz4 and zstd, not for gzip");
    if (!block_flags.empty() || options.reproducible)
      return usage(fmt::format("-B and --reproducible are for lz4, not for {}", codec));
    if ((options.backend == "cuda" || options.backend == "emulator") && options.high_ratio)
      return usage(fmt::format("--backend {} has no {} -3: it is coded on the CPU", options.backend, codec));
  } else if (!is(format::FileFormat::lz4)) {
    const auto coding = format::parse_ptz_coding(codec);
    if (format::find_ptz_codec(codec.substr(0, codec.find(':'))) == nullptr)
      return usage(fmt::format("--codec: expected lz4, zstd, gzip, {}, found '{}'", format::ptz_codec_names(), codec));
    if (!coding) return usage(fmt::format("--codec: {}", coding.error().what));
    options.format = format::FileFormat::ptz;
    options.codec = *coding;
    if (!block_flags.empty() || options.reproducible || options.high_ratio || has_frame_flags) {
      return usage(fmt::format(
          "-B, --reproducible, -3, --[no-]content-size and --[no-]frame-crc are for lz4, not for {}", codec));
    }
    if (options.fast && !format::row_of(*options.codec).has_match_search())
      return usage(fmt::format("-1 is not for {}, which has one speed", codec));
  }
  if (options.seekable && options.format != format::FileFormat::zstd) return usage("--seekable is for --codec zstd");
  if (options.seekable && no_content_size)
    return usage("--seekable and --no-content-size exclude each other: its frames say their sizes");
  options.content_size = !no_content_size;
  options.content_checksum = !no_frame_crc;
  options.verbosity = 1 + verbose - quiet;
  multiple = multiple || options.recursive;

  const int modes = compress + decompress + test + list + bench + measure_rates;
  if (modes > 1) return usage("-z, -d, -t, -b, --list and --measure-rates exclude each other");
  if (measure_rates && (!names.empty() || output_option->count() != 0 || to_stdout)) {
    return usage("--measure-rates takes no input and writes no output");
  }
  if (names.empty()) names.push_back("-");
  if (output_option->count() != 0) options.output = output;
  if (options.output && options.output->empty()) return usage("-o: expected a file, found ''");
  if (to_stdout && options.output && *options.output != "-") return usage("-c and -o exclude each other");
  if (to_stdout) options.output = "-";
  const bool writes = !test && !list && !bench && !measure_rates;
  if (!writes && options.output) return usage("-t, -b and --list write no output");
  if (bench && options.format != format::FileFormat::lz4)
    return usage(fmt::format("-b measures LZ4 and not {}: leave --codec away", codec));
  if (writes && !multiple && names.size() == 2 && !options.output) {
    options.output = names[1];
    names.pop_back();
  }
  if (writes && !multiple && names.size() > 1) {
    return usage(fmt::format("expected one input, found {}: add -m to take every name as an input", names.size()));
  }
  if (multiple && options.output && *options.output != "-") {
    return usage("-o takes one input: with -m outputs go beside the inputs, or all to standard output with -c");
  }
  if (range_option->count() != 0) {
    options.range = parse_range(range);
    if (!options.range) return usage(fmt::format("expected --range BEGIN:END with BEGIN below END, found {}", range));
    if (modes > decompress) return usage("--range is for decompression");
    if (names.size() != 1) return usage(fmt::format("--range takes one input, found {}", names.size()));
    if (options.remove_source)
      return usage("--range and --rm exclude each other: a part is no substitute for the whole");
    decompress = true;
    if (!options.output) options.output = "-";
  }
  if (trace_option->count() != 0) {
    if (trace.empty() || trace == "-") return usage(fmt::format("--trace: expected a file, found '{}'", trace));
    if (list || bench || measure_rates) return usage("--trace is for -z, -d and -t");
    options.trace = trace;
  }
  options.inputs = std::move(names);
  if (!options.output && options.inputs.front() == "-" && options.inputs.size() == 1) options.output = "-";
  if (options.remove_source && (!writes || options.output == "-")) return usage("--rm needs an output file");
  if (options.verify && (decompress || !writes || options.output == "-")) {
    return usage("--verify is for compression to a file");
  }
  if (options.verify && no_frame_crc)
    return usage("--verify and --no-frame-crc exclude each other: nothing to check against");
  if (options.share_by_rank) {
    if (!writes)
      return usage("--share-by-rank is for compression and decompression: -t, -b and --list are done by one");
    if (options.output == "-" || std::find(options.inputs.begin(), options.inputs.end(), "-") != options.inputs.end()) {
      return usage("--share-by-rank is for files: processes cannot share standard input or standard output");
    }
  }
  if (const auto fault = sandbox_fault(options.sandbox)) return usage(*fault);
  if (options.sandbox == kSandboxRequire && measure_rates) {
    return usage("--sandbox=require and --measure-rates exclude each other: the driver of a GPU opens what it likes");
  }
  if (options.sandbox == kSandboxRequire && !list) {
    const bool has_gpu_policy = options.policy == codec::Policy::gpu || options.policy == codec::Policy::mixed;
    if (options.backend == "cuda" || has_gpu_policy) {
      return usage(fmt::format("--sandbox=require and {} exclude each other: the driver of a GPU opens what it likes",
                               has_gpu_policy ? "--policy " + policy : "--backend cuda"));
    }
    if (options.backend == "auto") options.policy = codec::Policy::cpu;
  }
  options.mode = test                                                                    ? Mode::test
                 : list                                                                  ? Mode::list
                 : bench                                                                 ? Mode::bench
                 : measure_rates                                                         ? Mode::measure_rates
                 : decompress || (!compress && looks_compressed(options.inputs.front())) ? Mode::decompress
                                                                                         : Mode::compress;
  if (options.chooses != Chooses::named && options.mode != Mode::compress)
    return usage(fmt::format("--auto and --trial are for compression: add -z to compress {}", options.inputs.front()));
  if (options.seekable && options.mode != Mode::compress) return usage("--seekable is for compression");
  if (options.sparse && options.mode != Mode::decompress) {
    return usage("--sparse and --no-sparse are for decompression");
  }
  return options;
}

Result<std::string> output_path(const Options& options, const std::string& input, format::FileFormat format) {
  if (options.output) return *options.output;
  if (options.mode == Mode::compress) return input + std::string(row_of(format).suffix);
  if (const auto found = format::format_of_name(input))
    return input.substr(0, input.size() - row_of(*found).suffix.size());
  return fail("expected a name that ends in " + format::file_suffixes(), input, "name the output with -o, or use -c");
}

format::FileFormat format_of_input(format::Bytes first, const std::string& name) {
  const auto found = format::format_of_bytes(first);
  if (found && *found != format::FileFormat::lz4) return *found;
  return format::format_of_name(name).value_or(format::FileFormat::lz4);
}

}  // namespace ptxkit::pack
