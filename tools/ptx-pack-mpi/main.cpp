// ptx-pack-mpi: ptx-pack for one large file and all ranks of an MPI job (shared_streams.hpp). Every rank follows the
// same path; what a rank finds wrong all learn (Job::agree), and the first rank says it.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/codecs.hpp"
#include "runtime/codec/format/file_format.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "support/guarded.hpp"
#include "support/plural.hpp"
#include "support/printable.hpp"
#include "support/program.hpp"
#include "support/result.hpp"
#include "support/sandbox.hpp"
#include "tools/ptx-pack-mpi/job.hpp"
#include "tools/ptx-pack-mpi/shared_file.hpp"
#include "tools/ptx-pack-mpi/shared_streams.hpp"
#include "tools/ptx-pack/files.hpp"
#include "tools/ptx-pack/options.hpp"
#include "tools/ptx-pack/output_file.hpp"
#include "tools/ptx-pack/request.hpp"
#include "tools/ptx-pack/run_files.hpp"

namespace ptxkit::pack {
namespace {

constexpr Program kProgram{
    .name = "ptx-pack-mpi",
    .description =
        "Compresses one file to a standard LZ4 frame or a .ptz file, and back, with all ranks of an MPI job:\n"
        "  mpirun ptx-pack-mpi BIG\n"
        "The bytes are those of ptx-pack. Of its options these are refused, since ranks cannot share what\n"
        "they ask for: --auto, -b, -c, --codec zstd, --codec gzip, -r, -BD, --list, --measure-rates, --memory, "
        "--policy mixed, "
        "--range,\n"
        "--sandbox=require, --share-by-rank, --[no-]sparse, --trace, --trial, --verify.",
    .devices = "all",
    .devices_help =
        "the GPUs of a machine, as in 0,1, or all (default); each rank of the machine takes one, by its "
        "local rank"};

// What the command line asks for and ranks cannot share, with the reason; or an empty string.
std::string refusal(const Options& options) {
  const auto is_standard = [](const std::string& name) { return name == "-"; };
  const std::pair<bool, const char*> reasons[] = {
      {options.mode == Mode::list, "--list is refused: use ptx-pack --list"},
      {options.mode == Mode::bench, "-b is refused: use ptx-pack -b"},
      {options.mode == Mode::measure_rates, "--measure-rates is refused: use ptx-pack --measure-rates"},
      {options.format == format::FileFormat::zstd || options.format == format::FileFormat::gzip,
       "--codec zstd and --codec gzip are refused: use ptx-pack"},
      {options.chooses != Chooses::named, "--auto and --trial are refused: name a codec with --codec"},
      {options.share_by_rank, "--share-by-rank is refused: here ranks share each file; use ptx-pack --share-by-rank"},
      {options.recursive, "-r is refused: use ptx-pack --share-by-rank -r, where ranks share files"},
      {std::any_of(options.inputs.begin(), options.inputs.end(), is_standard) || options.output == "-",
       "standard input and output are refused: ranks share files"},
      {options.linked_blocks, "-BD is refused: a linked block needs the one before, so ranks cannot share them"},
      {options.memory_bytes != 0, "--memory is refused: the memory of MPI is not counted; a rank holds some 200 MB"},
      {options.policy == codec::Policy::mixed, "--policy mixed is refused: use more ranks, with cpu or gpu"},
      {options.range.has_value(), "--range is refused: use ptx-pack --range"},
      {options.sandbox == kSandboxRequire, "--sandbox=require is refused: MPI needs sockets"},
      {options.sparse.has_value(), "--[no-]sparse is refused: ranks write files without holes"},
      {options.trace.has_value(), "--trace is refused: use ptx-pack --trace"},
      {options.verify, "--verify is refused: use ptx-pack-mpi -t afterwards"},
  };
  for (const auto& [is_asked, reason] : reasons) {
    if (is_asked) return reason;
  }
  return {};
}

// The first rank parses before the others, which stay silent where it fails.
std::variant<Options, ExitCode> options_of(const Job& job, int argc, char** argv) {
  const auto parse = [&]() -> std::variant<Options, ExitCode> {
    auto parsed = parse_options(argc, argv, kProgram);
    if (const auto* options = std::get_if<Options>(&parsed)) {
      if (const std::string reason = refusal(*options); !reason.empty()) {
        tell(fmt::format("{0}: {1}; see {0} --help\n", kProgram.name, reason));
        return kUsage;
      }
    }
    return parsed;
  };
  constexpr uint64_t kGoOn = 255;
  std::variant<Options, ExitCode> parsed = kUsage;
  if (job.is_first()) parsed = parse();
  const auto* code = std::get_if<ExitCode>(&parsed);
  const uint64_t verdict = job.from_first(code != nullptr ? static_cast<uint64_t>(*code) : kGoOn);
  if (verdict != kGoOn) return static_cast<ExitCode>(verdict);
  // mpirun can give each rank a command line of its own.
  std::string line;
  for (int i = 1; i < argc; ++i) line += std::string(argv[i]) + '\0';
  const bool is_same = job.from_first(line) == line;
  if (auto agreed = job.agree(is_same ? Result<void>() : fail("its command line is not that of rank 0")); !agreed) {
    if (job.is_first()) tell(fmt::format("{}: {}\n", kProgram.name, printable(agreed.error().message())));
    return kUsage;
  }
  return job.is_first() ? parsed : parse_options(argc, argv, kProgram);
}

// The cores that mpirun has bound this rank to; where it has not, an equal part of the machine's.
unsigned threads_of(const Job& job, const Options& options) {
  const auto cores = static_cast<unsigned>(codec::usable_cores().size());
  if (options.thread_count != 0) return options.thread_count;
  const bool is_bound = cores < std::thread::hardware_concurrency();
  return is_bound ? cores : std::max(1u, cores / static_cast<unsigned>(job.local_size()));
}

class SharedPacker {
 public:
  SharedPacker(const Job& job, const Options& options, codec::Executor& executor)
      : job_(job), options_(options), executor_(executor), files_(options.inputs) {}

