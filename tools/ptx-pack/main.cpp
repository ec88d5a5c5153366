// ptx-pack: `lz4` with backends. One file after another; inside a file everything overlaps
// (runtime/codec/stream/stream.hpp).
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/cpu/deflate_coder.hpp"
#include "runtime/codec/cpu/zstd_coder.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/codecs.hpp"
#include "runtime/codec/format/file_format.hpp"
#include "runtime/codec/format/peeked_source.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/stream/gzip_stream.hpp"
#include "runtime/codec/stream/ptz_stream.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/stream/zstd_stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "runtime/codec/threads/throttle.hpp"
#include "runtime/codec/threads/trace.hpp"
#include "support/guarded.hpp"
#include "support/place.hpp"
#include "support/plural.hpp"
#include "support/printable.hpp"
#include "support/program.hpp"
#include "support/result.hpp"
#include "support/sandbox.hpp"
#include "support/thread.hpp"
#include "tools/ptx-pack/choose.hpp"
#include "tools/ptx-pack/files.hpp"
#include "tools/ptx-pack/jobs.hpp"
#include "tools/ptx-pack/measuring.hpp"
#include "tools/ptx-pack/options.hpp"
#include "tools/ptx-pack/output_file.hpp"
#include "tools/ptx-pack/progress.hpp"
#include "tools/ptx-pack/ptz_range.hpp"
#include "tools/ptx-pack/range_sink.hpp"
#include "tools/ptx-pack/ranks.hpp"
#include "tools/ptx-pack/request.hpp"
#include "tools/ptx-pack/run_files.hpp"
#include "tools/ptx-pack/sparse_sink.hpp"
#include "tools/ptx-pack/time_line.hpp"
#include "tools/ptx-pack/zstd_range.hpp"

namespace ptxkit::pack {
namespace {

using format::FileFormat;

// What the batches of a stream may take: beside a GPU's page-locked memory, half.
uint64_t stream_bytes(const Options& options, bool may_use_device) {
  if (options.memory_bytes == 0) {
    // With a limited address space, batches must fit into the rest of it.
    const auto left = address_space_left();
    return left ? *left / 4 * 3 : scheduler::Ledger::kUnlimited;
  }
  return may_use_device ? data_bytes(options) / 2 : data_bytes(options);
}

class Packer {
 public:
  // `trace` is null if neither a time line nor details are wanted.
  Packer(const Options& options, const codec::BackendRequest& request, codec::Executor& executor,
         scheduler::Trace* trace, RunFiles files)
      : options_(options),
        request_(request),
        executor_(executor),
        trace_(trace),
        files_(std::move(files)),
        encoder_(encoder_asked_for(options)),
        format_(options.format),
        codec_(options.codec) {}

  // Whether the backend that was requested cannot be opened, so that no input can be processed.
  bool is_without_backend() const { return is_without_backend_; }
  RunFiles& files() { return files_; }
  bool is_starting_device() const { return blocks_ && blocks_->is_starting_device(); }

  Result<void> run(const InputName& input) {
    if (trace_ != nullptr) begin_ = trace_->now();
    switch (options_.mode) {
      case Mode::bench:
        return select_for(FileFormat::lz4).and_then([&] {
          return bench_file(input.path, *lz4_, encoder_, frame_header(options_));
        });
      case Mode::test:
        return test(input);
      default:
        return convert(input);
    }
  }

