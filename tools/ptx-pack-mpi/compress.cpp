#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
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

Part part_of(const Job& job, uint64_t count) {
  const auto rank = static_cast<uint64_t>(job.rank()), size = static_cast<uint64_t>(job.size());
  return {count * rank / size, count * (rank + 1) / size};
}

namespace {

using ByteVector = std::vector<uint8_t>;

// The blocks of a part as they stand in the file.
struct CodedPart {
  ByteVector file;  // a file of this part alone, of which the blocks are [begin, end)
  size_t begin = 0, end = 0;
  std::vector<format::PtzBlock> entries;  // of .ptz

  format::Bytes blocks() const { return format::Bytes(file).subspan(begin, end - begin); }
};

class SharedCompressor {
 public:
  SharedCompressor(const Job& job, const format::DescriptorFile& input, SharedFile& output, const Coders& coders,
                   const CompressJob& what)
      : job_(job),
        input_(input),
        output_(output),
        coders_(coders),
        what_(what),
        block_bytes_(is_ptz() ? uint64_t{1} << what.ptz.block_bits : what.header.block_bytes()),
        table_(table_sink_, what.ptz) {}

  Result<SharedTotals> run() {
    if (auto begun = job_.agree(write_begin()); !begun) return tl::unexpected(begun.error());
    // Before hash_, whose thread reads them.
    ByteVector raw[2];
    HashChain hash(job_);
    const uint64_t blocks_of_rank = std::max<uint64_t>(1, kRankBytes / block_bytes_);
    const uint64_t round_bytes = blocks_of_rank * block_bytes_ * static_cast<uint64_t>(job_.size());
    for (uint64_t begin = 0; begin < input_.size_bytes(); begin += round_bytes) {
      const uint64_t bytes = std::min(round_bytes, input_.size_bytes() - begin);
      auto coded = guarded([&] { return code(begin, bytes, raw[0]); });
      auto agreed = job_.agree(coded ? Result<void>() : tl::unexpected(coded.error()));
      if (!agreed) return tl::unexpected(agreed.error());
      if (!is_ptz() && what_.header.content_checksum) hash.update(raw[0]);
      if (auto placed = place(*coded); !placed) return tl::unexpected(placed.error());
      std::swap(raw[0], raw[1]);
    }
    if (auto ended = job_.agree(write_end(hash)); !ended) return tl::unexpected(ended.error());
    return SharedTotals{input_.size_bytes(), at_, (input_.size_bytes() + block_bytes_ - 1) / block_bytes_};
  }

 private:
  bool is_ptz() const { return coders_.blocks != nullptr; }

  // What precedes the blocks.
  Result<void> write_begin() {
    ByteVector bytes;
    if (is_ptz()) {
      if (auto begun = table_.begin(); !begun) return begun;
      bytes = table_sink_.take();
    } else {
      format::FrameHeader header = what_.header;
      if (what_.has_content_size) header.content_bytes = input_.size_bytes();
      format::append_frame_header(header, bytes);
    }
    at_ = bytes.size();
    return job_.is_first() ? output_.write_at(0, bytes) : Result<void>();
  }

  // This rank's blocks of a round of `bytes` raw bytes. They stay in `raw`.
  Result<CodedPart> code(uint64_t begin, uint64_t bytes, ByteVector& raw) {
    const Part part = part_of(job_, (bytes + block_bytes_ - 1) / block_bytes_);
    const uint64_t from = std::min(bytes, part.begin * block_bytes_), to = std::min(bytes, part.end * block_bytes_);
    raw.resize(to - from);
    if (raw.empty()) return CodedPart{};
    if (auto read = input_.read_at(begin + from, raw); !read) return tl::unexpected(read.error());
    format::MemorySource source(raw, input_.name());
    format::MemorySink sink;
    return is_ptz() ? code_ptz(source, sink) : code_lz4(source, sink);
  }

  Result<CodedPart> code_lz4(format::MemorySource& source, format::MemorySink& sink) const {
    codec::CompressOptions options{.header = what_.header, .encoder = what_.encoder, .progress = {}};
    options.header.content_checksum = false;
    options.limits = coders_.limits;
    auto done = codec::compress_stream(source, sink, *coders_.lz4, options);
    if (!done) return tl::unexpected(done.error());
    ByteVector header, end;
    format::append_frame_header(options.header, header);
    format::append_frame_end(options.header, 0, end);
    CodedPart part{sink.take(), header.size(), 0, {}};
    part.end = part.file.size() - end.size();
    return part;
  }

  Result<CodedPart> code_ptz(format::MemorySource& source, format::MemorySink& sink) const {
    const codec::PtzOptions options{
        .coder = coders_.blocks, .search = what_.search, .progress = {}, .limits = coders_.limits};
    auto done = codec::compress_ptz(source, sink, coders_.executor, what_.ptz, options);
    if (!done) return tl::unexpected(done.error());
    CodedPart part{sink.take(), format::kPtzHeaderBytes, 0, {}};
    const format::MemoryFile file(part.file, "the blocks of a rank");
    const auto archive = format::PtzArchive::open(file);
    if (!archive) return tl::unexpected(archive.error());
    for (size_t i = 0; i < archive->block_count(); ++i) part.entries.push_back(archive->block(i));
    part.end = archive->offset(archive->block_count() - 1) + part.entries.back().stored_bytes;
    return part;
  }

  // Writes the blocks of all ranks behind those of the rounds before.
  Result<void> place(const CodedPart& part) {
    const Job::Sums sums = job_.sums(part.blocks().size());
    Result<void> done = output_.write_at(at_ + sums.before, part.blocks());
    at_ += sums.all;
    if (is_ptz()) {
      const auto entries = job_.gather(format::Bytes(reinterpret_cast<const uint8_t*>(part.entries.data()),
                                                     part.entries.size() * sizeof(format::PtzBlock)));
      for (const ByteVector& of_rank : entries) {
        for (size_t i = 0; i + sizeof(format::PtzBlock) <= of_rank.size() && done; i += sizeof(format::PtzBlock)) {
          format::PtzBlock block;
          std::memcpy(&block, of_rank.data() + i, sizeof block);
          done = table_.note(block);
        }
      }
    }
    return job_.agree(done);
  }

  // What follows the blocks.
  Result<void> write_end(HashChain& hash) {
    ByteVector bytes;
    Result<void> done;
    if (!is_ptz()) {
      const uint32_t checksum = what_.header.content_checksum ? hash.value() : 0;
      format::append_frame_end(what_.header, checksum, bytes);
    } else if (job_.is_first()) {
      done = table_.finish();
      bytes = table_sink_.take();
    }
    if (job_.is_first() && done) done = output_.write_at(at_, bytes);
    at_ += job_.from_first(uint64_t{bytes.size()});
    return done;
  }

  const Job& job_;
  const format::DescriptorFile& input_;
  SharedFile& output_;
  const Coders& coders_;
  const CompressJob& what_;
  const uint64_t block_bytes_;
  uint64_t at_ = 0;  // where the next round begins in the output
  // Header and table of a .ptz file; the blocks go past it. The first rank's table is whole.
  format::MemorySink table_sink_;
  format::PtzWriter table_;
};

}  // namespace

Result<SharedTotals> compress_shared(const Job& job, const format::DescriptorFile& input, SharedFile& output,
                                     const Coders& coders, const CompressJob& what) {
  return SharedCompressor(job, input, output, coders, what).run();
}

}  // namespace ptxkit::pack
