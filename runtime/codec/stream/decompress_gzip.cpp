// Decompresses gzip members. A member of BGZF says how long it is: the reader cuts it out, and the worker decodes many
// at a time. Where another member ends is known only when it has been decoded, so the reader does that itself, into the
// batch, and the worker computes its CRC.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/cpu/deflate_coder.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/field_reader.hpp"
#include "runtime/codec/format/gzip_member.hpp"
#include "runtime/codec/format/little_endian.hpp"
#include "runtime/codec/stream/batch_plan.hpp"
#include "runtime/codec/stream/gzip_stream.hpp"
#include "runtime/codec/stream/pipeline.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

constexpr uint64_t kRoomOfThread = 2u << 20, kLeastRoom = 4u << 20;
constexpr size_t kSmallestRoom = 2 * format::kBgzfLargestBytes;
constexpr size_t kMostParts = 1u << 12;  // bounds a batch of tiny members

// A member of BGZF, or what is decoded of another one.
struct Part {
  uint64_t member_index = 0, offset = 0;  // of the member in the stream
  uint64_t end_offset = 0;
  bool is_bgzf = false, begins_member = false, ends_member = false;
  size_t stored_begin = 0, stored_bytes = 0;  // in Batch::stored, of BGZF: the member
  size_t header_bytes = 0;                    // of it
  size_t room_begin = 0, room_bytes = 0;      // in Batch::room
  uint32_t crc = 0;                           // expected, if it ends a member
  bool is_damaged = false, is_bad_checksum = false;
};

struct Batch {
  std::vector<uint8_t> stored;
  std::vector<Part> parts;
  std::vector<DeflatedMember> members;
  HostMemory room;
  size_t used = 0;  // of `room`
};

class Decompressor {
 public:
  Decompressor(format::ByteSource& source, format::ByteSink& sink, Executor& executor, DeflateCoder& coder,
               const GzipDecompressOptions& options)
      : fields_(source), sink_(sink), executor_(executor), coder_(coder), options_(options) {}

  Result<StreamTotals> run() {
    scheduler::Ledger unlimited("memory");
    scheduler::Ledger& memory = options_.limits.memory != nullptr ? *options_.limits.memory : unlimited;
    const uint64_t depth = std::min(options_.limits.prefetch, kMostPrefetch) + 1;
    constexpr uint64_t kFixed = format::FieldReader::kAheadBytes + Inflater::kMemoryBytes;
    constexpr uint64_t kFields = kMostParts * (sizeof(Part) + sizeof(DeflatedMember));
    room_bytes_ = std::max<uint64_t>(kLeastRoom, kRoomOfThread * executor_.thread_count());
    if (options_.member_coder != nullptr) {
      room_bytes_ =
          std::max<uint64_t>(room_bytes_, format::kBgzfLargestBytes *
                                              options_.member_coder->batch_blocks(GzipCoding(), format::kBgzfRawBytes));
    }
    if (memory.budget_bytes() != scheduler::Ledger::kUnlimited) {
      const uint64_t each = (memory.budget_bytes() - std::min(memory.budget_bytes(), kFixed)) / depth;
      room_bytes_ = std::clamp<uint64_t>((each - std::min(each, kFields)) / 2, kSmallestRoom, room_bytes_);
    }
    const uint64_t batch_bytes = 2 * room_bytes_ + kFields;
    const unsigned fitting =
        kFixed >= memory.budget_bytes()
            ? 0
            : scheduler::max_in_flight(memory.budget_bytes() - kFixed, batch_bytes, static_cast<unsigned>(depth));
    if (fitting == 0) return no_room_for_a_block(format::kBgzfLargestBytes, kFixed + batch_bytes, memory);
    auto done = run_pipeline<Batch>(
        PipelineLimits{memory, batch_bytes, fitting, options_.limits.stop, kFixed, options_.limits.trace},
        [this](Batch& batch) { return read(batch); }, [this](Batch& batch) { return finished_batch(decode(batch)); },
        [this](Batch& batch) { return write(batch); });
    if (!done) return tl::unexpected(done.error());
    totals_.stored_bytes = fields_.offset();
    const bool may_use_device = options_.member_coder != nullptr && options_.member_coder->may_use_device();
    totals_.by = may_use_device ? options_.member_coder->description() : coder_.description();
    return totals_;
  }

 private:
  std::string position(uint64_t member_index, uint64_t offset) const {
    return fmt::format("{}, member {}, byte {}", fields_.name(), member_index, offset);
  }
  tl::unexpected<Error> broken(std::string what) const {
    return fail(std::move(what), position(member_index_, fields_.offset()));
  }

  Part& begin_part(Batch& batch) const {
    Part& part = batch.parts.emplace_back();
    part.member_index = member_index_;
    part.offset = member_offset_;
    part.room_begin = batch.used;
    return part;
  }