 private:
  Result<void> convert(const InputName& input_name) {
    const std::string& input_path = input_name.path;
    auto input = InputFile::open(input_name);
    if (!input) return tl::unexpected(input.error());
    if (options_.chooses != Chooses::named) {
      if (auto chosen = choose(*input); !chosen) return chosen;
    }
    const auto output = output_path(options_, input_path, format_);
    if (!output) return tl::unexpected(output.error());
    auto file = OutputFile::create(*output, *input, options_.force);
    if (!file) return tl::unexpected(file.error());
    if (options_.share_by_rank && options_.chooses != Chooses::named && file->is_behind_link()) {
      return fail("the output is a link, which with --auto and --trial ranks cannot share", *output,
                  "name a codec with --codec");
    }
    if (file->is_new_file()) {
      if (auto kept = files_.check(*output, input_path); !kept) return kept;
    }
    if (options_.mode == Mode::compress && ::isatty(file->descriptor()) && !options_.force) {
      return fail("expected a file or a pipe to write compressed data to, found a terminal", file->name(),
                  "add -f, or name an output with -o");
    }
    if (options_.remove_source && !file->is_new_file()) {
      return fail("--rm needs an output file, found a device, a pipe or an open descriptor", file->name(),
                  "leave --rm away");
    }
    format::DescriptorSink plain_sink(file->descriptor(), file->name());
    std::optional<SparseSink> sparse_sink;
    if (writes_sparsely(*file)) sparse_sink.emplace(file->descriptor(), file->name());
    format::ByteSink& sink = sparse_sink ? static_cast<format::ByteSink&>(*sparse_sink) : plain_sink;
    const auto finish = [&] { return sparse_sink ? sparse_sink->finish() : Result<void>(); };
    format::DescriptorSource descriptor(input->descriptor(), input->name());
    format::PeekedSource source(descriptor);
    if (auto looked = look_at(source); !looked) return looked;
    if (auto selected = select_for(format_); !selected) return selected;
    if (options_.range) {
      return extract(*input, source, sink).and_then(finish).and_then([&] { return commit(*file, *input); });
    }
    is_doubtful_ = false;
    const auto totals = transform(*input, source, sink);
    if (!totals) return tl::unexpected(totals.error());
    if (auto finished = finish(); !finished) return finished;
    if (options_.mode == Mode::compress && options_.remove_source) {
      if (auto same = input->check_size(totals->raw_bytes); !same) return same;
    }
    if (options_.verify) {
      if (auto checked = verify(*file, totals->raw_bytes); !checked) return checked;
    }
    if (auto committed = commit(*file, *input); !committed) return committed;
    if (options_.verbose()) report(*input, file->name(), *totals);
    // What stands behind the last member may be another one that is damaged, and what is missing another one.
    return options_.remove_source && !is_doubtful_ ? remove_input(*input, *file) : Result<void>();
  }

  Result<void> choose(const InputFile& input) {
    if (!input.size_bytes()) {
      return fail("expected a file to choose a codec for, found a pipe or a device", input.name(),
                  "name one with --codec");
    }
    const format::DescriptorFile file(input.descriptor(), input.begin(), *input.size_bytes(), input.name());
    const auto choice = choose_codec(file, options_);
    if (!choice) return tl::unexpected(choice.error());
    codec_ = choice->codec;
    format_ = codec_ ? FileFormat::ptz : FileFormat::lz4;
    if (options_.verbose()) {
      tell(fmt::format("ptx-pack: {}: {} is chosen: {}\n", printable(input.name()), codec_ ? name_of(*codec_) : "lz4",
                       choice->why));
    }
    return {};
  }

  // As lz4: files get holes where possible, standard output only with --sparse.
  bool writes_sparsely(const OutputFile& file) const {
    const bool is_wanted = options_.sparse.value_or(file.is_new_file());
    return options_.mode == Mode::decompress && is_wanted && SparseSink::fits(file.descriptor());
  }

  Result<void> commit(OutputFile& file, const InputFile& input) {
    if (auto done = file.commit(input, options_.remove_source); !done) return done;
    if (file.is_new_file()) files_.add_written(file.name());
    if (!options_.verbose()) return {};
    std::string all;
    for (const std::string& remark : file.remarks()) all += (all.empty() ? "" : "; ") + remark;
    if (!all.empty()) tell(fmt::format("ptx-pack: {}: {}\n", printable(file.name()), all));
    return {};
  }