  Result<void> run(const std::string& path) {
    const bool writes = options_.mode != Mode::test;
    const Result<std::string> output_name =
        writes ? output_path(options_, path, options_.format) : std::string("no errors");
    if (!output_name) return tl::unexpected(output_name.error());
    auto input = InputFile::open(path);
    if (auto agreed = job_.agree(input ? check(*input) : tl::unexpected(input.error())); !agreed) return agreed;
    const uint64_t size_bytes = job_.from_first(*input->size_bytes());
    Result<void> same;
    if (size_bytes != *input->size_bytes()) {
      same = fail(fmt::format("expected {} bytes, as rank 0 sees them, found {}", size_bytes, *input->size_bytes()),
                  path, "every rank must see the same file");
    }
    if (auto agreed = job_.agree(same); !agreed) return agreed;
    const format::DescriptorFile file(input->descriptor(), 0, size_bytes, path);
    is_ptz_ = options_.codec.has_value();
    if (options_.mode != Mode::compress) {
      uint8_t first[16] = {};
      const size_t known = std::min<uint64_t>(size_bytes, sizeof first);
      if (auto agreed = job_.agree(file.read_at(0, format::MutableBytes(first).first(known))); !agreed) return agreed;
      const format::FileFormat found = format_of_input(format::Bytes(first).first(known), path);
      if (found != format::FileFormat::lz4 && found != format::FileFormat::ptz)
        return fail(fmt::format("{} is refused: ranks cannot share it", row_of(found).name), path, "use ptx-pack");
      is_ptz_ = is_ptz_ || found == format::FileFormat::ptz;
    }
    std::unique_ptr<codec::Backend> lz4;
    std::unique_ptr<codec::BlockCoder> blocks;
    if (auto selected = job_.agree(guarded([&] { return select(path, lz4, blocks); })); !selected) return selected;
    const Coders coders{executor_, lz4.get(), blocks.get(), {.memory = nullptr, .prefetch = options_.prefetch}};
    if (!writes) return report(path, *output_name, decompress_shared(job_, file, nullptr, coders), coders);
    if (auto agreed = job_.agree(job_.is_first() ? files_.check(*output_name, path) : Result<void>()); !agreed)
      return agreed;
    auto output = SharedFile::create(job_, *output_name, *input, options_.force);
    if (!output) return tl::unexpected(output.error());
    const auto totals = options_.mode == Mode::compress ? compress_shared(job_, file, *output, coders, compression())
                                                        : decompress_shared(job_, file, &*output, coders);
    if (!totals) return tl::unexpected(totals.error());
    const bool removes = options_.remove_source;
    if (auto closed = output->close(removes); !closed) return closed;
    if (auto unchanged = job_.agree(input->check_size(size_bytes)); !unchanged) return unchanged;
    if (auto committed = output->commit(*input, removes); !committed) return committed;
    if (job_.is_first()) files_.add_written(*output_name);
    return report(path, *output_name, totals, coders);
  }

  // Messages of the backends, the same ones of several ranks once. Collective.
  void report_notices() {
    std::vector<std::string> said;
    for (const std::string& of_rank : job_.gather(notices_)) {
      for (size_t at = 0; at < of_rank.size();) {
        const size_t end = of_rank.find('\n', at);
        std::string line = of_rank.substr(at, end - at);
        at = end + 1;
        if (std::find(said.begin(), said.end(), line) != said.end()) continue;
        tell(fmt::format("{}: {}\n", kProgram.name, line));
        said.push_back(std::move(line));
      }
    }
    notices_.clear();
  }

 private:
  static Result<void> check(const InputFile& input) {
    if (input.size_bytes()) return {};
    return fail("expected a file whose size is known, found a device, a pipe or a file of /proc", input.name(),
                "use ptx-pack");
  }

