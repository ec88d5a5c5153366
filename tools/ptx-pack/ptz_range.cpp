#include "tools/ptx-pack/ptz_range.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/format/ptz.hpp"
#include "runtime/codec/stream/ptz_stream.hpp"

namespace ptxkit::pack {
namespace {

constexpr uint64_t kTableEntryBytes = sizeof(format::PtzBlock) + sizeof(uint64_t);  // per block, in memory

}  // namespace

Result<void> extract_from_ptz(const InputFile& input, const ByteRange& range, format::ByteSink& sink,
                              codec::Executor& executor, codec::BlockCoder& coder, scheduler::Ledger& memory) {
  const format::DescriptorFile file(input.descriptor(), input.begin(), *input.size_bytes(), input.name());
  const auto archive = format::PtzArchive::open(file);
  if (!archive) return tl::unexpected(archive.error());
  std::vector<size_t> touched;
  uint64_t raw_bytes = 0, at = 0;  // of all blocks so far; offset of the first block in the range
  for (size_t i = 0; i < archive->block_count(); ++i) {
    const uint64_t begin = raw_bytes;
    raw_bytes += archive->block(i).raw_bytes;
    if (raw_bytes <= range.begin || begin >= range.end) continue;
    if (touched.empty()) at = begin;
    touched.push_back(i);
  }
  const bool is_to_the_end = range.end == std::numeric_limits<uint64_t>::max();
  if (is_to_the_end ? range.begin >= raw_bytes : range.end > raw_bytes) {
    return fail(fmt::format("the range begins or ends beyond the {} bytes that there are", raw_bytes), input.name());
  }
  const uint64_t block_bytes = uint64_t{1} << archive->header().block_bits;
  const uint64_t each_bytes = 2 * block_bytes + codec::decoding_bytes(archive->header().coding, block_bytes);
  const uint64_t table_bytes = archive->block_count() * kTableEntryBytes;
  const uint64_t rest_bytes = memory.budget_bytes() - std::min(memory.budget_bytes(), table_bytes);
  const size_t preferred = coder.batch_blocks(archive->header().coding, block_bytes);
  const size_t at_a_time = std::clamp<uint64_t>(rest_bytes / each_bytes, 1, std::min(preferred, touched.size() + 1));
  const auto permit = memory.reserve(table_bytes + at_a_time * each_bytes);
  if (!permit) return tl::unexpected(permit.error());
  for (size_t first = 0; first < touched.size(); first += at_a_time) {
    const size_t count = std::min(at_a_time, touched.size() - first);
    const auto read = codec::read_ptz_blocks(*archive, std::span(touched).subspan(first, count), executor, coder);
    if (!read) return tl::unexpected(read.error());
    for (const auto& raw : *read) {
      if (!raw) return tl::unexpected(raw.error());
      const uint64_t end = at + raw->size();
      const uint64_t from = std::max(range.begin, at) - at, to = std::min(range.end, end) - at;
      if (auto written = sink.write(format::Bytes(*raw).subspan(from, to - from)); !written) return written;
      at = end;
    }
  }
  return {};
}

}  // namespace ptxkit::pack
