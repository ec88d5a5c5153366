#include "runtime/codec/ptz_stream.hpp"

#include "runtime/codec/block_codec.hpp"

namespace ptxkit::codec {
namespace {

using format::PtzBlock;
using format::PtzHeader;
using ByteVector = std::vector<std::uint8_t>;

constexpr std::size_t kBlocksPerThread = 4;

// A block on its way through the machine.
struct Job {
  PtzBlock block;
  ByteVector raw, stored;
  std::string error;
};

void encode(Job& job, const PtzHeader& header) {
  job.stored = encode_block(header.codec, job.raw);
  job.block = {static_cast<std::uint32_t>(job.raw.size()), static_cast<std::uint32_t>(job.stored.size()),
               job.stored.empty(), format::ptz_checksum(job.raw)};
  if (job.block.is_raw) {
    job.block.stored_bytes = job.block.raw_bytes;
    job.stored = job.raw;
  }
}

void decode(Job& job, const PtzHeader& header) {
  job.raw.resize(job.block.raw_bytes);
  if (job.block.is_raw) {
    job.raw = job.stored;
  } else if (!decode_block(header.codec, job.stored, job.raw)) {
    job.error = "the content is damaged";
    return;
  }
  if (format::ptz_checksum(job.raw) != job.block.checksum) job.error = "checksum mismatch";
}

}  // namespace

Result<StreamTotals> compress_ptz(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                  const PtzHeader& header) {
  format::PtzWriter writer(sink, header);
  StreamTotals totals;
  totals.frame_count = 1;
  if (auto done = writer.begin(); !done) return tl::unexpected(done.error());
  std::vector<Job> jobs(kBlocksPerThread * executor.thread_count());
  for (bool more = true; more;) {
    std::size_t count = 0;
    for (; more && count < jobs.size(); ++count) {
      jobs[count].raw.resize(std::size_t{1} << header.block_bits);
      const auto got = source.read(jobs[count].raw);
      if (!got) return tl::unexpected(got.error());
      more = *got == jobs[count].raw.size();
      jobs[count].raw.resize(*got);
      if (*got == 0) break;
    }
    executor.for_each(count, [&](std::size_t i, unsigned) { encode(jobs[i], header); });
    for (std::size_t i = 0; i < count; ++i) {
      if (auto done = writer.write(jobs[i].block, jobs[i].stored); !done) return tl::unexpected(done.error());
      totals.raw_bytes += jobs[i].raw.size();
      ++totals.block_count;
    }
  }
  if (auto done = writer.finish(); !done) return tl::unexpected(done.error());
  totals.stored_bytes = writer.written_bytes();
  return totals;
}

Result<StreamTotals> decompress_ptz(format::ByteSource& source, format::ByteSink& sink, Executor& executor) {
  format::PtzReader reader(source);
  const auto header = reader.begin();
  if (!header) return tl::unexpected(header.error());
  StreamTotals totals;
  totals.frame_count = 1;
  std::vector<Job> jobs(kBlocksPerThread * executor.thread_count());
  // What was read before the input failed is decoded and written all the same.
  for (bool more = true; more;) {
    std::size_t count = 0;
    std::optional<Error> failed;
    while (more && count < jobs.size()) {
      jobs[count].error.clear();
      auto block = reader.next(jobs[count].stored);
      if (!block) failed = block.error();
      more = block && *block;
      if (more) jobs[count++].block = **block;
    }
    executor.for_each(count, [&](std::size_t i, unsigned) { decode(jobs[i], *header); });
    for (std::size_t i = 0; i < count; ++i) {
      if (!jobs[i].error.empty()) {
        return fail("block " + std::to_string(totals.block_count) + ": " + jobs[i].error, source.name());
      }
      if (auto done = sink.write(jobs[i].raw); !done) return tl::unexpected(done.error());
      totals.raw_bytes += jobs[i].raw.size();
      ++totals.block_count;
    }
    if (failed) return tl::unexpected(*failed);
  }
  totals.stored_bytes = reader.read_bytes();
  return totals;
}

Result<ByteVector> read_ptz_block(const format::PtzArchive& archive, std::size_t index, const std::string& name) {
  const auto stored = archive.stored(index);
  Job job;
  job.block = archive.block(index);
  job.stored.assign(stored.begin(), stored.end());
  decode(job, archive.header());
  if (!job.error.empty()) return fail("block " + std::to_string(index) + ": " + job.error, name);
  return std::move(job.raw);
}

}  // namespace ptxkit::codec
