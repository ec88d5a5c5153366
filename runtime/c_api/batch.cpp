// Batches in host memory.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <lz4.h>

#include "kernels/abi.hpp"
#include "kernels/typed/typed_format.hpp"
#include "kernels/typed/typed_reference.hpp"
#include "runtime/c_api/codecs.hpp"
#include "runtime/c_api/context.hpp"
#include "runtime/c_api/file_item.hpp"
#include "runtime/c_api/framing.hpp"
#include "runtime/c_api/ptxkit.h"
#include "runtime/c_api/status.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/typed_block.hpp"
#include "runtime/codec/cpu/coder_item.hpp"
#include "runtime/codec/cpu/deflate_coder.hpp"
#include "runtime/codec/cpu/zstd_coder.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/library/stored_item.hpp"
#include "support/result.hpp"

namespace ptxkit::c_api {
namespace {

using codec::DecompressItem;
using codec::ItemStatus;

// Memory for coded pieces that have no place in an output yet; a batch is worked off in groups that need no more.
constexpr size_t kScratchBytes = size_t{64} << 20;
// Blocks beyond this size are decoded by the CPU: kernels take up to 16 MiB.
constexpr size_t kLargestPiece = size_t{4} << 20;

struct Request {
  Coding coding;
  ptxkit_framing framing;
  bool is_reproducible, has_checksum;
  size_t largest_item_bytes;
};

Answer<Request> read_request(const ptxkit_batch_options* options) {
  const ptxkit_batch_options defaults = PTXKIT_BATCH_OPTIONS_DEFAULTS;
  const auto read = read_options(options, defaults, &ptxkit_batch_options::reserved);
  if (!read) return tl::unexpected(read.error());
  const auto info = info_of(read->codec);
  if (!info) return tl::unexpected(info.error());
  auto coding = coding_of(read->codec, read->level);
  if (!coding) return tl::unexpected(coding.error());
  if (read->framing > 31 || (info->framings >> read->framing & 1) == 0) {
    return refuse(read->framing > PTXKIT_FRAMING_STORED ? PTXKIT_INVALID_VALUE : PTXKIT_UNSUPPORTED,
                  fmt::format("{} has no framing {}", info->name, read->framing),
                  "bits of ptxkit_codec_info.framings say which there are");
  }
  const auto elements = elements_of(read->codec, read->dtype, read->stride);
  if (!elements) return tl::unexpected(elements.error());
  using Kind = Coding::Kind;
  if (*elements) coding->elements = **elements;
  if (coding->kind == Kind::typed && read->framing == PTXKIT_FRAMING_FRAME) coding->kind = Kind::ptz;
  const bool is_own = coding->kind == Kind::lz4 || coding->kind == Kind::ptz || coding->kind == Kind::typed;
  const uint32_t known = is_own                       ? uint32_t{PTXKIT_REPRODUCIBLE}
                         : coding->kind == Kind::zstd ? uint32_t{PTXKIT_CONTENT_CHECKSUM}
                                                      : 0;
  if ((read->flags & ~known) != 0)
    return refuse(PTXKIT_INVALID_VALUE,
                  fmt::format("options: {} has no flags {:#x}", info->name, read->flags & ~known));
  return Request{*coding, read->framing, (read->flags & PTXKIT_REPRODUCIBLE) != 0,
                 (read->flags & PTXKIT_CONTENT_CHECKSUM) != 0,
                 static_cast<size_t>(std::min<uint64_t>(info->largest_host_item, std::numeric_limits<size_t>::max()))};
}

// The arrays of a call.
struct Arrays {
  const void* const* inputs;
  const size_t* input_bytes;
  size_t count;
  void* const* outputs;
  const size_t* output_capacities;
  size_t* output_bytes;
  ptxkit_status* statuses;

