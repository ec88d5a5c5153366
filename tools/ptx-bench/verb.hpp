// The verbs of ptx-bench. Each takes the parsed options and returns rows or the reason why not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/driver/context.hpp"
#include "tools/ptx-bench/input.hpp"

namespace ptxkit::bench {

struct Settings {
  std::vector<std::string> files;
  std::vector<size_t> chunk_bytes = {4096, 65536};
  size_t size_bytes = size_t{1} << 30;
  Repetition repetition;
  int device = 0;
  bool cpu_only = false;
  std::vector<size_t> batches;  // of lz4: numbers of chunks, of the smallest size, measured besides
  bool mixed = false;           // besides each file alone: all of them as one input
  std::string only;             // of `transforms` and `blocks`: a prefix of their names
  // Of pcie and chain; 0: what suits.
  unsigned queue_count = 0;
  size_t slice_bytes = 0;
  std::string json_path;

  // The files of each input, for load_input.
  std::vector<std::vector<std::string>> inputs() const {
    std::vector<std::vector<std::string>> all;
    for (const std::string& file : files) all.push_back({file});
    if (mixed) all.push_back(files);
    return all;
  }
};

struct Measurements {
  std::string device;  // of the GPU; empty without
  std::string cpu;
  std::vector<Row> rows;
  double copied_bytes_per_second = 0;       // within the device's memory, read and write counted; 0: not measured
  double warp_instructions_per_second = 0;  // that the device can issue; 0: without a device
  std::vector<std::string> notes = {};      // below the table
};

Result<Measurements> run_lz4(const Settings& settings);
Result<Measurements> run_blocks(const Settings& settings);
Result<Measurements> run_chain(const Settings& settings);
Result<Measurements> run_transforms(const Settings& settings);
Result<Measurements> run_copy(const Settings& settings);
Result<Measurements> run_pcie(const Settings& settings);
Result<Measurements> run_crossover(const Settings& settings);

// The context of settings.device, through the project's own loader.
Result<driver::ContextPointer> open_device(int ordinal);

}  // namespace ptxkit::bench