  // Writes only the bytes of options_.range: a .ptz file and a seekable .zst file have a table, and a stream is stopped
  // after the range.
  Result<void> extract(const InputFile& input, format::PeekedSource& source, format::ByteSink& sink) {
    if (format_ == FileFormat::ptz && input.size_bytes())
      return extract_from_ptz(input, *options_.range, sink, executor_, *blocks_, *memory_);
    if (format_ == FileFormat::zstd && input.size_bytes()) {
      const auto done = extract_from_zstd(input, *options_.range, sink, executor_, *zstd_, stream_limits());
      if (!done) return tl::unexpected(done.error());
      if (*done) return {};
    }
    RangeSink part(sink, *options_.range);
    const bool may_stop = may_stop_behind_range(format_, source.peeked());
    const auto totals = transform(input, source, part, may_stop ? part.stop_token() : std::stop_token());
    if (part.is_complete() && (totals || may_stop)) return {};
    if (!totals) return tl::unexpected(totals.error());
    if (!part.holds_range()) {
      return fail(fmt::format("the range begins or ends beyond the {} bytes that there are", totals->raw_bytes),
                  input.name());
    }
    return {};
  }

  // Decompresses what was written, on the CPU whatever the backend was, against the checksum of the raw bytes, which
  // .ptz has for each block.
  Result<void> verify(const OutputFile& file, uint64_t raw_bytes) {
    if (!file.is_new_file() || ::lseek(file.descriptor(), 0, SEEK_SET) != 0) {
      return fail("cannot be read back: expected a file", file.name(), "leave --verify away");
    }
    codec::Executor executor(options_.thread_count);
    format::DescriptorSource source(file.descriptor(), file.name());
    format::NullSink sink;
    const codec::StreamLimits limits{.memory = memory_, .prefetch = options_.prefetch, .stop = {}};
    const auto read_back = [&] {
      if (format_ == FileFormat::ptz)
        return codec::decompress_ptz(source, sink, executor, {.progress = {}, .limits = limits});
      if (format_ == FileFormat::zstd) {
        codec::ZstdCoder coder(executor);
        return codec::decompress_zstd(source, sink, executor, coder, {.limits = limits});
      }
      if (format_ == FileFormat::gzip) {
        codec::DeflateCoder coder(executor);
        return codec::decompress_gzip(source, sink, executor, coder, {.limits = limits});
      }
      const auto cpu = codec::make_cpu_backend(executor);
      return codec::decompress_stream(source, sink, *cpu, {.progress = {}, .limits = limits});
    };
    const auto totals = read_back();
    if (!totals) return tl::unexpected(totals.error());
    if (totals->raw_bytes != raw_bytes) {
      return fail(fmt::format("expected {} bytes, the output holds {}", raw_bytes, totals->raw_bytes), file.name());
    }
    return {};
  }

  Result<void> test(const InputName& input_name) {
    auto input = InputFile::open(input_name);
    if (!input) return tl::unexpected(input.error());
    format::NullSink sink;
    format::DescriptorSource descriptor(input->descriptor(), input->name());
    format::PeekedSource source(descriptor);
    if (auto looked = look_at(source); !looked) return looked;
    if (auto selected = select_for(format_); !selected) return selected;
    const auto totals = transform(*input, source, sink);
    if (!totals) return tl::unexpected(totals.error());
    if (options_.verbose()) report(*input, "no errors", *totals);
    return {};
  }

  // Decides which format is read. Without --codec the input's first bytes and its name say it.
  Result<void> look_at(format::PeekedSource& source) {
    if (options_.mode == Mode::compress) return {};
    const auto first = source.first();
    if (!first) return tl::unexpected(first.error());
    format_ = options_.format == FileFormat::lz4 ? format_of_input(*first, source.name()) : options_.format;
    return {};
  }