  Bytes input(size_t i) const { return {static_cast<const uint8_t*>(inputs[i]), input_bytes[i]}; }
  MutableBytes output(size_t i) const { return {static_cast<uint8_t*>(outputs[i]), output_capacities[i]}; }
};

struct Range {
  uintptr_t begin, end;
  bool is_output;
};

// Whether an output overlaps another range, in n log n; a batch whose buffers lie in order is looked at once.
bool overlaps(const Arrays& arrays, const std::vector<ptxkit_status>& statuses) {
  std::vector<Range> ranges;
  ranges.reserve(2 * arrays.count);
  const auto add = [&](const void* first, size_t bytes, bool is_output) {
    const auto begin = reinterpret_cast<uintptr_t>(first);
    if (bytes != 0) ranges.push_back({begin, begin + bytes, is_output});
  };
  const auto add_all = [&](bool is_output) {
    for (size_t i = 0; i < arrays.count; ++i) {
      if (statuses[i] != PTXKIT_OK) continue;
      if (is_output) {
        add(arrays.outputs[i], arrays.output_capacities[i], true);
      } else {
        add(arrays.inputs[i], arrays.input_bytes[i], false);
      }
    }
  };
  add_all(false);
  const auto middle = static_cast<ptrdiff_t>(ranges.size());
  add_all(true);
  const auto by_begin = [](const Range& a, const Range& b) { return a.begin < b.begin; };
  if (!std::is_sorted(ranges.begin(), ranges.begin() + middle, by_begin))
    std::sort(ranges.begin(), ranges.begin() + middle, by_begin);
  if (!std::is_sorted(ranges.begin() + middle, ranges.end(), by_begin))
    std::sort(ranges.begin() + middle, ranges.end(), by_begin);
  std::inplace_merge(ranges.begin(), ranges.begin() + middle, ranges.end(), by_begin);
  uintptr_t input_end = 0, output_end = 0;
  for (const Range& range : ranges) {
    if (range.begin < output_end || (range.is_output && range.begin < input_end)) return true;
    uintptr_t& end = range.is_output ? output_end : input_end;
    end = std::max(end, range.end);
  }
  return false;
}

// Checks the arrays and each item; `statuses` receives what is wrong with an item alone.
Answer<> check(const Arrays& arrays, size_t largest_input_bytes, std::vector<ptxkit_status>& statuses) {
  if (arrays.count == 0) return {};
  for (const auto& [array, name] : {std::pair<const void*, const char*>{arrays.inputs, "inputs"},
                                    {arrays.input_bytes, "input_bytes"},
                                    {arrays.outputs, "outputs"},
                                    {arrays.output_capacities, "output_capacities"},
                                    {arrays.output_bytes, "output_bytes"}}) {
    if (auto given = require(array, name); !given) return given;
  }
  constexpr size_t kMostItems = PTRDIFF_MAX / (2 * sizeof(Range));  // no address space holds the arrays of more
  if (arrays.count > kMostItems) {
    return refuse(PTXKIT_INVALID_VALUE, fmt::format("count is {}: no memory holds so many items", arrays.count));
  }
  statuses.assign(arrays.count, PTXKIT_OK);
  for (size_t i = 0; i < arrays.count; ++i) {
    const auto fits = [](const void* first, size_t bytes) {
      return bytes == 0 || (first != nullptr && bytes <= UINTPTR_MAX - reinterpret_cast<uintptr_t>(first));
    };
    if (!fits(arrays.inputs[i], arrays.input_bytes[i]) || !fits(arrays.outputs[i], arrays.output_capacities[i]))
      statuses[i] = PTXKIT_INVALID_VALUE;
    else if (arrays.input_bytes[i] > largest_input_bytes)
      statuses[i] = PTXKIT_ITEM_TOO_LARGE;
  }
  if (overlaps(arrays, statuses)) {
    return refuse(PTXKIT_INVALID_VALUE, "an output overlaps another output or an input",
                  "give each item memory of its own");
  }
  return {};
}

// Hands the results of the items to the caller. The first item that failed is the status of the call.
Answer<> deliver(const Arrays& arrays, const std::vector<ptxkit_status>& statuses) {
  if (arrays.count == 0) return {};
  if (arrays.statuses != nullptr) std::ranges::copy(statuses, arrays.statuses);
  size_t failed_count = 0, first = 0;
  for (size_t i = arrays.count; i-- > 0;) {
    if (statuses[i] == PTXKIT_OK) continue;
    arrays.output_bytes[i] = 0;
    ++failed_count;
    first = i;
  }
  if (failed_count == 0) return {};
  return refuse(statuses[first], fmt::format("item {} of {}, {} bytes: {}{}", first, arrays.count,
                                             arrays.input_bytes[first], ptxkit_status_name(statuses[first]),
                                             failed_count == 1 ? "" : fmt::format("; {} items failed", failed_count)));
}

// Items that are worked off together, and their pieces.
class Group {
 public:
  Group(const Request& request, const Arrays& arrays, std::vector<ptxkit_status>& statuses)
      : request_(request), arrays_(arrays), statuses_(statuses) {}

