// Benchmark inputs, and the reduction of several runs to one figure.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "support/result.hpp"

namespace ptxkit::bench {

// A file repeated until it fills the requested size, cut into chunks. The last repetition and the last chunk may be
// shorter.
struct Input {
  std::string name;
  std::vector<uint8_t> raw;
  size_t chunk_bytes = 0;

  size_t chunk_count() const { return (raw.size() + chunk_bytes - 1) / chunk_bytes; }
  codec::Bytes chunk(size_t index) const;
};

inline constexpr const char* kMixedName = "mixed";

// Concatenates `paths` and repeats the result up to `size_bytes`. With several paths the input is named kMixedName.
Result<Input> load_input(const std::vector<std::string>& paths, size_t size_bytes);

// Every chunk as encoded by liblz4 at its default level. There is a block for every chunk; incompressible chunks give a
// block that is longer than the chunk.
struct EncodedChunks {
  std::vector<std::vector<uint8_t>> blocks;
  // What storage would need: at most the raw size for each chunk.
  uint64_t stored_bytes = 0;
};
EncodedChunks encode_with_liblz4(const Input& input, codec::Executor& executor);

// Raw bytes divided by stored bytes. `coded` holds the coded form of each chunk, empty where the chunk is stored raw.
double stored_ratio(const Input& input, std::span<const std::vector<uint8_t>> coded);

double median(std::vector<double> values);

struct Repetition {
  unsigned warm_up = 3;
  unsigned runs = 10;
};
// Seconds of the measured runs. A single measurement sets all three.
struct Timing {
  Timing(double seconds = 0) : median(seconds), fastest(seconds), slowest(seconds) {}  // NOLINT
  double median, fastest, slowest;

  operator double() const { return median; }  // NOLINT
};
Timing timing_of(const std::vector<double>& seconds);
// The timing of the seconds that `run` returns, after warm-up.
Result<Timing> median_seconds(const Repetition& repetition, const std::function<Result<double>()>& run);
// The timings of several functions that alternate, so that a temporary slowdown of the machine affects all of them.
Result<std::vector<Timing>> medians_in_turn(const Repetition& repetition,
                                            const std::vector<std::function<Result<double>()>>& runs);
// The timing of the wall time that `work` takes.
Result<Timing> median_wall_seconds(const Repetition& repetition, const std::function<Result<void>()>& work);

// One line of a result table.
struct Row {
  std::string input, what;  // "lz4_decompress (blocks of liblz4)"
  size_t chunk_bytes = 0, raw_bytes = 0;
  double ratio = 0;                  // raw / stored; 0: not applicable
  Timing seconds;                    // 0: not measured
  double instructions_per_byte = 0;  // PTX warp instructions, counted by the emulator; 0: not counted
  double gigabytes_per_second() const { return seconds == 0 ? 0 : static_cast<double>(raw_bytes) / seconds / 1e9; }
  size_t chunk_count() const { return chunk_bytes == 0 ? 0 : (raw_bytes + chunk_bytes - 1) / chunk_bytes; }
};

}  // namespace ptxkit::bench
