#include "runtime/codec/stream/ptz_stream.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/cpu/cpu_blocks.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/stream/batch_plan.hpp"
#include "runtime/codec/stream/pipeline.hpp"
#include "runtime/codec/threads/ledger.hpp"

namespace ptxkit::codec {
namespace {

using format::PtzBlock;
using format::PtzHeader;
using ByteVector = std::vector<uint8_t>;

constexpr uint64_t kTableShare = 16;  // of the budget

// A block and its two forms.
struct Job {
  PtzBlock block;
  ByteVector raw, stored;
  Error error = {};  // `what` is empty without one
};

// Completes the block's header after `stored` has received its coded form; an empty `stored` means that the raw bytes
// are stored.
void finish_encoding(Job& job) {
  job.block = {static_cast<uint32_t>(job.raw.size()), static_cast<uint32_t>(job.stored.size()), job.stored.empty(),
               format::ptz_checksum(job.raw)};
  if (job.block.is_raw) job.block.stored_bytes = job.block.raw_bytes;
}

void begin_decoding(Job& job) {
  job.raw.resize(job.block.raw_bytes);
  if (job.block.is_raw) std::copy(job.stored.begin(), job.stored.end(), job.raw.begin());
}
void finish_decoding(Job& job, bool good) {
  if (!good) {
    job.error.what = "the content is damaged";
  } else if (format::ptz_checksum(job.raw) != job.block.checksum) {
    job.error = {"checksum mismatch", {}, {}, ErrorKind::bad_checksum};
  }
}

tl::unexpected<Error> failed_block(const Job& job, uint64_t index, const std::string& name) {
  Error error = job.error;
  error.what = fmt::format("block {}: {}", index, error.what);
  error.where = name;
  return tl::unexpected<Error>(std::move(error));
}

// Blocks that go through the pipeline together.
struct Batch {
  std::vector<Job> jobs;  // the first `count` hold a block
  size_t count = 0;
  uint64_t read_bytes = 0;  // read from the container, this batch included
  std::span<Job> filled() { return std::span(jobs).first(count); }
};

struct PtzPlan {
  size_t block_count = 0;  // blocks in a batch
  PipelineLimits limits;
  uint64_t table_bytes = 0;
};

// Each block takes its raw and stored form in every batch, and `coding_bytes` while it is coded in host memory.
Result<PtzPlan> plan(const PtzHeader& header, BlockCoder& coder, const StreamLimits& limits, scheduler::Ledger& memory,
                     uint64_t coding_bytes) {
  const uint64_t block_bytes = uint64_t{1} << header.block_bits, in_host_memory = coder.blocks_in_host_memory();
  const bool is_bounded = memory.budget_bytes() != scheduler::Ledger::kUnlimited;
  const uint64_t table_bytes = is_bounded ? memory.budget_bytes() / kTableShare : 0;
  const auto planned = plan_coded_batches({.preferred_count = coder.batch_blocks(header.coding, block_bytes),
                                           .block_bytes = block_bytes,
                                           .each_bytes = 2 * block_bytes + sizeof(Job),
                                           .coding_bytes = in_host_memory == 0 ? 0 : coding_bytes,
                                           .coded_at_a_time = in_host_memory,
                                           .fixed_bytes = table_bytes},
                                          memory, limits.prefetch);
  if (!planned) return tl::unexpected(planned.error());
  return PtzPlan{planned->block_count,
                 {memory, planned->batch_bytes, planned->depth, limits.stop, planned->fixed_bytes, limits.trace},
                 is_bounded ? table_bytes : scheduler::Ledger::kUnlimited};
}

Result<void> encode_all(std::span<Job> jobs, const PtzHeader& header, Executor& executor, BlockCoder& coder,
                        MatchSearch search) {
  std::vector<BlockToEncode> blocks;
  blocks.reserve(jobs.size());
  for (const Job& job : jobs) blocks.push_back({job.raw});
  if (auto done = coder.encode(header.coding, blocks, search); !done) return done;
  executor.for_each(jobs.size(), [&](size_t i, unsigned) {
    jobs[i].stored = std::move(blocks[i].coded);
    finish_encoding(jobs[i]);
  });
  return {};
}

Result<void> decode_all(std::span<Job> jobs, const PtzHeader& header, Executor& executor, BlockCoder& coder) {
  std::vector<BlockToDecode> blocks;
  std::vector<size_t> owners;
  for (size_t i = 0; i < jobs.size(); ++i) {
    begin_decoding(jobs[i]);
    if (jobs[i].block.is_raw) continue;
    blocks.push_back({jobs[i].stored, jobs[i].raw});
    owners.push_back(i);
  }
  if (auto done = coder.decode(header.coding, blocks); !done) return done;
  std::vector<char> good(jobs.size(), 1);
  for (size_t i = 0; i < blocks.size(); ++i) good[owners[i]] = blocks[i].good;
  executor.for_each(jobs.size(), [&](size_t i, unsigned) { finish_decoding(jobs[i], good[i] != 0); });
  return {};
}

}  // namespace

Result<StreamTotals> compress_ptz(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                  const PtzHeader& header, const PtzOptions& options) {
  const size_t block_bytes = size_t{1} << header.block_bits;
  scheduler::Ledger unlimited("memory");
  scheduler::Ledger& memory = options.limits.memory != nullptr ? *options.limits.memory : unlimited;
  CpuBlocks on_executor(executor);
  BlockCoder& coder = options.coder != nullptr ? *options.coder : on_executor;
  const auto planned = plan(header, coder, options.limits, memory, encoding_bytes(header.coding, block_bytes));
  if (!planned) return tl::unexpected(planned.error());
  format::PtzWriter writer(sink, header, planned->table_bytes);
  if (auto done = writer.begin(); !done) return tl::unexpected(done.error());
  StreamTotals totals;
  totals.frame_count = 1;

  bool has_ended = false;
  const auto read = [&](Batch& batch) -> Result<bool> {
    batch.jobs.resize(planned->block_count);
    for (batch.count = 0; !has_ended && batch.count < batch.jobs.size();) {
      ByteVector& raw = batch.jobs[batch.count].raw;
      raw.resize(block_bytes);
      const auto got = source.read(raw);
      if (!got) return tl::unexpected(got.error());
      has_ended = *got < block_bytes;
      raw.resize(*got);
      if (*got != 0) ++batch.count;
    }
    return batch.count != 0;
  };
  const auto work = [&](Batch& batch) {
    return finished_batch(encode_all(batch.filled(), header, executor, coder, options.search));
  };
  const auto write = [&](Batch& batch) -> Result<void> {
    for (const Job& job : batch.filled()) {
      if (auto done = writer.write(job.block, job.block.is_raw ? job.raw : job.stored); !done) return done;
      totals.raw_bytes += job.raw.size();
      ++totals.block_count;
    }
    if (options.progress) options.progress(totals.raw_bytes, writer.written_bytes());
    return {};
  };
  if (auto done = run_pipeline<Batch>(planned->limits, read, work, write); !done) return tl::unexpected(done.error());
  if (auto done = writer.finish(); !done) return tl::unexpected(done.error());
  totals.stored_bytes = writer.written_bytes();
  return totals;
}

Result<StreamTotals> decompress_ptz(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                    const PtzOptions& options) {
  format::PtzReader reader(source);
  const auto header = reader.begin();
  if (!header) return tl::unexpected(header.error());
  const size_t block_bytes = size_t{1} << header->block_bits;
  scheduler::Ledger unlimited("memory");
  scheduler::Ledger& memory = options.limits.memory != nullptr ? *options.limits.memory : unlimited;
  CpuBlocks on_executor(executor);
  BlockCoder& coder = options.coder != nullptr ? *options.coder : on_executor;
  const auto planned = plan(*header, coder, options.limits, memory, decoding_bytes(header->coding, block_bytes));
  if (!planned) return tl::unexpected(planned.error());
  StreamTotals totals;
  totals.frame_count = 1;

  bool has_ended = false;
  const auto read = [&](Batch& batch) -> Result<bool> {
    batch.jobs.resize(planned->block_count);
    for (batch.count = 0; !has_ended && batch.count < batch.jobs.size();) {
      Job& job = batch.jobs[batch.count];
      job.error = {};
      job.stored.reserve(block_bytes);
      const auto block = reader.next(job.stored);
      // Blocks read before the error are still decoded and written.
      if (!block) return tl::unexpected(block.error());
      has_ended = !block->has_value();
      if (!has_ended) batch.jobs[batch.count++].block = **block;
    }
    batch.read_bytes = reader.read_bytes();
    return batch.count != 0;
  };
  const auto work = [&](Batch& batch) { return finished_batch(decode_all(batch.filled(), *header, executor, coder)); };
  const auto write = [&](Batch& batch) -> Result<void> {
    for (const Job& job : batch.filled()) {
      if (!job.error.what.empty()) return failed_block(job, totals.block_count, source.name());
      if (auto done = sink.write(job.raw); !done) return done;
      totals.raw_bytes += job.raw.size();
      ++totals.block_count;
    }
    if (options.progress) options.progress(totals.raw_bytes, batch.read_bytes);
    return {};
  };
  if (auto done = run_pipeline<Batch>(planned->limits, read, work, write); !done) return tl::unexpected(done.error());
  totals.stored_bytes = reader.read_bytes();
  return totals;
}

Result<ByteVector> read_ptz_block(const format::PtzArchive& archive, size_t index) {
  Executor alone(1);
  CpuBlocks coder(alone);
  auto read = read_ptz_blocks(archive, {&index, 1}, alone, coder);
  if (!read) return tl::unexpected(read.error());
  return std::move(read->front());
}

Result<std::vector<Result<ByteVector>>> read_ptz_blocks(const format::PtzArchive& archive,
                                                        std::span<const size_t> indices, Executor& executor,
                                                        BlockCoder& coder) {
  std::vector<Result<ByteVector>> all(indices.size());
  std::vector<Job> jobs(indices.size());
  executor.for_each(indices.size(), [&](size_t i, unsigned) {
    jobs[i].block = archive.block(indices[i]);
    all[i] = archive.stored(indices[i]);
    if (all[i]) {
      jobs[i].stored = std::move(*all[i]);
    } else {
      jobs[i].block = {0, 0, true, 0};  // nothing to decode
    }
  });
  if (auto done = decode_all(jobs, archive.header(), executor, coder); !done) return tl::unexpected(done.error());
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (!all[i]) continue;
    if (jobs[i].error.what.empty()) {
      all[i] = std::move(jobs[i].raw);
    } else {
      all[i] = failed_block(jobs[i], indices[i], archive.name());
    }
  }
  return all;
}

}  // namespace ptxkit::codec