  // Adds items from `begin` on; returns the first that is not in the group.
  size_t fill(size_t begin) {
    items_.clear();
    size_t scratch_bytes = 0, i = begin;
    for (; i < arrays_.count; ++i) {
      if (statuses_[i] != PTXKIT_OK) continue;
      const Bytes raw = arrays_.input(i);
      const size_t scratch = is_direct(i) ? 0 : raw.size();
      if (!items_.empty() && scratch_bytes + scratch > kScratchBytes) break;
      items_.push_back({i, scratch_bytes, 0});
      scratch_bytes += scratch;
    }
    if (scratch_bytes > scratch_size_) {
      scratch_ = std::make_unique_for_overwrite<uint8_t[]>(scratch_bytes);
      scratch_size_ = scratch_bytes;
    }
    pieces_.clear();
    for (Item& item : items_) {
      item.first_piece = pieces_.size();
      const Bytes raw = arrays_.input(item.index);
      uint8_t* const room = is_direct(item.index) ? arrays_.output(item.index).data() + *direct_offset(request_.framing)
                                                  : scratch_.get() + item.scratch_begin;
      const size_t step = piece_bytes(request_.framing);
      for (size_t piece = 0; piece < piece_count(request_.framing, raw.size()); ++piece) {
        const size_t at = piece * step, bytes = std::min(step, raw.size() - at);
        CompressItem& added = pieces_.emplace_back();
        added.raw = raw.subspan(at, bytes);
        added.output = {room + at, bytes};
      }
    }
    return i;
  }

  std::span<CompressItem> pieces() { return pieces_; }
  size_t item_count() const { return items_.size(); }

  // Joins the compressed pieces of an item of the group. Calls for different items may run concurrently.
  void finish(size_t index) {
    const Item& item = items_[index];
    const size_t end = index + 1 < items_.size() ? items_[index + 1].first_piece : pieces_.size();
    const auto used =
        join(request_.framing, arrays_.input(item.index),
             std::span(pieces_).subspan(item.first_piece, end - item.first_piece), arrays_.output(item.index));
    if (used) {
      arrays_.output_bytes[item.index] = *used;
    } else {
      statuses_[item.index] = PTXKIT_OUTPUT_TOO_SMALL;
    }
  }

 private:
  struct Item {
    size_t index, scratch_begin, first_piece;
  };

  // Whether the item is one piece that is coded in its output.
  bool is_direct(size_t i) const {
    const auto offset = direct_offset(request_.framing);
    const size_t raw_bytes = arrays_.input_bytes[i];
    return offset && piece_count(request_.framing, raw_bytes) == 1 && arrays_.output_capacities[i] >= *offset &&
           arrays_.output_capacities[i] - *offset >= raw_bytes;
  }

