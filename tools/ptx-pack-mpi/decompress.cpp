#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/codec/format/lz4_frame_reader.hpp"
#include "runtime/codec/format/ptz.hpp"
#include "runtime/codec/stream/ptz_stream.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "support/guarded.hpp"
#include "support/result.hpp"
#include "tools/ptx-pack-mpi/hash_chain.hpp"
#include "tools/ptx-pack-mpi/job.hpp"
#include "tools/ptx-pack-mpi/shared_file.hpp"
#include "tools/ptx-pack-mpi/shared_streams.hpp"

namespace ptxkit::pack {
namespace {

using ByteVector = std::vector<uint8_t>;

// The bytes of a file from a position on.
class FileSource final : public format::ByteSource {
 public:
  FileSource(const format::DescriptorFile& file, uint64_t at) : file_(file), at_(at) {}
  Result<size_t> read(format::MutableBytes into) override {
    const size_t count = std::min<uint64_t>(into.size(), file_.size_bytes() - at_);
    if (auto read = file_.read_at(at_, into.first(count)); !read) return tl::unexpected(read.error());
    at_ += count;
    return count;
  }
  Result<size_t> read_some(format::MutableBytes into, size_t) override { return read(into); }
  const std::string& name() const override { return file_.name(); }

 private:
  const format::DescriptorFile& file_;
  uint64_t at_;
};

// The blocks of a frame follow each other, each behind its size, so one rank goes from size to size and tells the
// others where the blocks of a round are.
class FrameWalk {
 public:
  explicit FrameWalk(const format::DescriptorFile& file) : file_(file) {}

  bool is_at_end() const { return at_ >= file_.size_bytes() && at_ != 0; }
  // Of the frame that begin() has found.
  bool is_shareable() const { return is_shareable_; }

  // The header of the next frame; nothing for a skippable one, which has been passed.
  Result<std::optional<format::FrameHeader>> begin() {
    FileSource source(file_, at_);
    format::FrameReader reader(source);
    const auto event = reader.next();
    if (!event) return tl::unexpected(event.error());
    at_ += reader.offset();
    const auto* frame = std::get_if<format::FrameBegin>(&*event);
    if (frame == nullptr) return std::optional<format::FrameHeader>();
    header_ = frame->header;
    is_shareable_ = !header_.legacy && header_.independent_blocks;
    if (!is_shareable_) {
      return fail(fmt::format("ranks cannot share a frame {}",
                              header_.legacy ? "of the legacy format" : "whose blocks are linked"),
                  fmt::format("{}, byte {}", file_.name(), at_ - reader.offset()), "decompress it with ptx-pack");
    }
    return std::optional(header_);
  }

  // Where the next blocks begin, up to `most_blocks`, and where the last of them ends.
  Result<std::vector<uint64_t>> next(uint64_t most_blocks) {
    std::vector<uint64_t> offsets{at_};
    while (offsets.size() <= most_blocks) {
      const auto size = number_at(at_);
      if (!size) return tl::unexpected(size.error());
      const uint64_t payload_bytes = *size & ~format::kStoredBit;
      if (*size == 0) break;
      const uint64_t end = at_ + 4 + payload_bytes + (header_.block_checksum ? 4 : 0);
      if (payload_bytes > header_.block_bytes() || end > file_.size_bytes()) return fail("a block is too long");
      at_ = end;
      offsets.push_back(at_);
    }
    return offsets;
  }

  // Behind the last block. The checksum of the content, if there is one.
  Result<uint32_t> end() {
    at_ += 4;
    if (!header_.content_checksum) return 0;
    const auto checksum = number_at(at_);
    at_ += 4;
    return checksum;
  }

 private:
  Result<uint32_t> number_at(uint64_t at) const {
    std::array<uint8_t, 4> bytes{};
    if (auto read = file_.read_at(at, bytes); !read) return tl::unexpected(read.error());
    return bytes[0] | uint32_t{bytes[1]} << 8 | uint32_t{bytes[2]} << 16 | uint32_t{bytes[3]} << 24;
  }

