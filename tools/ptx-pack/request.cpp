#include "tools/ptx-pack/request.hpp"

#include <algorithm>

#include <sys/stat.h>
#include <unistd.h>

#include "kernels/images.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::pack {

using format::FileFormat;

namespace {

// What LZ4 files hold is not known before they are read; this is a usual ratio.
constexpr uint64_t kUsualRatio = 2;

codec::Work work_of(const Options& options) {
  if (options.mode == Mode::decompress || options.mode == Mode::test) return codec::Work::decompress;
  return options.reproducible || options.high_ratio ? codec::Work::compress_reproducible : codec::Work::compress;
}

// Of all inputs together: the GPU is started once. Nothing when one is a pipe.
std::optional<uint64_t> raw_bytes_of(const Options& options, const std::vector<std::string>& inputs) {
  uint64_t total = 0;
  for (const std::string& path : inputs) {
    struct stat info{};
    const int status = path == "-" ? ::fstat(STDIN_FILENO, &info) : ::stat(path.c_str(), &info);
    if (status != 0) continue;  // reported when it is opened
    if (!S_ISREG(info.st_mode)) return std::nullopt;
    total += static_cast<uint64_t>(info.st_size);
  }
  return work_of(options) == codec::Work::decompress ? total * kUsualRatio : total;
}

}  // namespace

uint64_t data_bytes(const Options& options) {
  return options.memory_bytes == 0 ? 0 : options.memory_bytes - kProgramBytes;
}

unsigned thread_count(const Options& options) {
  return options.thread_count != 0 ? options.thread_count : static_cast<unsigned>(codec::usable_cores().size());
}

int zstd_level(const Options& options) { return options.fast ? 1 : options.high_ratio ? 3 : 2; }
int gzip_level(const Options& options) { return options.fast ? 1 : options.high_ratio ? 9 : 6; }

bool has_kernels(const Options& options, FileFormat format) {
  if (options.mode != Mode::compress) return true;
  if (format == FileFormat::zstd) return codec::has_kernels(codec::ZstdCoding{zstd_level(options)});
  return format != FileFormat::gzip || codec::has_kernels(codec::GzipCoding{gzip_level(options)});
}

bool may_use_gpu(const Options& options, FileFormat format) {
  if (options.backend == "cpu" || options.policy == codec::Policy::cpu || !has_kernels(options, format)) return false;
  const bool is_chosen = options.backend == "auto" && options.policy == codec::Policy::automatic;
  const bool is_standard = format == FileFormat::zstd || format == FileFormat::gzip;
  return !is_chosen || !is_standard || options.mode != Mode::compress;
}

codec::GpuWork gpu_work(const Options& options, const std::vector<std::string>& inputs) {
  if (options.chooses != Chooses::named) return {true, true};
  std::vector<FileFormat> formats;
  if (options.mode == Mode::compress || options.format != FileFormat::lz4) {
    formats = {options.format};
  } else {
    for (const std::string& name : inputs) formats.push_back(format::format_of_name(name).value_or(FileFormat::lz4));
  }
  const auto any = [&](bool is_lz4) {
    return std::ranges::any_of(
        formats, [&](FileFormat each) { return (each == FileFormat::lz4) == is_lz4 && may_use_gpu(options, each); });
  };
  return {.may_be_lz4 = any(true), .may_be_blocks = any(false)};
}

codec::BackendRequest request_of(const Options& options, const std::vector<std::string>& inputs) {
  codec::BackendRequest request;
  request.name = options.backend;
  request.devices = options.devices;
  request.policy = options.policy;
  request.work = work_of(options);
  request.raw_bytes = raw_bytes_of(options, inputs);
  request.calibration_path = codec::calibration_path(options.devices);
  request.limits.queue_count = options.prefetch + 4;      // two on their way up, two on their way down
  request.limits.memory_bytes = data_bytes(options) / 2;  // page-locked; the other half is for the stream's batches
  request.find_image = kernels::find_kernel_image;
  return request;
}

std::optional<codec::Encoder> encoder_asked_for(const Options& options) {
  if (options.high_ratio) return codec::Encoder::high;
  if (options.reproducible) return codec::Encoder::reproducible;
  return std::nullopt;
}

format::FrameHeader frame_header(const Options& options) {
  format::FrameHeader header;
  header.block_size_id = options.block_size_id;
  header.independent_blocks = !options.linked_blocks;
  header.block_checksum = options.block_checksum;
  header.content_checksum = options.content_checksum;
  return header;
}

}  // namespace ptxkit::pack