  // One encoder for all ranks, so that the bytes do not depend on which of them have a GPU.
  codec::Encoder encoder() const {
    const bool is_on_gpu =
        options_.backend == "cuda" || options_.backend == "emulator" || options_.policy == codec::Policy::gpu;
    return encoder_asked_for(options_).value_or(is_on_gpu ? codec::Encoder::reproducible : codec::Encoder::fast);
  }

  CompressJob compression() const {
    CompressJob job;
    job.header = frame_header(options_);
    job.encoder = encoder();
    job.has_content_size = options_.content_size;
    if (options_.fast) job.search = codec::MatchSearch::tables;
    if (options_.codec) job.ptz = {*options_.codec, format::row_of(*options_.codec).block_bits};
    return job;
  }

  Result<void> select(const std::string& path, std::unique_ptr<codec::Backend>& lz4,
                      std::unique_ptr<codec::BlockCoder>& blocks) {
    codec::BackendRequest request = request_of(options_, {path});
    if (request.raw_bytes) *request.raw_bytes /= static_cast<uint64_t>(job_.size());
    request.only_device = static_cast<size_t>(job_.local_rank());
    request.notice = [this](const std::string& message, bool matters) {
      if (options_.verbosity >= (matters ? 1 : 2)) notices_ += printable(message) + '\n';
    };
    // No GPU has the fast encoder.
    const bool is_fast = options_.mode == Mode::compress && encoder() == codec::Encoder::fast;
    if (!is_ptz_ && request.name == "auto" && is_fast) request.policy = codec::Policy::cpu;
    if (is_ptz_) {
      auto selected = codec::select_block_coder(request, executor_);
      if (!selected) return tl::unexpected(selected.error());
      blocks = std::move(*selected);
    } else {
      auto selected = codec::select_backend(request, executor_);
      if (!selected) return tl::unexpected(selected.error());
      lz4 = std::move(*selected);
    }
    return {};
  }

  Result<void> report(const std::string& from, const std::string& to, const Result<SharedTotals>& totals,
                      const Coders& coders) const {
    if (!totals) return tl::unexpected(totals.error());
    if (!options_.verbose()) return {};
    const bool is_compression = options_.mode == Mode::compress;
    const uint64_t from_bytes = is_compression ? totals->raw_bytes : totals->stored_bytes;
    const uint64_t to_bytes = is_compression ? totals->stored_bytes : totals->raw_bytes;
    if (job_.is_first()) {
      tell(fmt::format("{} -> {}: {} -> {} bytes, ratio {:.3f}; {} on {}\n", printable(from), printable(to), from_bytes,
                       to_bytes, static_cast<double>(totals->raw_bytes) / static_cast<double>(totals->stored_bytes),
                       plural(totals->block_count, "block"), plural(job_.size(), "rank")));
    }
    if (options_.verbosity < 3) return {};
    const std::string by = coders.blocks != nullptr ? coders.blocks->description() : coders.lz4->description();
    const auto descriptions = job_.gather(job_.host() + ", " + by);
    for (size_t rank = 0; rank < descriptions.size(); ++rank)
      tell(fmt::format("  rank {} on {}\n", rank, printable(descriptions[rank])));
    return {};
  }

  const Job& job_;
  const Options& options_;
  codec::Executor& executor_;
  RunFiles files_;  // of rank 0
  bool is_ptz_ = false;
  std::string notices_;  // a line each
};

int run_ranks(const Job& job, int argc, char** argv) {
  const auto parsed = options_of(job, argc, argv);
  if (const auto* code = std::get_if<ExitCode>(&parsed)) return *code;
  const Options& options = std::get<Options>(parsed);
  install_interrupt_cleanup();
  // A rank whose mpirun is gone has nothing to do: it ends as by SIGTERM, and removes what is unfinished.
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  codec::Executor executor(threads_of(job, options));
  SharedPacker packer(job, options, executor);
  int exit_code = kOk;
  for (const std::string& path : options.inputs) {
    const auto done = packer.run(path);
    packer.report_notices();
    if (done) continue;
    exit_code = kFailed;
    if (job.is_first() && options.verbosity >= 0)
      tell(fmt::format("{}: {}\n", kProgram.name, printable(done.error().message())));
  }
  return exit_code;
}

int run(int argc, char** argv) {
  Job job(argc, argv);
  try {
    return run_ranks(job, argc, argv);
  } catch (...) {
    // The other ranks wait for this one; mpirun ends them, and each removes what is unfinished.
    tell(fmt::format("{}: rank {} on {}: {}\n", kProgram.name, job.rank(), job.host(), error_of_exception().message()));
    MPI_Abort(MPI_COMM_WORLD, kFailed);
    throw;
  }
}

}  // namespace
}  // namespace ptxkit::pack

int main(int argc, char** argv) {
  return ptxkit::run_program("ptx-pack-mpi", ptxkit::pack::kFailed, ptxkit::pack::run, argc, argv);
}