  Result<bool> read(Batch& batch) {
    batch.stored.clear();
    batch.parts.clear();
    batch.used = 0;
    if (batch.room.bytes().empty()) batch.room = pageable_memory(room_bytes_);
    while (!has_ended_) {
      if (is_inflating_) {
        const auto more = inflate(batch);
        if (!more) return tl::unexpected(more.error());
        if (*more) return true;
        continue;
      }
      if (batch.parts.size() == kMostParts || batch.used == room_bytes_) return true;
      if (member_index_ != 0) {
        const auto next = find_member();
        if (!next) return tl::unexpected(next.error());
        if (!*next) break;
      }
      member_offset_ = fields_.offset();
      const auto header = format::peek_gzip_header(fields_, position(member_index_, member_offset_));
      if (!header) return tl::unexpected(header.error());
      if (header->member_bytes == 0) {
        fields_.skip(header->header_bytes);
        inflater_.begin();
        is_inflating_ = begins_member_ = true;
      } else {
        const auto taken = take_bgzf(*header, batch);
        if (!taken) return tl::unexpected(taken.error());
        if (!*taken) return true;
      }
    }
    return !batch.parts.empty();
  }

  // Behind a member: whether another one follows.
  Result<bool> find_member() {
    const auto first = fields_.peek(2);
    if (!first) return tl::unexpected(first.error());
    if (first->empty()) {
      has_ended_ = true;
      if (lacks_end_ && options_.note_missing_end) options_.note_missing_end(fields_.offset());
      return false;
    }
    if (first->size() >= 2 && format::load_little_endian<uint16_t>(*first) == format::kGzipMagic) return true;
    if (first->size() == 1 && first->front() == (format::kGzipMagic & 0xFF))
      return broken("truncated: expected a member, found 1 byte of it");
    has_ended_ = true;
    const uint64_t begin = fields_.offset();
    bool has_garbage = false;
    while (true) {
      const auto rest = fields_.peek(1);
      if (!rest) return tl::unexpected(rest.error());
      if (rest->empty()) break;
      has_garbage |= std::ranges::any_of(*rest, [](uint8_t byte) { return byte != 0; });
      if (has_garbage && !options_.ignore_garbage) {
        return fail("bytes after the last member that are neither a member nor zeros", position(member_index_, begin),
                    "remove what follows the last member");
      }
      fields_.skip(rest->size());
    }
    if (has_garbage) options_.ignore_garbage(begin, fields_.offset() - begin);
    return false;
  }

  // Takes a whole member. False if the batch has no room for it.
  Result<bool> take_bgzf(const format::GzipHeader& header, Batch& batch) {
    const auto bytes = fields_.peek(header.member_bytes);
    if (!bytes) return tl::unexpected(bytes.error());
    if (bytes->size() < header.member_bytes) {
      return broken(
          fmt::format("truncated: expected {} bytes of a member, found {}", header.member_bytes, bytes->size()));
    }
    const Bytes member = bytes->first(header.member_bytes), trailer = member.last(format::kGzipTrailerBytes);
    const auto raw_bytes = format::load_little_endian<uint32_t>(trailer.subspan(4));
    if (raw_bytes > format::kBgzfLargestBytes) {
      return broken(
          fmt::format("a BGZF member of {} bytes, expected at most {}", raw_bytes, format::kBgzfLargestBytes));
    }
    if (raw_bytes > room_bytes_ - batch.used || batch.stored.size() + member.size() > room_bytes_) {
      if (!batch.parts.empty()) return false;
    }
    Part& part = begin_part(batch);
    part.is_bgzf = part.begins_member = part.ends_member = true;
    part.stored_begin = batch.stored.size();
    part.stored_bytes = member.size();
    part.header_bytes = header.header_bytes;
    batch.stored.insert(batch.stored.end(), member.begin(), member.end());
    part.room_bytes = raw_bytes;
    batch.used += raw_bytes;
    part.crc = format::load_little_endian<uint32_t>(trailer);
    fields_.skip(header.member_bytes);
    part.end_offset = fields_.offset();
    lacks_end_ = raw_bytes != 0;
    ++member_index_;
    return true;
  }

  // Decodes into the rest of the batch. True if it is full, false at the end of the member.
  Result<bool> inflate(Batch& batch) {
    if (batch.used == room_bytes_ || batch.parts.size() == kMostParts) return true;
    Part& part = begin_part(batch);
    part.begins_member = std::exchange(begins_member_, false);
    // What precedes an error is written.
    const auto end_part = [&] {
      part.room_bytes = batch.used - part.room_begin;
      part.end_offset = fields_.offset();
    };
    while (batch.used < room_bytes_) {
      const auto input = fields_.peek(1);
      if (!input) return tl::unexpected(input.error());
      const auto step = inflater_.inflate(*input, batch.room.bytes().subspan(batch.used));
      fields_.skip(step.consumed);
      batch.used += step.produced;
      member_bytes_ += step.produced;
      end_part();
      if (!step.fault.empty()) return broken("corrupt member: " + step.fault);
      if (step.has_ended) {
        if (auto ended = end_member(part); !ended) return tl::unexpected(ended.error());
        return false;
      }
      if (input->empty() && step.produced == 0) return broken("truncated: the deflate stream does not end");
    }
    return true;
  }

