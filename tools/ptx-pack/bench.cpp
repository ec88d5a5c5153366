#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "support/file.hpp"
#include "support/printable.hpp"
#include "support/result.hpp"
#include "tools/ptx-pack/jobs.hpp"

namespace ptxkit::pack {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kLeastTime{1};

// Runs `job` repeatedly for at least a second. Returns the duration of the shortest run, in seconds.
template <class Job>
Result<double> fastest(Job job) {
  double best = 1e300;
  const auto begin = Clock::now();
  do {
    const auto run_begin = Clock::now();
    if (Result<void> done = job(); !done) return tl::unexpected(done.error());
    best = std::min(best, std::chrono::duration<double>(Clock::now() - run_begin).count());
  } while (Clock::now() - begin < kLeastTime);
  return best;
}

}  // namespace

Result<void> bench_file(const std::string& path, codec::Backend& backend, std::optional<codec::Encoder> encoder,
                        const format::FrameHeader& header) {
  auto content = read_file(path);
  if (!content) return tl::unexpected(content.error());
  if (content->empty()) return fail("expected an input with at least one byte", path);
  const codec::Bytes raw(reinterpret_cast<const uint8_t*>(content->data()), content->size());
  std::vector<uint8_t> frame, decoded;
  codec::StreamTotals totals;
  const auto compress_seconds = fastest([&]() -> Result<void> {
    format::MemorySource source(raw, path);
    format::MemorySink sink;
    codec::CompressOptions options{.header = header, .encoder = encoder, .progress = {}, .limits = {}};
    auto done = codec::compress_stream(source, sink, backend, options);
    if (!done) return tl::unexpected(done.error());
    totals = std::move(*done);
    frame = sink.take();
    return {};
  });
  if (!compress_seconds) return tl::unexpected(compress_seconds.error());
  const auto decompress_seconds = fastest([&]() -> Result<void> {
    format::MemorySource source(frame, path);
    format::MemorySink sink;
    if (auto done = codec::decompress_stream(source, sink, backend); !done) return tl::unexpected(done.error());
    decoded = sink.take();
    return {};
  });
  if (!decompress_seconds) return tl::unexpected(decompress_seconds.error());
  if (!std::equal(decoded.begin(), decoded.end(), raw.begin(), raw.end())) {
    return fail("the decompressed bytes differ from the input", path, "keep the input and report this as a bug");
  }
  const double raw_size = static_cast<double>(raw.size());
  const std::string line = fmt::format(
      "{}: {} -> {} (ratio {:.3f}), compress {:.1f} MB/s, decompress {:.1f} MB/s, {} encoder, {}\n", printable(path),
      raw.size(), frame.size(), raw_size / static_cast<double>(frame.size()), raw_size / *compress_seconds / 1e6,
      raw_size / *decompress_seconds / 1e6, codec::name_of(totals.encoder), totals.by);
  (void)std::fwrite(line.data(), 1, line.size(), stdout);  // flush_standard_output() reports a failure
  return {};
}

}  // namespace ptxkit::pack
