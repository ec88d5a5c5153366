// What the command line says, checked as far as it can be without touching a file.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/codecs.hpp"
#include "runtime/codec/format/file_format.hpp"
#include "runtime/codec/select_backend.hpp"
#include "support/result.hpp"
#include "support/sandbox.hpp"

namespace ptxkit::pack {

enum class Mode { compress, decompress, test, list, bench, measure_rates };

// Pinned: scripts rely on these numbers. docs/ptx-pack.md lists them.
enum ExitCode : int { kOk = 0, kFailed = 1, kUsage = 2 };

// What decides about the codec: --codec; --auto; --trial=ratio; --trial=speed.
enum class Chooses { named, by_statistics, by_ratio, by_speed };

// What the program takes before any data, threads included; the rest of --memory is for data.
constexpr uint64_t kProgramBytes = 14u << 20;
constexpr uint64_t kLeastMemoryBytes = 24u << 20;

// A range [begin, end) of raw bytes.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = std::numeric_limits<uint64_t>::max();  // this value: to the end
};

struct Options {
  Mode mode = Mode::compress;
  std::vector<std::string> inputs;    // "-" is standard input
  std::optional<std::string> output;  // "-" is standard output; absent: beside each input
  bool force = false;
  bool remove_source = false;
  bool recursive = false;
  bool share_by_rank = false;      // with the other processes of an MPI job
  std::optional<bool> sparse;      // sparse decompressed outputs; empty: files yes, standard output no
  bool verify = false;             // read each output back before it is put in place
  std::optional<ByteRange> range;  // of decompression
  int block_size_id = 4;
  bool linked_blocks = false;
  bool block_checksum = false;
  bool content_size = true;  // recorded when the input's size is known
  bool content_checksum = true;
  unsigned thread_count = 0;  // 0: all cores
  unsigned prefetch = 2;
  uint64_t memory_bytes = 0;  // of the whole process; 0: as the backend prefers
  int verbosity = 1;          // -1 nothing, 0 errors, 1 warnings, 2 what is done, 3 details
  bool verbose() const { return verbosity >= 2; }
  std::string backend = "auto";
  codec::Policy policy = codec::Policy::automatic;
  std::vector<int> devices = {0};    // empty: all there are
  std::optional<std::string> trace;  // file for the time line
  bool reproducible = false, high_ratio = false;
  bool fast = false;  // of the codecs of LZ77 in .ptz
  // What --codec names. Of decompression, lz4 means whatever the input is.
  format::FileFormat format = format::FileFormat::lz4;
  std::optional<format::PtzCoding> codec;  // of FileFormat::ptz
  Chooses chooses = Chooses::named;        // other values: a codec for each input; `format` is lz4
  bool seekable = false;                   // of Zstandard: frames and a table of them
  std::string sandbox = std::string(kSandboxAuto);
};

// Where the output of `input` goes; "-" is standard output. `format`: of compression.
Result<std::string> output_path(const Options& options, const std::string& input, format::FileFormat format);

// The format of an input to be read: by its first 16 bytes, otherwise by its name, otherwise LZ4.
format::FileFormat format_of_input(format::Bytes first, const std::string& name);

// What the command line says of the program itself.
struct Program {
  const char* name = "ptx-pack";
  const char* description =
      "Compresses files to standard LZ4 frames and back, on the CPU, on a GPU or on the PTX emulator.\n"
      "`lz4` reads what this program writes, and this program reads what `lz4` writes. The same holds\n"
      "for `zstd` with --codec zstd, and for `gzip` with --codec gzip.";
  const char* devices = "0";  // --device, where it is not given
  const char* devices_help = "which GPU, counted from 0 (default); several, as in 0,1, or all work together";
};

// The options, or the exit code when there is nothing more to do (help, version, wrong usage: already printed).
std::variant<Options, ExitCode> parse_options(int argc, char** argv, const Program& program = {});

}  // namespace ptxkit::pack