  Result<void> end_member(Part& part) {
    const auto trailer = fields_.peek(format::kGzipTrailerBytes);
    if (!trailer) return tl::unexpected(trailer.error());
    if (trailer->size() < format::kGzipTrailerBytes) {
      return broken(fmt::format("truncated: expected {} bytes at the end of a member, found {}",
                                format::kGzipTrailerBytes, trailer->size()));
    }
    const auto size = format::load_little_endian<uint32_t>(trailer->subspan(4));
    if (size != static_cast<uint32_t>(member_bytes_)) {
      return broken(fmt::format("the member has {} bytes, its end says {} (modulo 2^32)", member_bytes_, size));
    }
    part.ends_member = true;
    part.crc = format::load_little_endian<uint32_t>(*trailer);
    fields_.skip(format::kGzipTrailerBytes);
    part.end_offset = fields_.offset();
    is_inflating_ = lacks_end_ = false;
    member_bytes_ = 0;
    ++member_index_;
    return {};
  }

  Result<void> decode(Batch& batch) {
    if (auto done = decode_bgzf(batch); !done) return done;
    for (Part& part : batch.parts) {
      if (part.is_bgzf) continue;
      if (part.begins_member) crc_ = 0;
      crc_ = update_crc32(crc_, batch.room.bytes().subspan(part.room_begin, part.room_bytes));
      part.is_bad_checksum = part.ends_member && crc_ != part.crc;
    }
    return {};
  }

  Result<void> decode_bgzf(Batch& batch) {
    // An empty member has nothing for a kernel to do.
    std::vector<Part*> given, open;  // to the member coder, to the DeflateCoder
    for (Part& part : batch.parts) {
      if (part.is_bgzf) (options_.member_coder != nullptr && part.room_bytes != 0 ? given : open).push_back(&part);
    }
    const auto stored = [&](const Part& part) {
      return Bytes(batch.stored).subspan(part.stored_begin, part.stored_bytes);
    };
    const auto room = [&](const Part& part) { return batch.room.bytes().subspan(part.room_begin, part.room_bytes); };
    if (!given.empty()) {
      std::vector<BlockToDecode> blocks;
      for (const Part* part : given) blocks.push_back({stored(*part), room(*part)});
      if (auto done = options_.member_coder->decode(GzipCoding(), blocks); !done) return done;
      for (size_t i = 0; i < blocks.size(); ++i) {
        if (!blocks[i].good) open.push_back(given[i]);
      }
    }
    batch.members.clear();
    for (const Part* part : open) {
      const Bytes member = stored(*part);
      const size_t deflated_bytes = member.size() - part->header_bytes - format::kGzipTrailerBytes;
      batch.members.push_back({member.subspan(part->header_bytes, deflated_bytes), room(*part), part->crc});
    }
    coder_.decode(batch.members);
    for (size_t i = 0; i < open.size(); ++i) {
      open[i]->is_damaged = batch.members[i].is_damaged;
      open[i]->is_bad_checksum = batch.members[i].is_bad_checksum;
    }
    return {};
  }

  Result<void> write(Batch& batch) {
    // Parts lie one behind the other: those before a damaged one are written together.
    size_t good = 0;
    const Part* bad = nullptr;
    for (const Part& part : batch.parts) {
      if (part.is_damaged) {
        bad = &part;
        break;
      }
      good = part.room_begin + part.room_bytes;
      totals_.frame_count += part.ends_member;
      totals_.stored_bytes = part.end_offset;
      if (part.is_bad_checksum) {
        bad = &part;
        break;
      }
    }
    totals_.raw_bytes += good;
    if (good != 0) {
      if (auto done = sink_.write(batch.room.bytes().first(good)); !done) return done;
    }
    if (bad != nullptr) {
      const std::string where = position(bad->member_index, bad->offset);
      return bad->is_damaged ? fail("corrupt member", where) : fail_checksum("CRC-32 mismatch of the content", where);
    }
    if (options_.progress) options_.progress(totals_.raw_bytes, totals_.stored_bytes);
    return {};
  }

  uint64_t room_bytes_ = 0;
  // Used by the reader:
  format::FieldReader fields_;
  Inflater inflater_;
  uint64_t member_index_ = 0, member_offset_ = 0;
  uint64_t member_bytes_ = 0;  // raw, of the member that is being inflated
  bool is_inflating_ = false, begins_member_ = false, has_ended_ = false;
  bool lacks_end_ = false;  // the last member is one of BGZF with content
  // Used by the worker:
  uint32_t crc_ = 0;
  // Used by the writer:
  StreamTotals totals_;
  format::ByteSink& sink_;
  Executor& executor_;
  DeflateCoder& coder_;
  const GzipDecompressOptions& options_;
};

}  // namespace

Result<StreamTotals> decompress_gzip(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                     DeflateCoder& coder, const GzipDecompressOptions& options) {
  return Decompressor(source, sink, executor, coder, options).run();
}

}  // namespace ptxkit::codec
