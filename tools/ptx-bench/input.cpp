#include "tools/ptx-bench/input.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <lz4.h>

#include "support/check.hpp"
#include "support/file.hpp"

namespace ptxkit::bench {

codec::Bytes Input::chunk(size_t index) const {
  const size_t begin = index * chunk_bytes;
  return codec::Bytes(raw).subspan(begin, std::min(chunk_bytes, raw.size() - begin));
}

Result<Input> load_input(const std::vector<std::string>& paths, size_t size_bytes) {
  std::string content;
  for (const std::string& path : paths) {
    auto file = read_file(path);
    if (!file) return tl::unexpected(file.error());
    content += *file;
  }
  if (content.empty())
    return fail("expected an input with at least one byte", fmt::format("{}", fmt::join(paths, ", ")));
  Input input;
  input.name = paths.size() == 1 ? std::filesystem::path(paths.front()).filename().string() : kMixedName;
  input.raw.resize(size_bytes);
  for (size_t at = 0; at < size_bytes; at += content.size()) {
    std::memcpy(&input.raw[at], content.data(), std::min(content.size(), size_bytes - at));
  }
  return input;
}

EncodedChunks encode_with_liblz4(const Input& input, codec::Executor& executor) {
  EncodedChunks encoded;
  encoded.blocks.resize(input.chunk_count());
  executor.for_each(input.chunk_count(), [&](size_t index, unsigned) {
    const codec::Bytes raw = input.chunk(index);
    auto& block = encoded.blocks[index];
    block.resize(static_cast<size_t>(LZ4_compressBound(static_cast<int>(raw.size()))));
    const int length =
        LZ4_compress_default(reinterpret_cast<const char*>(raw.data()), reinterpret_cast<char*>(block.data()),
                             static_cast<int>(raw.size()), static_cast<int>(block.size()));
    PTXKIT_CHECK(length > 0, "a block of LZ4_compressBound bytes always suffices");
    block.resize(static_cast<size_t>(length));
    block.shrink_to_fit();
  });
  for (size_t i = 0; i < encoded.blocks.size(); ++i) {
    encoded.stored_bytes += std::min(encoded.blocks[i].size(), input.chunk(i).size());
  }
  return encoded;
}

double stored_ratio(const Input& input, std::span<const std::vector<uint8_t>> coded) {
  size_t stored = 0;
  for (size_t i = 0; i < coded.size(); ++i) stored += coded[i].empty() ? input.chunk(i).size() : coded[i].size();
  return static_cast<double>(input.raw.size()) / static_cast<double>(stored);
}

double median(std::vector<double> values) {
  PTXKIT_CHECK(!values.empty(), "a median needs a value");
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Timing timing_of(const std::vector<double>& seconds) {
  Timing timing = median(seconds);
  timing.fastest = *std::min_element(seconds.begin(), seconds.end());
  timing.slowest = *std::max_element(seconds.begin(), seconds.end());
  return timing;
}

Result<Timing> median_seconds(const Repetition& repetition, const std::function<Result<double>()>& run) {
  return medians_in_turn(repetition, {run}).map([](const std::vector<Timing>& all) { return all[0]; });
}

Result<std::vector<Timing>> medians_in_turn(const Repetition& repetition,
                                            const std::vector<std::function<Result<double>()>>& runs) {
  std::vector<std::vector<double>> seconds(runs.size());
  for (unsigned i = 0; i < repetition.warm_up + repetition.runs; ++i) {
    for (size_t side = 0; side < runs.size(); ++side) {
      auto one = runs[side]();
      if (!one) return tl::unexpected(one.error());
      if (i >= repetition.warm_up) seconds[side].push_back(*one);
    }
  }
  std::vector<Timing> timings;
  std::transform(seconds.begin(), seconds.end(), std::back_inserter(timings), timing_of);
  return timings;
}

Result<Timing> median_wall_seconds(const Repetition& repetition, const std::function<Result<void>()>& work) {
  return median_seconds(repetition, [&]() -> Result<double> {
    const auto begin = std::chrono::steady_clock::now();
    if (Result<void> done = work(); !done) return tl::unexpected(done.error());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  });
}

}  // namespace ptxkit::bench