  const Request& request_;
  const Arrays& arrays_;
  std::vector<ptxkit_status>& statuses_;
  std::vector<Item> items_;
  std::vector<CompressItem> pieces_;
  std::unique_ptr<uint8_t[]> scratch_;
  size_t scratch_size_ = 0;
};

Answer<> compress_lz4(ptxkit_context& context, const Request& request, const Arrays& arrays,
                      std::vector<ptxkit_status>& statuses) {
  Group group(request, arrays, statuses);
  for (size_t begin = 0; begin < arrays.count;) {
    begin = group.fill(begin);
    const auto encoder = request.coding.is_high    ? std::optional(codec::Encoder::high)
                         : request.is_reproducible ? std::optional(codec::Encoder::reproducible)
                                                   : std::nullopt;
    codec::DeviceTimes times;
    if (const auto done = context.lz4.compress(group.pieces(), encoder, &times); !done)
      return refuse(PTXKIT_DEVICE, done.error());
    context.add(times);
    context.lz4.engine().executor().for_each(group.item_count(), [&](size_t index, unsigned) { group.finish(index); });
  }
  return {};
}

// The result of one item from the results of its parts.
ptxkit_status status_of(ItemStatus status) {
  switch (status) {
    case ItemStatus::ok:
      return PTXKIT_OK;
    case ItemStatus::output_overrun:
      return PTXKIT_OUTPUT_TOO_SMALL;
    case ItemStatus::item_too_large:
      return PTXKIT_ITEM_TOO_LARGE;
    default:
      return PTXKIT_CANNOT_DECOMPRESS;
  }
}

Result<void> decode_by_backend(ptxkit_context& context, std::span<DecompressItem> blocks) {
  codec::DeviceTimes times;
  auto done = context.lz4.decompress(blocks, &times);
  context.add(times);
  return done;
}

// Decodes all blocks; those beyond the kernels' limits on the CPU.
Result<void> decode(ptxkit_context& context, std::span<DecompressItem> blocks) {
  const auto is_large = [](const DecompressItem& block) {
    return std::max(block.block.size(), block.output.size()) > kLargestPiece;
  };
  if (std::ranges::none_of(blocks, is_large)) return decode_by_backend(context, blocks);
  std::vector<DecompressItem> parts[2];
  for (const DecompressItem& block : blocks) parts[is_large(block)].push_back(block);
  if (const auto done = decode_by_backend(context, parts[0]); !done) return done;
  const auto cpu = codec::make_cpu_backend(context.lz4.engine().executor());
  if (const auto done = cpu->decompress(parts[1]); !done) return done;
  size_t next[2] = {};
  for (DecompressItem& block : blocks) {
    const bool large = is_large(block);
    block = parts[large][next[large]++];
  }
  return {};
}

Answer<> decompress_stored(ptxkit_context& context, const Arrays& arrays, std::vector<ptxkit_status>& statuses) {
  std::vector<library::StoredItem> items;
  std::vector<size_t> owners;
  for (size_t i = 0; i < arrays.count; ++i) {
    if (statuses[i] != PTXKIT_OK) continue;
    const Bytes input = arrays.input(i);
    if (input.empty()) {
      statuses[i] = PTXKIT_CANNOT_DECOMPRESS;
      continue;
    }
    library::StoredItem& item = items.emplace_back();
    item.flag = static_cast<codec::ChunkFlag>(input[0]);
    item.stored = input.subspan(1);
    item.output = arrays.output(i);
    owners.push_back(i);
  }
  const auto done = library::restore(items, [&](std::span<DecompressItem> blocks) { return decode(context, blocks); });
  if (!done) return refuse(PTXKIT_DEVICE, done.error());
  for (size_t k = 0; k < items.size(); ++k) {
    statuses[owners[k]] =
        items[k].status == ItemStatus::output_overrun ? PTXKIT_CANNOT_DECOMPRESS : status_of(items[k].status);
    arrays.output_bytes[owners[k]] = arrays.output_capacities[owners[k]];
  }
  return {};
}

Answer<> decompress_blocks(ptxkit_context& context, const Request& request, const Arrays& arrays,
                           std::vector<ptxkit_status>& statuses) {
  struct Owner {
    size_t index;
    std::optional<size_t> raw_bytes;
  };
  std::vector<DecompressItem> blocks;
  std::vector<Owner> owners;
  for (size_t i = 0; i < arrays.count; ++i) {
    if (statuses[i] != PTXKIT_OK) continue;
    auto parts = split(request.framing, arrays.input(i));
    if (!parts) {
      statuses[i] = parts.error().status;
      continue;
    }
    const MutableBytes output = arrays.output(i);
    if (parts->raw_bytes && *parts->raw_bytes > output.size()) {
      statuses[i] = PTXKIT_OUTPUT_TOO_SMALL;
      continue;
    }
    arrays.output_bytes[i] = parts->raw_bytes.value_or(0);
    for (const Part& part : parts->parts) {
      const MutableBytes room = output.subspan(part.raw_begin, part.raw_bytes.value_or(output.size()));
      if (part.is_raw) {
        std::ranges::copy(part.stored, room.begin());
        continue;
      }
      DecompressItem& block = blocks.emplace_back();
      block.block = part.stored;
      block.output = room;
      owners.push_back({i, part.raw_bytes});
    }
  }
  if (const auto done = decode(context, blocks); !done) return refuse(PTXKIT_DEVICE, done.error());
  for (size_t k = 0; k < blocks.size(); ++k) {
    const auto& [index, raw_bytes] = owners[k];
    ptxkit_status status = status_of(blocks[k].status);
    if (raw_bytes && status == PTXKIT_OUTPUT_TOO_SMALL) status = PTXKIT_CANNOT_DECOMPRESS;  // more than it says
    if (raw_bytes && status == PTXKIT_OK && blocks[k].raw_bytes != *raw_bytes) status = PTXKIT_CANNOT_DECOMPRESS;
    if (status != PTXKIT_OK && statuses[index] == PTXKIT_OK) statuses[index] = status;
    if (!raw_bytes) arrays.output_bytes[index] = blocks[k].raw_bytes;
  }
  return {};
}

// Frames and containers, one after another; each uses all threads.
template <class Convert>
Answer<> convert_each(const Arrays& arrays, std::vector<ptxkit_status>& statuses, Convert convert) {
  for (size_t i = 0; i < arrays.count; ++i) {
    if (statuses[i] != PTXKIT_OK) continue;
    const Answer<size_t> used = convert(arrays.input(i), arrays.output(i));
    if (used) {
      arrays.output_bytes[i] = *used;
    } else if (used.error().status == PTXKIT_DEVICE || used.error().status == PTXKIT_NO_MEMORY) {
      return tl::unexpected(used.error());
    } else {
      statuses[i] = used.error().status;
    }
  }
  return {};
}

ptxkit_status status_of(codec::CoderItem::Status status) {
  switch (status) {
    case codec::CoderItem::Status::ok:
      return PTXKIT_OK;
    case codec::CoderItem::Status::damaged:
      return PTXKIT_CANNOT_DECOMPRESS;
    case codec::CoderItem::Status::bad_checksum:
      return PTXKIT_BAD_CHECKSUM;
    case codec::CoderItem::Status::output_too_small:
      return PTXKIT_OUTPUT_TOO_SMALL;
  }
  return PTXKIT_INTERNAL;
}

// Items of Zstandard, gzip, zlib and deflate: a thread for each.
void convert_standard(ptxkit_context& context, const Request& request, const Arrays& arrays,
                      std::vector<ptxkit_status>& statuses, bool compresses) {
  std::vector<codec::CoderItem> items;
  std::vector<size_t> owners;
  for (size_t i = 0; i < arrays.count; ++i) {
    if (statuses[i] != PTXKIT_OK) continue;
    items.push_back({arrays.input(i), arrays.output(i)});
    owners.push_back(i);
  }
  const bool is_zstd = request.coding.kind == Coding::Kind::zstd;
  if (is_zstd && compresses) {
    context.zstd.compress(items, request.coding.level, request.has_checksum);
  } else if (is_zstd) {
    context.zstd.decompress(items);
  } else if (compresses) {
    context.deflate.compress(items, request.coding.wrapper, request.coding.level);
  } else {
    context.deflate.decompress(items, request.coding.wrapper);
  }
  for (size_t k = 0; k < items.size(); ++k) {
    statuses[owners[k]] = status_of(items[k].status);
    arrays.output_bytes[owners[k]] = items[k].output_bytes;
  }
}

kernels::TypedOutcome encode_typed(Bytes raw, MutableBytes output, kernels::TypedLayout layout) {
  if (raw.size() > kernels::kMaxBatchRawBytes || output.size() >= kernels::typed_bound(raw.size(), layout))
    return kernels::typed_encode_reference(raw, output, layout);
  // What an item takes is known when it is coded.
  const size_t bound = kernels::typed_bound(raw.size(), layout);
  const auto room = std::make_unique_for_overwrite<uint8_t[]>(bound);
  const auto coded = kernels::typed_encode_reference(raw, {room.get(), bound}, layout);
  if (coded.size_bytes > output.size()) return {kernels::BatchStatus::output_too_small, 0};
  std::copy_n(room.get(), coded.size_bytes, output.begin());
  return coded;
}

// Typed rANS: a thread for each item.
void convert_typed(ptxkit_context& context, const Request& request, const Arrays& arrays,
                   std::vector<ptxkit_status>& statuses, bool compresses) {
  const kernels::TypedLayout layout = codec::layout_of(request.coding.elements);
  context.lz4.engine().executor().for_each(arrays.count, [&](size_t i, unsigned) {
    if (statuses[i] != PTXKIT_OK) return;
    const auto outcome = compresses ? encode_typed(arrays.input(i), arrays.output(i), layout)
                                    : kernels::typed_decode_reference(arrays.input(i), arrays.output(i));
    statuses[i] = static_cast<ptxkit_status>(outcome.status);  // the numbers are the same
    arrays.output_bytes[i] = outcome.size_bytes;
  });
}

Answer<> run(ptxkit_context* context, const ptxkit_batch_options* options, const Arrays& arrays, bool compresses) {
  if (auto given = require(context, "context"); !given) return given;
  const auto request = read_request(options);
  if (!request) return tl::unexpected(request.error());
  std::vector<ptxkit_status> statuses;
  const size_t largest_input_bytes = compresses ? request->largest_item_bytes : SIZE_MAX;
  if (auto checked = check(arrays, largest_input_bytes, statuses); !checked) return checked;
  Answer<> done;
  const bool is_lz4 = request->coding.is_lz4();
  if (request->coding.kind == Coding::Kind::typed) {
    convert_typed(*context, *request, arrays, statuses, compresses);
  } else if (!is_lz4 && request->coding.kind != Coding::Kind::ptz) {
    convert_standard(*context, *request, arrays, statuses, compresses);
  } else if (compresses && is_lz4) {
    done = compress_lz4(*context, *request, arrays, statuses);
  } else if (compresses) {
    done = convert_each(arrays, statuses, [&](Bytes raw, MutableBytes output) {
      return compress_file_item(*context, request->coding, raw, output);
    });
  } else if (request->framing == PTXKIT_FRAMING_FRAME) {
    done = convert_each(arrays, statuses, [&](Bytes stored, MutableBytes output) {
      return decompress_file_item(*context, is_lz4, stored, output);
    });
  } else if (request->framing == PTXKIT_FRAMING_STORED) {
    done = decompress_stored(*context, arrays, statuses);
  } else {
    done = decompress_blocks(*context, *request, arrays, statuses);
  }
  if (!done) return done;
  return deliver(arrays, statuses);
}

Answer<size_t> bound_of(const ptxkit_batch_options* options, size_t item_bytes) {
  const auto request = read_request(options);
  if (!request) return tl::unexpected(request.error());
  if (item_bytes > request->largest_item_bytes) {
    return refuse(PTXKIT_ITEM_TOO_LARGE,
                  fmt::format("an item of {} bytes, expected at most {}", item_bytes, request->largest_item_bytes));
  }
  switch (request->coding.kind) {
    case Coding::Kind::ptz:
      return ptz_bound(*request->coding.ptz, item_bytes);
    case Coding::Kind::zstd:
      return codec::zstd_item_bound(item_bytes);
    case Coding::Kind::deflate:
      return codec::deflate_bound(request->coding.wrapper, item_bytes);
    case Coding::Kind::typed:
      return kernels::typed_bound(item_bytes, codec::layout_of(request->coding.elements));
    case Coding::Kind::lz4:
      break;
  }
  const auto bound = framed_bound(request->framing, item_bytes);
  if (!bound) return refuse(PTXKIT_ITEM_TOO_LARGE, fmt::format("an item of {} bytes has no bound", item_bytes));
  return *bound;
}

Answer<size_t> raw_size_of(const ptxkit_batch_options* options, Bytes item) {
  const auto request = read_request(options);
  if (!request) return tl::unexpected(request.error());
  if (request->coding.kind == Coding::Kind::deflate) {
    return refuse(PTXKIT_UNSUPPORTED, "items of gzip, zlib and deflate do not say their raw size",
                  "keep it beside them");
  }
  if (request->coding.kind == Coding::Kind::zstd) return raw_size_of_zstd(item);
  if (request->coding.kind == Coding::Kind::typed) {
    kernels::TypedItem typed;
    if (const auto status = kernels::open_typed(item, typed); status != kernels::BatchStatus::ok) {
      return refuse(static_cast<ptxkit_status>(status), "the header is none of typed rANS, or does not fit the item");
    }
    return typed.raw_bytes;
  }
  if (request->framing == PTXKIT_FRAMING_FRAME) return raw_size_of_file(request->coding.is_lz4(), item);
  if (request->framing == PTXKIT_FRAMING_STORED)
    return refuse(PTXKIT_UNSUPPORTED, "stored items do not say their raw size", "keep it beside them");
  const auto parts = split(request->framing, item);
  if (!parts) return tl::unexpected(parts.error());
  if (parts->raw_bytes) return *parts->raw_bytes;
  const auto raw_bytes = block_raw_bytes(item);
  if (!raw_bytes) return refuse(PTXKIT_CANNOT_DECOMPRESS, "the LZ4 block ends inside a sequence");
  return *raw_bytes;
}

}  // namespace
}  // namespace ptxkit::c_api