  // Selects the coders for files of a format and the memory budget of their streams, once for each.
  Result<void> select_for(FileFormat format) {
    auto memory = memory_of_.find(format);
    if (memory == memory_of_.end()) {
      auto selected = select_coders(format);
      is_without_backend_ = !selected;
      if (!selected) return selected;
      const bool may_use_device = format == FileFormat::lz4 ? lz4_->name() == "cuda" : blocks_->may_use_device();
      memory = memory_of_.try_emplace(format, "memory", stream_bytes(options_, may_use_device)).first;
    }
    memory_ = &memory->second;
    return {};
  }
  Result<void> select_coders(FileFormat format) {
    codec::BackendRequest request = request_;
    if (!has_kernels(options_, format)) {
      const std::string_view name = row_of(format).name;
      if (options_.backend != "auto" && options_.backend != "cpu")
        return fail(fmt::format("the backend {} has no {} -3", options_.backend, name), {}, "leave --backend away");
      if (options_.policy == codec::Policy::gpu || options_.policy == codec::Policy::mixed)
        request_.notice(fmt::format("using the CPU: there are no kernels for {} -3", name), true);
    }
    if (request.name == "auto" && !may_use_gpu(options_, format)) request.policy = codec::Policy::cpu;
    if (format == FileFormat::lz4) return select_into(lz4_, request, codec::select_backend);
    if (format == FileFormat::gzip) deflate_.emplace(executor_);
    if (format == FileFormat::zstd) zstd_.emplace(executor_);
    return blocks_ != nullptr ? Result<void>() : select_into(blocks_, request, codec::select_block_coder);
  }
  template <class T, class Select>
  Result<void> select_into(std::unique_ptr<T>& into, const codec::BackendRequest& request, Select select) {
    auto selected = select(request, executor_);
    if (!selected) return tl::unexpected(selected.error());
    into = std::move(*selected);
    return {};
  }

  codec::StreamLimits stream_limits(std::stop_token stop = {}) const {
    return {.memory = memory_, .prefetch = options_.prefetch, .stop = std::move(stop), .trace = trace_};
  }

  Result<codec::StreamTotals> transform(const InputFile& input, format::ByteSource& source, format::ByteSink& sink,
                                        std::stop_token stop = {}) {
    ProgressLine line(options_.verbosity >= 1 && ::isatty(STDERR_FILENO), input.name(), input.size_bytes(),
                      options_.mode == Mode::compress);
    const codec::Progress progress = [&](uint64_t raw, uint64_t stored) { line.update(raw, stored); };
    const codec::StreamLimits limits = stream_limits(std::move(stop));
    if (format_ == FileFormat::zstd) {
      if (options_.mode != Mode::compress)
        return codec::decompress_zstd(source, sink, executor_, *zstd_,
                                      {.frame_coder = blocks_.get(), .progress = progress, .limits = limits});
      return codec::compress_zstd(source, sink, executor_, *blocks_,
                                  {.level = zstd_level(options_),
                                   .content_bytes = options_.content_size ? input.size_bytes() : std::nullopt,
                                   .has_checksum = options_.content_checksum,
                                   .is_seekable = options_.seekable,
                                   .progress = progress,
                                   .limits = limits});
    }
    if (format_ == FileFormat::gzip) {
      const auto doubt = [&](uint64_t offset, const std::string& what) {
        is_doubtful_ = true;
        request_.notice(fmt::format("{}, byte {}: {}{}", input.name(), offset, what,
                                    options_.remove_source ? "; the file is not removed" : ""),
                        true);
      };
      const auto ignore_garbage = [&](uint64_t offset, uint64_t count) {
        doubt(offset, plural(count, "byte") + " behind the last member are ignored");
      };
      const auto note_missing_end = [&](uint64_t offset) {
        doubt(offset, "the empty member that ends BGZF is missing, as if the file had been cut here");
      };
      if (options_.mode != Mode::compress) {
        return codec::decompress_gzip(source, sink, executor_, *deflate_,
                                      {.member_coder = blocks_.get(),
                                       .progress = progress,
                                       .limits = limits,
                                       .ignore_garbage = ignore_garbage,
                                       .note_missing_end = note_missing_end});
      }
      return codec::compress_gzip(
          source, sink, executor_, *blocks_,
          {.level = gzip_level(options_), .content_bytes = input.size_bytes(), .progress = progress, .limits = limits});
    }
    if (format_ == FileFormat::ptz) {
      const codec::PtzOptions options{.coder = blocks_.get(),
                                      .search = options_.fast ? codec::MatchSearch::tables : codec::MatchSearch::chains,
                                      .progress = progress,
                                      .limits = limits};
      if (options_.mode != Mode::compress) return codec::decompress_ptz(source, sink, executor_, options);
      const unsigned block_bits = format::row_of(*codec_).block_bits;
      return codec::compress_ptz(source, sink, executor_, {*codec_, block_bits}, options);
    }
    if (options_.mode != Mode::compress) {
      return codec::decompress_stream(source, sink, *lz4_, {.progress = progress, .limits = limits});
    }
    codec::CompressOptions options{
        .header = frame_header(options_), .encoder = encoder_, .progress = progress, .limits = limits};
    if (options_.content_size) options.header.content_bytes = input.size_bytes();
    return codec::compress_stream(source, sink, *lz4_, options);
  }

