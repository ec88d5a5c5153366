#include "tools/ptx-pack/ptz_range.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "runtime/codec/ptz_stream.hpp"

namespace ptxkit::pack {

Result<void> extract_from_ptz(const InputFile& input, const ByteRange& range, format::ByteSink& sink) {
  const format::DescriptorFile file(input.descriptor(), static_cast<std::uint64_t>(input.info().st_size), input.name());
  const auto archive = format::PtzArchive::open(file);
  if (!archive) return tl::unexpected(archive.error());
  std::uint64_t raw_bytes = 0;
  for (std::size_t i = 0; i < archive->block_count(); ++i) raw_bytes += archive->block(i).raw_bytes;
  const bool is_to_the_end = range.end == std::numeric_limits<std::uint64_t>::max();
  if (is_to_the_end ? range.begin >= raw_bytes : range.end > raw_bytes) {
    return fail(fmt::format("the range begins or ends beyond the {} bytes that there are", raw_bytes), input.name());
  }
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < archive->block_count() && at < range.end; ++i) {
    const std::uint64_t end = at + archive->block(i).raw_bytes;
    if (end > range.begin) {
      const auto raw = codec::read_ptz_block(*archive, i);
      if (!raw) return tl::unexpected(raw.error());
      const std::uint64_t first = std::max(range.begin, at) - at, last = std::min(range.end, end) - at;
      if (auto written = sink.write(format::Bytes(*raw).subspan(first, last - first)); !written) return written;
    }
    at = end;
  }
  return {};
}

}  // namespace ptxkit::pack