  const format::DescriptorFile& file_;
  uint64_t at_ = 0;
  format::FrameHeader header_;
  bool is_shareable_ = true;
};

// What the first rank tells of the next piece of work.
struct Plan {
  enum Kind : uint64_t { end_of_input, frame, blocks, end_of_frame } kind = end_of_input;
  format::FrameHeader header;     // of `frame`
  std::vector<uint64_t> offsets;  // of `blocks`
  uint32_t checksum = 0;          // of `end_of_frame`
};

std::vector<uint64_t> numbers_of(const Plan& plan) {
  const format::FrameHeader& header = plan.header;
  std::vector<uint64_t> numbers{plan.kind,
                                static_cast<uint64_t>(header.block_size_id),
                                header.block_checksum,
                                header.content_checksum,
                                header.content_bytes.has_value(),
                                header.content_bytes.value_or(0),
                                plan.checksum};
  numbers.insert(numbers.end(), plan.offsets.begin(), plan.offsets.end());
  return numbers;
}

Plan plan_of(const std::vector<uint64_t>& numbers) {
  Plan plan;
  plan.kind = static_cast<Plan::Kind>(numbers[0]);
  plan.header.block_size_id = static_cast<int>(numbers[1]);
  plan.header.block_checksum = numbers[2] != 0;
  plan.header.content_checksum = numbers[3] != 0;
  if (numbers[4] != 0) plan.header.content_bytes = numbers[5];
  plan.checksum = static_cast<uint32_t>(numbers[6]);
  plan.offsets.assign(numbers.begin() + 7, numbers.end());
  return plan;
}

class Lz4Decompressor {
 public:
  Lz4Decompressor(const Job& job, const format::DescriptorFile& input, SharedFile* output, const Coders& coders)
      : job_(job), input_(input), output_(output), coders_(coders), walk_(input), hash_(job) {}
  ~Lz4Decompressor() { hash_.wait(); }

  Result<SharedTotals> run() {
    for (;;) {
      Result<Plan> made;
      if (job_.is_first()) made = guarded([&] { return next(); });
      if (auto agreed = job_.agree(made ? Result<void>() : tl::unexpected(made.error())); !agreed)
        return tl::unexpected(agreed.error());
      const Plan plan = plan_of(job_.from_first(numbers_of(*made)));
      if (plan.kind == Plan::end_of_input) break;
      if (auto done = job_.agree(carry_out(plan)); !done) return tl::unexpected(done.error());
    }
    totals_.stored_bytes = input_.size_bytes();
    return totals_;
  }
  // Of the error of run(), on the first rank: whether a reading in order would not say more.
  bool says_all() const { return has_failed_to_write_ || !walk_.is_shareable(); }

 private:
  // Of the first rank.
  Result<Plan> next() {
    Plan plan;
    while (!is_in_frame_) {
      if (walk_.is_at_end()) return plan;
      auto header = walk_.begin();
      if (!header) return tl::unexpected(header.error());
      if (!*header) continue;
      is_in_frame_ = true;
      plan.kind = Plan::frame;
      plan.header = header_ = **header;
      return plan;
    }
    plan.header = header_;
    auto offsets =
        walk_.next(std::max<uint64_t>(1, kRankBytes / header_.block_bytes()) * static_cast<uint64_t>(job_.size()));
    if (!offsets) return tl::unexpected(offsets.error());
    if (offsets->size() > 1) {
      plan.kind = Plan::blocks;
      plan.offsets = std::move(*offsets);
      return plan;
    }
    const auto checksum = walk_.end();
    if (!checksum) return tl::unexpected(checksum.error());
    plan.kind = Plan::end_of_frame;
    plan.checksum = *checksum;
    is_in_frame_ = false;
    return plan;
  }

  Result<void> carry_out(const Plan& plan) {
    if (plan.kind == Plan::frame) {
      frame_begin_ = totals_.raw_bytes;
      return {};
    }
    if (plan.kind == Plan::blocks) return decode(plan);
    const uint64_t raw_bytes = totals_.raw_bytes - frame_begin_;
    if (plan.header.content_checksum && hash_.value() != plan.checksum) return fail("content checksum mismatch");
    if (plan.header.content_bytes.value_or(raw_bytes) != raw_bytes) return fail("content size mismatch");
    return {};
  }

  Result<void> decode(const Plan& plan) {
    auto raw = guarded([&] { return decode_part(plan); });
    const Job::Sums sums = job_.sums(raw ? raw->size() : 0);
    if (auto agreed = job_.agree(raw ? Result<void>() : tl::unexpected(raw.error())); !agreed) return agreed;
    std::swap(hashed_, *raw);
    if (plan.header.content_checksum) hash_.update(hashed_);
    const uint64_t at = totals_.raw_bytes + sums.before;
    totals_.raw_bytes += sums.all;
    totals_.block_count += plan.offsets.size() - 1;
    auto written = job_.agree(output_ == nullptr ? Result<void>() : output_->write_at(at, hashed_));
    has_failed_to_write_ = !written;
    return written;
  }