  void report(const InputFile& input, const std::string& output_name, const codec::StreamTotals& totals) const {
    const double ratio = static_cast<double>(totals.raw_bytes) / static_cast<double>(totals.stored_bytes);
    const auto [from, to] = options_.mode == Mode::compress ? std::pair(totals.raw_bytes, totals.stored_bytes)
                                                            : std::pair(totals.stored_bytes, totals.raw_bytes);
    tell(fmt::format("{} -> {}: {} -> {} bytes, ratio {:.3f}\n", printable(input.name()), printable(output_name), from,
                     to, ratio));
    if (options_.verbosity < 3) return;
    if (format_ == FileFormat::ptz) {
      tell(fmt::format("  {}; {}\n", plural(totals.block_count, "block"), blocks_->description()));
    } else if (format_ == FileFormat::gzip) {
      tell(fmt::format("  {}; {}\n", plural(totals.frame_count, "member"), totals.by));
    } else {
      const bool has_encoders = options_.mode == Mode::compress && format_ == FileFormat::lz4;
      tell(fmt::format("  {}, {}; {}{}\n", plural(totals.frame_count, "frame"), plural(totals.block_count, "block"),
                       totals.by, has_encoders ? fmt::format("; {} encoder", codec::name_of(totals.encoder)) : ""));
    }
    tell(fmt::format("  at most {} bytes of data in memory\n", memory_->peak_bytes()));
    report_utilisation();
  }

  void report_utilisation() const {
    const double end = trace_->now();
    const scheduler::Utilisation of = scheduler::utilisation(*trace_, begin_, end);
    std::string line = fmt::format("  {:.3f} s; busy:", end - begin_);
    for (const auto& [what, share] : of.rows) line += fmt::format(" {} {:.0f} %;", what, 100 * share);
    tell(fmt::format("{} longest without a {}: {:.3f} s at {:.3f} s\n", printable(line), of.gap_of, of.gap_seconds,
                     of.gap_begin));
  }