using namespace ptxkit;

ptxkit_status ptxkit_compress_bound(const ptxkit_batch_options* options, size_t item_bytes, size_t* bound) {
  return c_api::call(__func__, [&]() -> c_api::Answer<> {
    if (auto given = c_api::require(bound, "bound"); !given) return given;
    return c_api::bound_of(options, item_bytes).map([&](size_t bytes) { *bound = bytes; });
  });
}

ptxkit_status ptxkit_compress_batch(ptxkit_context* context, const ptxkit_batch_options* options,
                                    const void* const* inputs, const size_t* input_bytes, size_t count,
                                    void* const* outputs, const size_t* output_capacities, size_t* output_bytes,
                                    ptxkit_status* statuses) {
  return c_api::call(__func__, [&] {
    return c_api::run(context, options,
                      {inputs, input_bytes, count, outputs, output_capacities, output_bytes, statuses}, true);
  });
}

ptxkit_status ptxkit_decompress_batch(ptxkit_context* context, const ptxkit_batch_options* options,
                                      const void* const* inputs, const size_t* input_bytes, size_t count,
                                      void* const* outputs, const size_t* output_capacities, size_t* output_bytes,
                                      ptxkit_status* statuses) {
  return c_api::call(__func__, [&] {
    return c_api::run(context, options,
                      {inputs, input_bytes, count, outputs, output_capacities, output_bytes, statuses}, false);
  });
}

ptxkit_status ptxkit_decompressed_size(const ptxkit_batch_options* options, const void* input, size_t input_bytes,
                                       size_t* raw_bytes) {
  return c_api::call(__func__, [&]() -> c_api::Answer<> {
    if (auto given = c_api::require(raw_bytes, "raw_bytes"); !given) return given;
    if (input == nullptr && input_bytes != 0) return c_api::require(input, "input");
    return c_api::raw_size_of(options, {static_cast<const uint8_t*>(input), input_bytes}).map([&](size_t bytes) {
      *raw_bytes = bytes;
    });
  });
}