  // A frame of this rank's blocks alone.
  Result<ByteVector> decode_part(const Plan& plan) const {
    const Part part = part_of(job_, plan.offsets.size() - 1);
    if (part.count() == 0) return ByteVector();
    format::FrameHeader header = plan.header;
    header.content_checksum = false;
    header.content_bytes.reset();
    ByteVector frame, end;
    format::append_frame_header(header, frame);
    format::append_frame_end(header, 0, end);
    const size_t begin = frame.size(), bytes = plan.offsets[part.end] - plan.offsets[part.begin];
    frame.resize(begin + bytes + end.size());
    if (auto read = input_.read_at(plan.offsets[part.begin], format::MutableBytes(frame).subspan(begin, bytes)); !read)
      return tl::unexpected(read.error());
    std::copy(end.begin(), end.end(), frame.end() - static_cast<ptrdiff_t>(end.size()));
    format::MemorySource source(frame, input_.name());
    format::MemorySink sink;
    const auto done = codec::decompress_stream(source, sink, *coders_.lz4, {.progress = {}, .limits = coders_.limits});
    if (!done) return tl::unexpected(done.error());
    return sink.take();
  }

  const Job& job_;
  const format::DescriptorFile& input_;
  SharedFile* output_;
  const Coders& coders_;
  // Of the first rank:
  FrameWalk walk_;
  bool is_in_frame_ = false;
  format::FrameHeader header_;
  // Of every rank:
  ByteVector hashed_;  // while hash_ reads it
  HashChain hash_;
  SharedTotals totals_;
  uint64_t frame_begin_ = 0;  // raw bytes before the frame
  bool has_failed_to_write_ = false;
};

// Every block's place is known: raw byte k is in block k / 2^b. `says_all`: of the error, as above.
Result<SharedTotals> decompress_ptz_shared(const Job& job, const format::DescriptorFile& input, SharedFile* output,
                                           const Coders& coders, bool& says_all) {
  auto archive = guarded([&] { return format::PtzArchive::open(input); });
  if (auto agreed = job.agree(archive ? Result<void>() : tl::unexpected(archive.error())); !agreed)
    return tl::unexpected(agreed.error());
  const uint64_t block_bytes = uint64_t{1} << archive->header().block_bits, count = archive->block_count();
  const uint64_t blocks_of_round = std::max<uint64_t>(1, kRankBytes / block_bytes) * static_cast<uint64_t>(job.size());
  for (uint64_t begin = 0; begin < count; begin += blocks_of_round) {
    const Part part = part_of(job, std::min(blocks_of_round, count - begin));
    ByteVector raw;
    const auto decode = [&]() -> Result<void> {
      if (part.count() == 0) return {};
      std::vector<size_t> indices(part.count());
      std::iota(indices.begin(), indices.end(), begin + part.begin);
      const auto blocks = codec::read_ptz_blocks(*archive, indices, coders.executor, *coders.blocks);
      if (!blocks) return tl::unexpected(blocks.error());
      raw.reserve(part.count() * block_bytes);
      for (const auto& block : *blocks) {
        if (!block) return tl::unexpected(block.error());
        raw.insert(raw.end(), block->begin(), block->end());
      }
      return {};
    };
    if (auto agreed = job.agree(guarded(decode)); !agreed) return tl::unexpected(agreed.error());
    if (output == nullptr) continue;
    if (auto written = job.agree(output->write_at((begin + part.begin) * block_bytes, raw)); !written) {
      says_all = true;
      return tl::unexpected(written.error());
    }
  }
  SharedTotals totals{.raw_bytes = 0, .stored_bytes = input.size_bytes(), .block_count = count};
  if (count != 0) totals.raw_bytes = (count - 1) * block_bytes + archive->block(count - 1).raw_bytes;
  return totals;
}

// Ranks see parts of the input. What is wrong with it, and where, one rank says after it has read it in order, as
// ptx-pack does.
Error explained(const Job& job, const format::DescriptorFile& input, const Coders& coders, const Error& error) {
  Result<void> read;
  if (job.is_first()) {
    FileSource source(input, 0);
    format::NullSink sink;
    read = guarded([&]() -> Result<void> {
      auto done = coders.blocks != nullptr
                      ? codec::decompress_ptz(source, sink, coders.executor,
                                              {.coder = coders.blocks, .progress = {}, .limits = coders.limits})
                      : codec::decompress_stream(source, sink, *coders.lz4, {.progress = {}, .limits = coders.limits});
      return done ? Result<void>() : tl::unexpected(done.error());
    });
  }
  const Result<void> agreed = job.agree(read);
  return agreed ? error : agreed.error();
}

}  // namespace

Result<SharedTotals> decompress_shared(const Job& job, const format::DescriptorFile& input, SharedFile* output,
                                       const Coders& coders) {
  bool says_all = false;
  const auto run = [&] {
    if (coders.blocks != nullptr) return decompress_ptz_shared(job, input, output, coders, says_all);
    Lz4Decompressor decompressor(job, input, output, coders);
    auto done = decompressor.run();
    says_all = decompressor.says_all();
    return done;
  };
  auto done = run();
  if (done || job.from_first(uint64_t{says_all}) != 0) return done;
  return tl::unexpected(explained(job, input, coders, done.error()));
}

}  // namespace ptxkit::pack