  const Options& options_;
  const codec::BackendRequest& request_;
  codec::Executor& executor_;
  scheduler::Trace* trace_;
  RunFiles files_;
  std::optional<codec::Encoder> encoder_;
  // Each is created for the first file that needs it.
  std::unique_ptr<codec::Backend> lz4_;
  std::unique_ptr<codec::BlockCoder> blocks_;
  std::optional<codec::ZstdCoder> zstd_;
  std::optional<codec::DeflateCoder> deflate_;
  std::map<FileFormat, scheduler::Ledger> memory_of_;
  bool is_without_backend_ = false;
  // Of the current file:
  FileFormat format_;
  std::optional<format::PtzCoding> codec_;
  scheduler::Ledger* memory_ = nullptr;
  bool is_doubtful_ = false;  // a gzip file that may not be whole
  double begin_ = 0;          // on the trace's clock
};

// A thread copies several times as fast as it compresses.
constexpr size_t kCoresPerCopyCore = 4;

// For the mixed policy: the cores that compress, and those that copy to and from the GPU.
std::pair<std::vector<unsigned>, std::vector<unsigned>> split_cores() {
  std::vector<unsigned> work = codec::usable_cores();
  const auto copies_at = work.end() - static_cast<ptrdiff_t>(std::max<size_t>(1, work.size() / kCoresPerCopyCore));
  std::vector<unsigned> copies(copies_at, work.end());
  if (copies_at != work.begin()) work.erase(copies_at, work.end());
  return {std::move(work), std::move(copies)};
}

constexpr int kLargeAllocationBytes = 128 << 10;

// What is written beside the outputs: a temporary file in the folder of each. --rm removes from the folders of inputs.
// A folder of -r is allowed with all below it.
SandboxNeeds sandbox_needs(const Options& options, const std::vector<InputName>& inputs) {
  SandboxNeeds needs{.outputs = {}, .follows_links = options.force};
  if (options.trace) needs.outputs.push_back(*options.trace);
  if (options.mode != Mode::compress && options.mode != Mode::decompress) return needs;
  for (const InputName& input : inputs) {
    if (auto output = output_path(options, input.path, options.format); output && (!input.root || options.force))
      needs.outputs.push_back(std::move(*output));
    if (input.root)
      needs.outputs.push_back(input.path.substr(0, input.root->path_bytes));
    else if (options.remove_source)
      needs.outputs.push_back(input.path.find('/') == input.path.npos ? "." : std::string(folder_of(input.path)));
  }
  return needs;
}

// Before the first input is read, and before there are threads, which would stay outside. A GPU's driver has no
// sandbox, so whether one is opened is settled here.
Result<std::string> begin_sandbox(const Options& options, const std::vector<InputName>& inputs,
                                  const codec::GpuWork& work, codec::BackendRequest& request) {
  std::string_view gpu_user;
  if (options.mode != Mode::list) {
    if (options.backend == "cuda")
      gpu_user = "--backend cuda";
    else if (codec::settle_use_of_gpu(request, thread_count(options), work))
      gpu_user = "--backend auto";
  }
  return ptxkit::begin_sandbox(options.sandbox, sandbox_needs(options, inputs), gpu_user);
}

// Directories become the files in them; when decompressing, only those that look compressed.
FoundFiles expand(const Options& options) {
  FoundFiles all;
  const bool reads_frames = options.mode != Mode::compress && options.mode != Mode::bench;
  for (const std::string& path : options.inputs) {
    FoundFiles found = options.recursive ? files_below(path) : FoundFiles{.files = {{path}}, .errors = {}};
    for (InputName& file : found.files) {
      const bool is_compressed = format::format_of_name(file.path).has_value();
      const bool is_unfinished = is_unfinished_name(std::string_view(file.path).substr(file.path.rfind('/') + 1));
      if (!file.root || (is_compressed == reads_frames && !is_unfinished)) all.files.push_back(std::move(file));
    }
    all.errors.insert(all.errors.end(), found.errors.begin(), found.errors.end());
  }
  return all;
}

int run(int argc, char** argv) {
  const auto parsed = parse_options(argc, argv);
  if (const auto* code = std::get_if<ExitCode>(&parsed)) return *code;
  const Options& options = std::get<Options>(parsed);
  install_interrupt_cleanup();
  // Returns large allocations to the system at once. Otherwise glibc raises its threshold, and every thread keeps the
  // memory of its largest block (mallopt(3)).
  if (options.memory_bytes != 0) ::mallopt(M_MMAP_THRESHOLD, kLargeAllocationBytes);
  int exit_code = kOk;
  const auto complain = [&](const Error& error) {
    if (options.verbosity >= 0) tell(fmt::format("ptx-pack: {}\n", printable(error.message())));
    exit_code = kFailed;
  };
  Rank rank;
  if (options.share_by_rank) {
    const auto found = rank_in_mpi_job();
    if (!found) {
      complain(found.error());
      return kUsage;
    }
    rank = *found;
  }
  FoundFiles found = expand(options);
  for (const Error& error : found.errors) complain(error);
  const size_t all_count = found.files.size();
  const std::vector<std::string> all_paths = paths_of(found.files);
  RunFiles run_files(all_paths);
  if (options.trace) {
    if (auto usable = check_time_line(options, all_paths); !usable) {
      complain(usable.error());
      return kUsage;
    }
  }
  const std::vector<InputName> inputs =
      options.share_by_rank ? share_of(rank, options, std::move(found.files)) : std::move(found.files);
  if (options.share_by_rank && options.verbose()) {
    tell(fmt::format("ptx-pack: rank {} of {}: {} of {} inputs\n", rank.index, rank.count, inputs.size(), all_count));
  }
  std::optional<TimeLineFile> time_line;
  if (options.trace) {
    auto opened = TimeLineFile::open(options);
    if (!opened) {
      complain(opened.error());
      return exit_code;
    }
    time_line.emplace(std::move(*opened));
  }
  const std::vector<std::string> paths = paths_of(inputs);
  const codec::GpuWork work = gpu_work(options, paths);
  codec::BackendRequest request = request_of(options, paths);
  request.notice = [&](const std::string& message, bool matters) {
    if (options.verbosity >= (matters ? 1 : 2)) tell(fmt::format("ptx-pack: {}\n", printable(message)));
  };
  if (options.mode == Mode::measure_rates) {
    if (auto done = measure_rates(options.thread_count, request); !done) complain(done.error());
    return exit_code;
  }
  if (options.mode != Mode::list && work.may_be_lz4 && codec::lacks_rates(request, thread_count(options))) {
    request.notice(fmt::format("using the CPU: {}", codec::kRatesAreUnknown), false);
  }
  if (const auto missing = begin_sandbox(options, inputs, work, request); !missing) {
    complain(missing.error());
    return kFailed;
  } else if (!missing->empty() && options.verbosity >= 3) {
    tell(fmt::format("ptx-pack: {}\n", *missing));
  }
  if (options.mode == Mode::list) {
    bool heading = true;
    for (const InputName& input : inputs) {
      if (auto done = list_file(input, std::exchange(heading, false), options.verbose()); !done) complain(done.error());
    }
    if (auto done = flush_standard_output(); !done) complain(done.error());
    return exit_code;
  }
  const bool is_mixed = options.policy == codec::Policy::mixed;
  const auto [work_cores, copy_cores] = split_cores();
  scheduler::Throttle throttle;
  std::optional<scheduler::Trace> trace;
  if (options.trace || options.verbosity >= 3) trace.emplace();
  codec::Placement placement{.trace = trace ? &*trace : nullptr};
  if (is_mixed) {
    placement.cores = work_cores;
    placement.throttle = &throttle;
  }
  codec::Executor executor(options.thread_count, placement);
  if (executor.thread_count() < executor.wanted_count() && options.verbose()) {
    tell(fmt::format("ptx-pack: using {} of {}: the system has no more to give\n", executor.thread_count(),
                     plural(executor.wanted_count(), "thread")));
  }
  std::optional<codec::Executor> copies;
  if (is_mixed) {
    copies.emplace(0, codec::Placement{.cores = copy_cores, .trace = placement.trace, .name = "copies"});
    request.copy_executor = &*copies;
    request.throttle = &throttle;
  }
  request.limits.trace = placement.trace;
  Packer packer(options, request, executor, placement.trace, std::move(run_files));
  for (const InputName& input : inputs) {
    if (auto done = guarded([&] { return packer.run(input); }); !done) complain(done.error());
    if (packer.is_without_backend()) break;
  }
  if (options.mode == Mode::bench) {
    if (auto done = flush_standard_output(); !done) complain(done.error());
  }
  if (time_line) {
    if (auto done = time_line->write(trace->json(), packer.files()); !done) complain(done.error());
    time_line.reset();
  }
  // Everything is written. The destructors would wait for a device that is still being started.
  if (packer.is_starting_device()) ::_exit(exit_code);
  return exit_code;
}

}  // namespace
}  // namespace ptxkit::pack

int main(int argc, char** argv) {
  return ptxkit::run_program("ptx-pack", ptxkit::pack::kFailed, ptxkit::pack::run, argc, argv);
}
