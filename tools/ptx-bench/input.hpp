// What is measured on, and how a figure is made of many runs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::bench {

// A file repeated until it fills size_bytes, cut into chunks. The last repetition may be cut short; so may the last
// chunk.
struct Input {
  std::string name;
  std::vector<uint8_t> raw;
  size_t chunk_bytes = 0;

  size_t chunk_count() const { return (raw.size() + chunk_bytes - 1) / chunk_bytes; }
  codec::Bytes chunk(size_t index) const;
};

inline constexpr const char* kMixedName = "mixed";

// Several paths become one input named kMixedName: the files one after another, repeated together.
Result<Input> load_input(const std::vector<std::string>& paths, size_t size_bytes);

// liblz4's encoding of every chunk, at its default level; always a block, longer than the chunk where it does not
// compress.
struct EncodedChunks {
  std::vector<std::vector<uint8_t>> blocks;
  // What storage would need: a chunk counts with at most its raw size.
  uint64_t stored_bytes = 0;
};
EncodedChunks encode_with_liblz4(const Input& input, codec::Executor& executor);

// Raw bytes by stored bytes, where `coded` holds each chunk's coded form, empty for what is stored as it is.
double stored_ratio(const Input& input, std::span<const std::vector<uint8_t>> coded);

double median(std::vector<double> values);

struct Repetition {
  unsigned warm_up = 3;
  unsigned runs = 10;
};
// Seconds of the measured runs; what was measured once is all three.
struct Timing {
  Timing(double seconds = 0) : median(seconds), fastest(seconds), slowest(seconds) {}  // NOLINT
  double median, fastest, slowest;

  operator double() const { return median; }  // NOLINT
};
Timing timing_of(const std::vector<double>& seconds);
// Of the seconds that `run` returns, after warm-up.
Result<Timing> median_seconds(const Repetition& repetition, const std::function<Result<double>()>& run);
// Of several that take turns, so that what slows the machine down for a while slows all of them.
Result<std::vector<Timing>> medians_in_turn(const Repetition& repetition,
                                            const std::vector<std::function<Result<double>()>>& runs);
// Of the time that `work` takes by the clock on the wall.
Result<Timing> median_wall_seconds(const Repetition& repetition, const std::function<Result<void>()>& work);

// One line of a result table.
struct Row {
  std::string input, what;  // "lz4_decompress (blocks of liblz4)"
  size_t chunk_bytes = 0, raw_bytes = 0;
  double ratio = 0;  // raw / stored; 0 where it means nothing
  Timing seconds;
  double instructions_per_byte = 0;  // PTX, of a warp, by the emulator; 0 where they were not counted
  double gigabytes_per_second() const { return static_cast<double>(raw_bytes) / seconds / 1e9; }
  size_t chunk_count() const { return chunk_bytes == 0 ? 0 : (raw_bytes + chunk_bytes - 1) / chunk_bytes; }
};

}  // namespace ptxkit::bench
