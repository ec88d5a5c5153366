#include <set>
#include <utility>

#include <fmt/format.h>

#include "runtime/format/lz4_frame_reader.hpp"
#include "tools/ptx-pack/files.hpp"
#include "tools/ptx-pack/jobs.hpp"

namespace ptxkit::pack {
namespace {

const char* block_name(const format::FrameHeader& header) {
  static constexpr const char* kNames[2][4] = {{"B4D", "B5D", "B6D", "B7D"}, {"B4I", "B5I", "B6I", "B7I"}};
  return kNames[header.independent_blocks][header.block_size_id - format::kSmallestBlockSizeId];
}

}  // namespace

Result<void> list_file(const std::string& path, bool with_heading) {
  auto input = InputFile::open(path);
  if (!input) return tl::unexpected(input.error());
  format::DescriptorSource source(input->descriptor(), input->name());
  format::FrameReader reader(source);
  std::uint64_t block_count = 0, raw_bytes = 0, frame_count = 0, skippable_count = 0;
  bool raw_known = true;
  std::set<std::string> kinds, checks;
  std::vector<std::uint8_t> payload;
  for (;;) {
    auto event = reader.next(std::exchange(payload, {}));
    if (!event) return tl::unexpected(event.error());
    if (auto* block = std::get_if<format::BlockRead>(&*event)) payload = std::move(block->payload);
    if (const auto* begin = std::get_if<format::FrameBegin>(&*event)) {
      const auto& header = begin->header;
      ++frame_count;
      raw_known = raw_known && header.content_bytes;
      raw_bytes += header.content_bytes.value_or(0);
      kinds.insert(header.legacy ? "legacy" : block_name(header));
      if (header.block_checksum) checks.insert("block");
      if (header.content_checksum) checks.insert("content");
    } else if (const auto* frame_end = std::get_if<format::FrameEnd>(&*event)) {
      block_count += frame_end->block_count;
    } else if (std::holds_alternative<format::SkippedFrame>(*event)) {
      ++skippable_count;
    } else if (std::holds_alternative<format::EndOfInput>(*event)) {
      break;
    }
  }
  const auto joined = [](const std::set<std::string>& words) {
    return words.empty() ? std::string("-") : fmt::format("{}", fmt::join(words, "+"));
  };
  if (with_heading) {
    fmt::print("{:>6} {:>9} {:>8} {:>8} {:>13} {:>14} {:>14} {:>7}  {}\n", "frames", "skippable", "kind", "blocks",
               "checksums", "compressed", "uncompressed", "ratio", "file");
  }
  raw_known = raw_known && frame_count != 0;
  fmt::print(
      "{:>6} {:>9} {:>8} {:>8} {:>13} {:>14} {:>14} {:>7}  {}\n", frame_count, skippable_count, joined(kinds),
      block_count, joined(checks), reader.offset(), raw_known ? fmt::format("{}", raw_bytes) : "-",
      raw_known ? fmt::format("{:.3f}", static_cast<double>(raw_bytes) / static_cast<double>(reader.offset())) : "-",
      input->name());
  return {};
}

}  // namespace ptxkit::pack
