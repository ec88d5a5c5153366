// The verbs of ptx-bench. Each takes the parsed options and returns its rows, or an error.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/driver/context.hpp"
#include "support/result.hpp"
#include "tools/ptx-bench/input.hpp"

namespace ptxkit::bench {

struct Settings {
  std::vector<std::string> files;
  std::vector<size_t> chunk_bytes = {4096, 65536};
  size_t size_bytes = size_t{1} << 30;
  Repetition repetition;
  int device = 0;
  bool cpu_only = false;
  bool gpu_only = false;        // lz4
  std::vector<size_t> batches;  // lz4: also measure batches of these numbers of chunks of the smallest size
  bool mixed = false;           // also measure all files together as one input
  std::string only;             // transforms, typed, blocks: only names with this prefix
  // 0: the default.
  unsigned queue_count = 0;  // pcie, chain, blocks
  size_t slice_bytes = 0;    // pcie
  std::string json_path;

  // The files of each input, as load_input takes them.
  std::vector<std::vector<std::string>> inputs() const {
    std::vector<std::vector<std::string>> all;
    for (const std::string& file : files) all.push_back({file});
    if (mixed) all.push_back(files);
    return all;
  }
};

struct Measurements {
  std::string device;  // of the GPU; empty without one
  std::string cpu;
  std::vector<Row> rows;
  double copied_bytes_per_second = 0;       // copy within device memory, read and written bytes; 0: not measured
  double warp_instructions_per_second = 0;  // issue rate of the device; 0: no device
  std::vector<std::string> notes = {};      // printed below the table
};

Result<Measurements> run_lz4(const Settings& settings);
Result<Measurements> run_blocks(const Settings& settings);
Result<Measurements> run_chain(const Settings& settings);
Result<Measurements> run_transforms(const Settings& settings);
Result<Measurements> run_typed(const Settings& settings);
Result<Measurements> run_copy(const Settings& settings);
Result<Measurements> run_pcie(const Settings& settings);
Result<Measurements> run_forms(const Settings& settings);
Result<Measurements> run_crossover(const Settings& settings);

// Sets the name of the device and its two ceilings: what a copy of settings.size_bytes moves, and the issue rate.
Result<void> measure_ceilings(const driver::ContextPointer& context, const Settings& settings, Measurements& all);

// Opens the context of a GPU by its ordinal, through the project's own driver loader.
Result<driver::ContextPointer> open_device(int ordinal);

}  // namespace ptxkit::bench
