// ptx-bench measures the kernels, and prints a table or writes JSON. GB/s are 1e9 raw bytes a second, on data in device
// memory, timed with device events; the figure is the median of the runs after warm-up. Every output is checked.
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/byte_size.hpp"
#include "support/file.hpp"
#include "support/program.hpp"
#include "tools/ptx-bench/input.hpp"
#include "tools/ptx-bench/verb.hpp"

namespace ptxkit::bench {
namespace {

std::string rate_text(const Row& row) {
  if (row.seconds == 0) return fmt::format("{:.3f} i/B", row.instructions_per_byte);
  return row.raw_bytes == 0 ? fmt::format("{:.3f} s", row.seconds.median)
                            : fmt::format("{:.2f}", row.gigabytes_per_second());
}
std::string share_text(double share) { return share == 0 ? "-" : fmt::format("{:.0f} %", 100 * share); }
std::string ratio_text(const Row& row) { return row.ratio == 0 ? "-" : fmt::format("{:.3f}", row.ratio); }

// The share of a row's time that a copy would need for the bytes that the row reads and writes.
double memory_share(const Measurements& all, const Row& row) {
  if (row.instructions_per_byte == 0 || all.copied_bytes_per_second == 0) return 0;
  const double raw = static_cast<double>(row.raw_bytes);
  return (raw + raw / row.ratio) / all.copied_bytes_per_second / row.seconds;
}
// The share of a row's time that issuing its instructions takes if no scheduler ever waits.
double issue_share(const Measurements& all, const Row& row) {
  if (all.warp_instructions_per_second == 0) return 0;
  return row.instructions_per_byte * static_cast<double>(row.raw_bytes) / all.warp_instructions_per_second /
         row.seconds;
}
// The difference between slowest and fastest run, relative to the median.
double spread(const Row& row) {
  return row.seconds == 0 ? 0 : (row.seconds.slowest - row.seconds.fastest) / row.seconds;
}

// Prints all rows, then geometric mean and slowest input for each kernel and chunk size measured on several inputs.
void print_table(const Measurements& all) {
  if (!all.device.empty()) fmt::print("gpu: {}\n", all.device);
  if (!all.cpu.empty()) fmt::print("cpu: {}\n", all.cpu);
  constexpr const char* kLine = "{:<20} {:<34} {:>7} {:>8} {:>8} {:>10} {:>7} {:>7} {:>7}\n";
  fmt::print(fmt::runtime(kLine), "input", "what", "chunk", "chunks", "ratio", "GB/s", "spread", "memory", "issue");
  std::map<std::tuple<std::string, size_t, size_t>, std::vector<const Row*>> groups;
  for (const Row& row : all.rows) {
    fmt::print(fmt::runtime(kLine), row.input, row.what, row.chunk_bytes, row.chunk_count(), ratio_text(row),
               rate_text(row), share_text(spread(row)), share_text(memory_share(all, row)),
               share_text(issue_share(all, row)));
    // The mixed input repeats the others.
    if (row.input != kMixedName && row.chunk_bytes != 0 && row.seconds != 0)
      groups[{row.what, row.chunk_bytes, row.chunk_count()}].push_back(&row);
  }
  for (const auto& [key, rows] : groups) {
    if (rows.size() < 2) continue;
    double logarithms = 0;
    const Row* slowest = rows.front();
    for (const Row* row : rows) {
      logarithms += std::log(row->gigabytes_per_second());
      if (row->gigabytes_per_second() < slowest->gigabytes_per_second()) slowest = row;
    }
    const auto& [what, chunk_bytes, chunk_count] = key;
    const auto line = [&](const std::string& name, double rate) {
      fmt::print(fmt::runtime(kLine), name, what, chunk_bytes, chunk_count, "", fmt::format("{:.2f}", rate), "", "",
                 "");
    };
    line("geometric mean", std::exp(logarithms / static_cast<double>(rows.size())));
    line("slowest: " + slowest->input, slowest->gigabytes_per_second());
  }
  for (const std::string& note : all.notes) fmt::print("{}\n", note);
}

std::string to_json(const Measurements& all, const Settings& settings) {
  nlohmann::ordered_json json;
  json["device"] = all.device;
  json["cpu"] = all.cpu;
  json["notes"] = all.notes;
  json["warm_up"] = settings.repetition.warm_up;
  json["runs"] = settings.repetition.runs;
  json["copied_bytes_per_second"] = all.copied_bytes_per_second;
  json["warp_instructions_per_second"] = all.warp_instructions_per_second;
  for (const Row& row : all.rows) {
    json["rows"].push_back({{"input", row.input},
                            {"what", row.what},
                            {"chunk_bytes", row.chunk_bytes},
                            {"raw_bytes", row.raw_bytes},
                            {"ratio", row.ratio},
                            {"seconds", row.seconds.median},
                            {"fastest_seconds", row.seconds.fastest},
                            {"slowest_seconds", row.seconds.slowest},
                            {"instructions_per_byte", row.instructions_per_byte},
                            {"memory_share", memory_share(all, row)},
                            {"issue_share", issue_share(all, row)},
                            {"gigabytes_per_second", row.gigabytes_per_second()}});
  }
  return json.dump(2) + "\n";
}

int run(int argc, char** argv) {
  Settings settings;
  CLI::App app{"Measures the kernels on a GPU, and liblz4 on the CPU beside them."};
  app.require_subcommand(1);
  auto* lz4 =
      app.add_subcommand("lz4", "the LZ4 kernels on each file, repeated to --size; CPU rows on its first 256 MiB");
  lz4->add_option("FILE", settings.files, "inputs")->required()->check(CLI::ExistingFile);
  lz4->add_option("--chunk", settings.chunk_bytes, "chunk sizes in bytes (default 4096 65536)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(16, 65536));
  lz4->add_flag("--mixed", settings.mixed, "measure also all files together as one input");
  lz4->add_option("--batch", settings.batches, "also batches of so many chunks of the smallest size, e.g. 100,1000")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::PositiveNumber);
  lz4->add_flag("--cpu-only", settings.cpu_only, "no GPU rows");
  lz4->add_flag("--gpu-only", settings.gpu_only, "no CPU rows")->excludes("--cpu-only");
  auto* pcie = app.add_subcommand("pcie", "copies over PCIe, LZ4 from host memory to host memory, CUDA's start");
  pcie->add_option("FILE", settings.files, "inputs")->required()->check(CLI::ExistingFile);
  pcie->add_option("--chunk", settings.chunk_bytes, "chunk sizes in bytes (default 4096 65536)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(16, 65536));
  pcie->add_flag("--mixed", settings.mixed, "measure also all files together as one input");
  pcie->add_option("--queues", settings.queue_count, "slices on the device at a time (default 6)")
      ->check(CLI::Range(1, 64));
  pcie->add_option("--slice", settings.slice_bytes, "raw bytes of a slice, e.g. 8MiB (default 16MiB)")
      ->transform(CLI::Validator(byte_size_to_digits, "SIZE"))
      ->check(CLI::PositiveNumber);
  auto* transforms = app.add_subcommand("transforms", "the entropy coders and the LZ77 decoder on each file");
  transforms->add_option("FILE", settings.files, "inputs")->required()->check(CLI::ExistingFile);
  transforms->add_option("--chunk", settings.chunk_bytes, "chunk sizes in bytes (default 65536)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(256, 1 << 20));
  transforms->add_option("--only", settings.only, "those whose name begins so, e.g. rans_warp");
  transforms->add_flag("--mixed", settings.mixed, "measure also all files together as one input");
  transforms->add_flag("--cpu-only", settings.cpu_only, "no GPU rows");
  auto* typed = app.add_subcommand("typed", "typed rANS of each type of number, on files or on normal values");
  typed->add_option("FILE", settings.files, "inputs; without one, values of a normal distribution")
      ->check(CLI::ExistingFile);
  typed->add_option("--chunk", settings.chunk_bytes, "item sizes in bytes (default 65536 1048576 16777216)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(16, 1 << 30));
  typed->add_option("--only", settings.only, "the types whose name begins so, e.g. bfloat16");
  auto* chain = app.add_subcommand("chain", "blocks of .ptz: LZ77, demux and rANS on the GPU, or rANS on the CPU");
  chain->add_option("FILE", settings.files, "inputs")->required()->check(CLI::ExistingFile);
  chain->add_flag("--mixed", settings.mixed, "measure also all files together as one input");
  chain->add_option("--queues", settings.queue_count, "groups of blocks on the device at a time (default 6)")
      ->check(CLI::Range(1, 256));
  auto* blocks = app.add_subcommand("blocks", "blocks of .ptz with every codec, by the GPU and by the CPU");
  blocks->add_option("FILE", settings.files, "inputs")->required()->check(CLI::ExistingFile);
  blocks->add_option("--only", settings.only, "those codecs whose name begins so, e.g. lzr");
  blocks->add_flag("--mixed", settings.mixed, "measure also all files together as one input");
  blocks->add_flag("--cpu-only", settings.cpu_only, "no GPU rows");
  blocks->add_option("--queues", settings.queue_count, "groups of blocks on the device at a time (default 6)")
      ->check(CLI::Range(1, 256));
  auto* forms = app.add_subcommand("forms",
                                   "lzr with every form of rANS: ratio, and instructions of the decoder, which the "
                                   "emulator counts; needs no GPU and no clock");
  forms->add_option("FILE", settings.files, "inputs, of which the first --size bytes are taken")
      ->required()
      ->check(CLI::ExistingFile);
  forms->add_option("--chunk", settings.chunk_bytes, "block sizes in bytes (default 262144 1048576)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(4096, 1 << 20));
  auto* crossover =
      app.add_subcommand("crossover", "streams of 4 KiB to --size, and files, on the CPU, on the GPU, on both");
  crossover->add_option("FILE", settings.files, "files to compress, too")->check(CLI::ExistingFile);
  auto* copy = app.add_subcommand("copy", "the ceiling: a copy within the device's memory");
  for (CLI::App* verb : {lz4, pcie, transforms, typed, blocks, chain, forms, crossover, copy}) {
    verb->add_option("--size", settings.size_bytes, "bytes of input, e.g. 256MiB (default 1GiB)")
        ->transform(CLI::Validator(byte_size_to_digits, "SIZE"))
        ->check(CLI::PositiveNumber);
    verb->add_option("--runs", settings.repetition.runs, "measured runs (default 10)")->check(CLI::Range(1, 1000));
    verb->add_option("--warm-up", settings.repetition.warm_up, "runs before them (default 3)")
        ->check(CLI::Range(0, 1000));
    verb->add_option("--device", settings.device, "which GPU, counted from 0")->check(CLI::Range(0, 1023));
    verb->add_option("--json", settings.json_path, "write the rows to this file; - is standard output");
  }
  app.footer("Exit status: 0 all measured; 1 something failed; 2 wrong usage.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "ptx-bench: {}; see ptx-bench --help\n", error.what());
    return 2;
  }
  if (const auto can = check_writable(settings.json_path); !can) {
    fmt::print(stderr, "ptx-bench: {}\n", can.error().message());
    return 1;
  }
  if (transforms->parsed() && transforms->count("--chunk") == 0) settings.chunk_bytes = {65536};
  if (typed->parsed() && typed->count("--chunk") == 0) settings.chunk_bytes = {1u << 16, 1u << 20, 1u << 24};
  if (forms->parsed() && forms->count("--chunk") == 0) settings.chunk_bytes = {1u << 18, 1u << 20};
  const auto all = lz4->parsed()          ? run_lz4(settings)
                   : pcie->parsed()       ? run_pcie(settings)
                   : transforms->parsed() ? run_transforms(settings)
                   : typed->parsed()      ? run_typed(settings)
                   : blocks->parsed()     ? run_blocks(settings)
                   : chain->parsed()      ? run_chain(settings)
                   : forms->parsed()      ? run_forms(settings)
                   : crossover->parsed()  ? run_crossover(settings)
                                          : run_copy(settings);
  if (!all) {
    fmt::print(stderr, "ptx-bench: {}\n", all.error().message());
    return 1;
  }
  if (settings.json_path != "-") print_table(*all);
  if (!settings.json_path.empty()) {
    if (auto written = write_file(settings.json_path, to_json(*all, settings)); !written) {
      fmt::print(stderr, "ptx-bench: {}\n", written.error().message());
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace ptxkit::bench

int main(int argc, char** argv) { return ptxkit::run_program("ptx-bench", 1, ptxkit::bench::run, argc, argv); }
