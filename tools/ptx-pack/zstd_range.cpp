#include "tools/ptx-pack/zstd_range.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/zstd_frame.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "tools/ptx-pack/range_sink.hpp"

namespace ptxkit::pack {
namespace {

// Consecutive bytes of a file as a stream.
class PartOfFile final : public format::ByteSource {
 public:
  PartOfFile(const format::RandomAccess& file, uint64_t begin, uint64_t end, std::string name)
      : file_(file), at_(begin), end_(end), name_(std::move(name)) {}

  Result<size_t> read(format::MutableBytes into) override {
    const auto count = static_cast<size_t>(std::min<uint64_t>(into.size(), end_ - at_));
    if (auto read = file_.read_at(at_, into.first(count)); !read) return tl::unexpected(read.error());
    at_ += count;
    return count;
  }
  const std::string& name() const override { return name_; }

 private:
  const format::RandomAccess& file_;
  uint64_t at_, end_;
  std::string name_;
};

tl::unexpected<Error> other_size(uint64_t frame, const char* kind, uint64_t found, uint64_t expected,
                                 const std::string& name) {
  return fail(fmt::format("frame {} has {} {}bytes, the seek table says {}", frame, found, kind, expected), name,
              "decompress the whole file, which needs no table");
}

}  // namespace

Result<bool> extract_from_zstd(const InputFile& input, const ByteRange& range, format::ByteSink& sink,
                               codec::Executor& executor, codec::ZstdCoder& coder, codec::StreamLimits limits) {
  const format::DescriptorFile file(input.descriptor(), input.begin(), *input.size_bytes(), input.name());
  const auto table = format::read_zstd_seek_table(file);
  if (!table) return tl::unexpected(table.error());
  if (!*table) return false;
  // The frames from `first` on, `count` of them, hold the range.
  size_t first = 0, count = 0;
  uint64_t raw_begin = 0, stored_begin = 0, stored_end = 0, raw_bytes = 0, stored_bytes = 0;
  for (size_t i = 0; i < (*table)->size(); ++i) {
    const format::ZstdSeekEntry& entry = (**table)[i];
    const uint64_t begin = raw_bytes;
    raw_bytes += entry.raw_bytes;
    if (raw_bytes > range.begin && begin < range.end) {
      if (count++ == 0) {
        first = i;
        raw_begin = begin;
        stored_begin = stored_bytes;
      }
      stored_end = stored_bytes + entry.stored_bytes;
    }
    stored_bytes += entry.stored_bytes;
  }
  const bool is_to_the_end = range.end == std::numeric_limits<uint64_t>::max();
  if (is_to_the_end ? range.begin >= raw_bytes : range.end > raw_bytes)
    return fail(fmt::format("the range begins or ends beyond the {} bytes that there are", raw_bytes), input.name());
  // The table is a stranger's text, and the place of a range follows from every entry before it: each has to be one
  // frame of its sizes. Those before the range are measured by their headers, those that hold it are decoded as well.
  std::vector<size_t> decoded;  // skippable frames have no content
  for (uint64_t i = 0, at = 0; i < first + count; at += (**table)[i++].stored_bytes) {
    const format::ZstdSeekEntry& entry = (**table)[i];
    const auto frame = format::measure_zstd_frame(file, at, i);
    if (!frame) return tl::unexpected(frame.error());
    if (frame->stored_bytes != entry.stored_bytes)
      return other_size(i, "stored ", frame->stored_bytes, entry.stored_bytes, input.name());
    if (frame->raw_bytes.value_or(entry.raw_bytes) != entry.raw_bytes)
      return other_size(i, "", *frame->raw_bytes, entry.raw_bytes, input.name());
    if (!frame->raw_bytes && i < first) return false;  // only decoding tells its size
    if (i >= first && !frame->is_skippable) decoded.push_back(i);
  }
  PartOfFile source(file, stored_begin, stored_end,
                    first == 0 ? input.name() : fmt::format("{}, from byte {} on", input.name(), stored_begin));
  RangeSink part(sink, {range.begin - raw_begin, is_to_the_end ? range.end : range.end - raw_begin});
  limits.stop = part.stop_token();
  size_t next = 0;
  const auto changed = [&] { return fail("the input changed while it was read", input.name()); };
  const auto check_frame = [&](uint64_t found) -> Result<void> {
    if (next == decoded.size()) return changed();
    const size_t frame = decoded[next++];
    if (found == (**table)[frame].raw_bytes) return {};
    return other_size(frame, "", found, (**table)[frame].raw_bytes, input.name());
  };
  const auto totals =
      codec::decompress_zstd(source, part, executor, coder, {.limits = limits, .check_frame = check_frame});
  if (!totals && !part.is_complete()) return tl::unexpected(totals.error());
  if (totals && next != decoded.size()) return changed();
  return true;
}

}  // namespace ptxkit::pack
