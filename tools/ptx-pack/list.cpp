#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "runtime/codec/blocks/budget.hpp"
#include "runtime/codec/format/lz4_frame_reader.hpp"
#include "runtime/codec/format/peeked_source.hpp"
#include "runtime/codec/format/ptz.hpp"
#include "runtime/codec/format/zstd_frame.hpp"
#include "runtime/codec/stream/gzip_stream.hpp"
#include "support/check.hpp"
#include "support/printable.hpp"
#include "tools/ptx-pack/files.hpp"
#include "tools/ptx-pack/jobs.hpp"

namespace ptxkit::pack {
namespace {

// The contents of a line.
struct Summary {
  uint64_t frame_count = 0, skippable_count = 0, block_count = 0, stored_bytes = 0;
  std::set<std::string> kinds, checks;
  std::optional<uint64_t> raw_bytes = 0;  // nothing if a frame does not state its size
  codec::Budget budget = {};              // of the blocks, filled if it is asked for
};

const char* block_name(const format::FrameHeader& header) {
  static constexpr const char* kNames[2][4] = {{"B4D", "B5D", "B6D", "B7D"}, {"B4I", "B5I", "B6I", "B7I"}};
  return kNames[header.independent_blocks][header.block_size_id - format::kSmallestBlockSizeId];
}

Result<Summary> summary_of_frames(format::ByteSource& source, bool with_budget) {
  format::FrameReader reader(source);
  Summary found;
  std::vector<uint8_t> payload;
  uint64_t frame_index = 0;
  for (;;) {
    auto event = reader.next(std::exchange(payload, {}));
    if (!event) return tl::unexpected(event.error());
    if (auto* block = std::get_if<format::BlockRead>(&*event)) {
      payload = std::move(block->payload);
      if (with_budget && block->stored) found.budget[codec::Part::stored] += payload.size();
      if (with_budget && !block->stored && !codec::add_lz4_block(payload, found.budget))
        return fail("a block is damaged",
                    format::frame_position(source.name(), frame_index, block->block_index, block->offset));
    }
    if (const auto* begin = std::get_if<format::FrameBegin>(&*event)) {
      const auto& header = begin->header;
      frame_index = begin->frame_index;
      ++found.frame_count;
      if (found.raw_bytes && header.content_bytes) {
        *found.raw_bytes += *header.content_bytes;
      } else {
        found.raw_bytes.reset();
      }
      found.kinds.insert(header.legacy ? "legacy" : block_name(header));
      if (header.block_checksum) found.checks.insert("block");
      if (header.content_checksum) found.checks.insert("content");
    } else if (const auto* frame_end = std::get_if<format::FrameEnd>(&*event)) {
      found.block_count += frame_end->block_count;
    } else if (std::holds_alternative<format::SkippedFrame>(*event)) {
      ++found.skippable_count;
    } else if (std::holds_alternative<format::EndOfInput>(*event)) {
      break;
    }
  }
  if (found.frame_count == 0) found.raw_bytes.reset();
  found.stored_bytes = reader.offset();
  return found;
}

// Reads sequentially, which also works for a pipe and compares the table with the blocks.
Result<Summary> summary_of_ptz(format::ByteSource& source, bool with_budget) {
  format::PtzReader reader(source);
  const auto header = reader.begin();
  if (!header) return tl::unexpected(header.error());
  Summary found{.frame_count = 1, .kinds = {format::name_of(header->coding)}, .checks = {"block"}};
  std::vector<uint8_t> stored;
  for (;;) {
    const auto block = reader.next(stored);
    if (!block) return tl::unexpected(block.error());
    if (!*block) break;
    if (with_budget && (*block)->is_raw) found.budget[codec::Part::stored] += stored.size();
    if (with_budget && !(*block)->is_raw &&
        !codec::add_ptz_block(header->coding, stored, (*block)->raw_bytes, found.budget)) {
      return fail(fmt::format("block {} is damaged", found.block_count), source.name());
    }
    ++found.block_count;
    *found.raw_bytes += (*block)->raw_bytes;
  }
  found.stored_bytes = reader.read_bytes();
  return found;
}

// Says nothing of where the bytes go within the blocks.
Result<Summary> summary_of_zstd(format::ByteSource& source) {
  format::ZstdFrameReader reader(source);
  Summary found;
  std::vector<uint8_t> bytes;
  for (;;) {
    bytes.clear();
    const auto event = reader.next(bytes);
    if (!event) return tl::unexpected(event.error());
    if (const auto* begin = std::get_if<format::ZstdFrameBegin>(&*event)) {
      ++found.frame_count;
      found.kinds.insert("zstd");
      if (begin->header.has_checksum) found.checks.insert("content");
      if (found.raw_bytes && begin->header.content_bytes) {
        *found.raw_bytes += *begin->header.content_bytes;
      } else {
        found.raw_bytes.reset();
      }
    } else if (std::holds_alternative<format::ZstdBlock>(*event)) {
      ++found.block_count;
    } else if (std::holds_alternative<format::ZstdSkipped>(*event)) {
      ++found.skippable_count;
    } else if (std::holds_alternative<format::ZstdEndOfInput>(*event)) {
      break;
    }
  }
  if (found.frame_count == 0) found.raw_bytes.reset();
  found.stored_bytes = reader.offset();
  return found;
}

// Members do not say their sizes before they are decoded.
Result<Summary> summary_of_gzip(format::ByteSource& source) {
  codec::Executor executor;
  codec::DeflateCoder coder(executor);
  format::NullSink sink;
  const auto totals =
      codec::decompress_gzip(source, sink, executor, coder, {.ignore_garbage = [](uint64_t, uint64_t) {}});
  if (!totals) return tl::unexpected(totals.error());
  return Summary{.frame_count = totals->frame_count,
                 .block_count = totals->frame_count,
                 .stored_bytes = totals->stored_bytes,
                 .kinds = {"gzip"},
                 .checks = {"content"},
                 .raw_bytes = totals->raw_bytes};
}

Result<Summary> summary_of(format::FileFormat format, format::ByteSource& source, bool with_budget) {
  switch (format) {
    case format::FileFormat::lz4:
      return summary_of_frames(source, with_budget);
    case format::FileFormat::ptz:
      return summary_of_ptz(source, with_budget);
    case format::FileFormat::zstd:
      return summary_of_zstd(source);
    case format::FileFormat::gzip:
      return summary_of_gzip(source);
  }
  PTXKIT_CHECK(false, "every format has a summary");
}

// A line for each part of the file that has bytes. What the blocks leave is the container's.
std::string budget_text(Summary& found) {
  found.budget[codec::Part::container] += found.stored_bytes - found.budget.total_bytes();
  std::string text;
  for (size_t i = 0; i < codec::kParts; ++i) {
    const uint64_t bytes = found.budget.bytes[i];
    if (bytes == 0) continue;
    text += fmt::format("  {:<10} {:>14} bytes {:>6.2f} %", codec::name_of(static_cast<codec::Part>(i)), bytes,
                        100.0 * static_cast<double>(bytes) / static_cast<double>(found.stored_bytes));
    if (found.raw_bytes && *found.raw_bytes != 0)
      text += fmt::format(" {:>8.4f} bits a raw byte",
                          8.0 * static_cast<double>(bytes) / static_cast<double>(*found.raw_bytes));
    text += '\n';
  }
  return text;
}

// flush_standard_output() reports a failure.
void print(const std::string& text) { (void)std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace

Result<void> list_file(const InputName& name, bool with_heading, bool with_budget) {
  auto input = InputFile::open(name);
  if (!input) return tl::unexpected(input.error());
  format::DescriptorSource descriptor(input->descriptor(), input->name());
  format::PeekedSource source(descriptor);
  const auto first = source.first();
  if (!first) return tl::unexpected(first.error());
  auto found = summary_of(format_of_input(*first, name.path), source, with_budget);
  if (!found) return tl::unexpected(found.error());
  const auto joined = [](const std::set<std::string>& words) {
    return words.empty() ? std::string("-") : fmt::format("{}", fmt::join(words, "+"));
  };
  if (with_heading) {
    print(fmt::format("{:>6} {:>9} {:>12} {:>8} {:>13} {:>14} {:>14} {:>7}  {}\n", "frames", "skippable", "kind",
                      "blocks", "checksums", "compressed", "uncompressed", "ratio", "file"));
  }
  const double ratio = static_cast<double>(found->raw_bytes.value_or(0)) /
                       static_cast<double>(std::max<uint64_t>(1, found->stored_bytes));
  print(fmt::format("{:>6} {:>9} {:>12} {:>8} {:>13} {:>14} {:>14} {:>7}  {}\n", found->frame_count,
                    found->skippable_count, joined(found->kinds), found->block_count, joined(found->checks),
                    found->stored_bytes, found->raw_bytes ? fmt::format("{}", *found->raw_bytes) : "-",
                    found->raw_bytes ? fmt::format("{:.3f}", ratio) : "-", printable(input->name())));
  if (with_budget && found->budget.total_bytes() != 0) print(budget_text(*found));
  return {};
}

Result<void> flush_standard_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return fail(std::string("cannot write: ") + std::strerror(errno), "standard output");
}

}  // namespace ptxkit::pack
