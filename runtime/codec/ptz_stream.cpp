#include "runtime/codec/ptz_stream.hpp"

#include <algorithm>

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

// What a block is stored as, once `stored` is its coded form.
void finish_encoding(Job& job) {
  job.block = {static_cast<std::uint32_t>(job.raw.size()), static_cast<std::uint32_t>(job.stored.size()),
               job.stored.empty(), format::ptz_checksum(job.raw)};
  if (job.block.is_raw) {
    job.block.stored_bytes = job.block.raw_bytes;
    job.stored = job.raw;
  }
}

void begin_decoding(Job& job) {
  job.raw.resize(job.block.raw_bytes);
  if (job.block.is_raw) job.raw = job.stored;
}
void finish_decoding(Job& job, bool good) {
  if (!good) {
    job.error = "the content is damaged";
  } else if (format::ptz_checksum(job.raw) != job.block.checksum) {
    job.error = "checksum mismatch";
  }
}
void decode(Job& job, const PtzHeader& header) {
  begin_decoding(job);
  finish_decoding(job, job.block.is_raw || decode_block(header.codec, job.stored, job.raw));
}

std::size_t batch_blocks(const PtzHeader& header, const Executor& executor, BlockKernels* kernels) {
  const std::size_t for_threads = kBlocksPerThread * executor.thread_count();
  if (kernels == nullptr) return for_threads;
  return std::max(for_threads, kernels->batch_blocks(header.codec, std::size_t{1} << header.block_bits));
}

Result<void> encode_all(std::span<Job> jobs, const PtzHeader& header, Executor& executor, BlockKernels* kernels) {
  if (kernels != nullptr) {
    std::vector<BlockToEncode> blocks;
    for (const Job& job : jobs) blocks.push_back({job.raw});
    if (auto done = kernels->encode(header.codec, blocks); !done) return done;
    for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].stored = std::move(blocks[i].coded);
  }
  executor.for_each(jobs.size(), [&](std::size_t i, unsigned) {
    if (kernels == nullptr) jobs[i].stored = encode_block(header.codec, jobs[i].raw);
    finish_encoding(jobs[i]);
  });
  return {};
}

Result<void> decode_all(std::span<Job> jobs, const PtzHeader& header, Executor& executor, BlockKernels* kernels) {
  if (kernels == nullptr) {
    executor.for_each(jobs.size(), [&](std::size_t i, unsigned) { decode(jobs[i], header); });
    return {};
  }
  std::vector<BlockToDecode> blocks;
  std::vector<std::size_t> owners;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    begin_decoding(jobs[i]);
    if (jobs[i].block.is_raw) continue;
    blocks.push_back({jobs[i].stored, jobs[i].raw});
    owners.push_back(i);
  }
  if (auto done = kernels->decode(header.codec, blocks); !done) return done;
  std::vector<char> good(jobs.size(), 1);
  for (std::size_t i = 0; i < blocks.size(); ++i) good[owners[i]] = blocks[i].good;
  executor.for_each(jobs.size(), [&](std::size_t i, unsigned) { finish_decoding(jobs[i], good[i] != 0); });
  return {};
}

}  // namespace

Result<StreamTotals> compress_ptz(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                  const PtzHeader& header, BlockKernels* kernels, const Progress& progress) {
  format::PtzWriter writer(sink, header);
  StreamTotals totals;
  totals.frame_count = 1;
  if (auto done = writer.begin(); !done) return tl::unexpected(done.error());
  std::vector<Job> jobs(batch_blocks(header, executor, kernels));
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
    if (auto done = encode_all(std::span(jobs).first(count), header, executor, kernels); !done) {
      return tl::unexpected(done.error());
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (auto done = writer.write(jobs[i].block, jobs[i].stored); !done) return tl::unexpected(done.error());
      totals.raw_bytes += jobs[i].raw.size();
      ++totals.block_count;
    }
    if (progress) progress(totals.raw_bytes, writer.written_bytes());
  }
  if (auto done = writer.finish(); !done) return tl::unexpected(done.error());
  totals.stored_bytes = writer.written_bytes();
  return totals;
}

Result<StreamTotals> decompress_ptz(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                    BlockKernels* kernels, const Progress& progress) {
  format::PtzReader reader(source);
  const auto header = reader.begin();
  if (!header) return tl::unexpected(header.error());
  StreamTotals totals;
  totals.frame_count = 1;
  std::vector<Job> jobs(batch_blocks(*header, executor, kernels));
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
    if (auto done = decode_all(std::span(jobs).first(count), *header, executor, kernels); !done) {
      return tl::unexpected(done.error());
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (!jobs[i].error.empty()) {
        return fail("block " + std::to_string(totals.block_count) + ": " + jobs[i].error, source.name());
      }
      if (auto done = sink.write(jobs[i].raw); !done) return tl::unexpected(done.error());
      totals.raw_bytes += jobs[i].raw.size();
      ++totals.block_count;
    }
    if (failed) return tl::unexpected(*failed);
    if (progress) progress(totals.raw_bytes, reader.read_bytes());
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
