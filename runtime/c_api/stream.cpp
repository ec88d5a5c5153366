// Streams through callbacks, and files.
#include "runtime/codec/stream/stream.hpp"

#include <cerrno>
#include <cstring>
#include <optional>
#include <stop_token>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/c_api/codecs.hpp"
#include "runtime/c_api/context.hpp"
#include "runtime/c_api/ptxkit.h"
#include "runtime/c_api/status.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/cpu/cpu_blocks.hpp"
#include "runtime/codec/cpu/deflate_coder.hpp"
#include "runtime/codec/cpu/zstd_coder.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/file_format.hpp"
#include "runtime/codec/format/peeked_source.hpp"
#include "runtime/codec/format/ptz.hpp"
#include "runtime/codec/stream/gzip_stream.hpp"
#include "runtime/codec/stream/ptz_stream.hpp"
#include "runtime/codec/stream/zstd_stream.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "runtime/library/engine.hpp"
#include "support/file.hpp"
#include "support/place.hpp"

namespace ptxkit::c_api {
namespace {

using format::Bytes;
using format::MutableBytes;

constexpr uint32_t kStreamFlags =
    PTXKIT_REPRODUCIBLE | PTXKIT_NO_CONTENT_CHECKSUM | PTXKIT_BLOCK_CHECKSUMS | PTXKIT_LINKED_BLOCKS | PTXKIT_SEEKABLE;

class CallbackSource final : public format::ByteSource {
 public:
  CallbackSource(ptxkit_read_function function, void* user) : read_(function), user_(user) {}

  Result<size_t> read(MutableBytes into) override { return read_some(into, into.size()); }
  Result<size_t> read_some(MutableBytes into, size_t least) override {
    size_t done = 0;
    while (done < least && !has_ended_) {
      const int64_t count = read_(user_, into.data() + done, into.size() - done);
      if (count < 0 || static_cast<uint64_t>(count) > into.size() - done) {
        has_ended_ = true;
        return fail_io(
            count < 0 ? fmt::format("the read function returned {}", count)
                      : fmt::format("the read function returned {} of at most {} bytes", count, into.size() - done));
      }
      has_ended_ = count == 0;
      done += static_cast<size_t>(count);
    }
    return done;
  }
  const std::string& name() const override { return name_; }

 private:
  const std::string name_ = "input";
  ptxkit_read_function read_;
  void* user_;
  bool has_ended_ = false, has_failed_ = false;
};

class CallbackSink final : public format::ByteSink {
 public:
  CallbackSink(ptxkit_write_function function, void* user) : write_(function), user_(user) {}

  Result<void> write(Bytes bytes) override {
    if (bytes.empty()) return {};
    const int status = write_(user_, bytes.data(), bytes.size());
    if (status == 0) return {};
    return fail_io(fmt::format("the write function returned {}", status));
  }

 private:
  ptxkit_write_function write_;
  void* user_;
  bool has_failed_ = false;
};

// What a stream shares with the caller during the call.
class Call {
 public:
  explicit Call(const ptxkit_stream_options& options) {
    if (options.hooks != nullptr) hooks_ = *options.hooks;
    if (options.memory_bytes != 0) ledger_.emplace("memory_bytes", options.memory_bytes);
  }

  codec::StreamLimits limits() { return {.memory = ledger_ ? &*ledger_ : nullptr, .stop = stop_.get_token()}; }
  codec::Progress progress() {
    if (hooks_.progress == nullptr && hooks_.is_cancelled == nullptr) return {};
    return [this](uint64_t raw_bytes, uint64_t stored_bytes) {
      if (hooks_.progress != nullptr) hooks_.progress(hooks_.user, raw_bytes, stored_bytes);
      if (hooks_.is_cancelled != nullptr && hooks_.is_cancelled(hooks_.user) != 0) stop_.request_stop();
    };
  }
  bool is_cancelled() const { return stop_.stop_requested(); }

 private:
  ptxkit_hooks hooks_ = PTXKIT_HOOKS_DEFAULTS;
  std::optional<scheduler::Ledger> ledger_;
  std::stop_source stop_;
};

Answer<ptxkit_stream_options> read_stream_options(const ptxkit_stream_options* options) {
  const ptxkit_stream_options defaults = PTXKIT_STREAM_OPTIONS_DEFAULTS;
  auto read = read_options(options, defaults, &ptxkit_stream_options::reserved0, &ptxkit_stream_options::reserved);
  if (!read) return read;
  if ((read->flags & ~kStreamFlags) != 0)
    return refuse(PTXKIT_INVALID_VALUE, fmt::format("options: unknown flags {:#x}", read->flags));
  const ptxkit_hooks none = PTXKIT_HOOKS_DEFAULTS;
  const auto hooks = read_options(read->hooks, none, &ptxkit_hooks::reserved0, &ptxkit_hooks::reserved);
  if (!hooks) return tl::unexpected(hooks.error());
  return read;
}

Answer<format::FrameHeader> frame_header(const ptxkit_stream_options& options) {
  if ((options.flags & PTXKIT_SEEKABLE) != 0)
    return refuse(PTXKIT_INVALID_VALUE, "options: PTXKIT_SEEKABLE is of Zstandard only");
  format::FrameHeader header;
  header.content_checksum = (options.flags & PTXKIT_NO_CONTENT_CHECKSUM) == 0;
  header.block_checksum = (options.flags & PTXKIT_BLOCK_CHECKSUMS) != 0;
  header.independent_blocks = (options.flags & PTXKIT_LINKED_BLOCKS) == 0;
  if (options.content_bytes != 0) header.content_bytes = options.content_bytes;
  if (options.block_bytes == 0) return header;
  for (int id = format::kSmallestBlockSizeId; id <= format::kLargestBlockSizeId; ++id) {
    header.block_size_id = id;
    if (format::block_bytes_of_id(id) == options.block_bytes) return header;
  }
  return refuse(
      PTXKIT_INVALID_VALUE,
      fmt::format("block_bytes is {}, expected 65536, 262144, 1048576 or 4194304 for lz4", options.block_bytes));
}

Answer<format::PtzHeader> ptz_header(const ptxkit_stream_options& options, const Coding& coding) {
  if ((options.flags & ~uint32_t{PTXKIT_REPRODUCIBLE}) != 0)
    return refuse(PTXKIT_INVALID_VALUE, fmt::format("options: flags {:#x} are of LZ4 frames only", options.flags));
  if (options.content_bytes != 0)
    return refuse(PTXKIT_INVALID_VALUE, "options: content_bytes is of LZ4 frames only", "leave it 0");
  format::PtzHeader header = coding.ptz_header();
  if (options.block_bytes == 0) return header;
  for (header.block_bits = format::kPtzMinBlockBits; header.block_bits <= format::kPtzMaxBlockBits; ++header.block_bits)
    if (uint32_t{1} << header.block_bits == options.block_bytes) return header;
  return refuse(PTXKIT_INVALID_VALUE,
                fmt::format("block_bytes is {}, expected a power of two from {} to {}", options.block_bytes,
                            1u << format::kPtzMinBlockBits, 1u << format::kPtzMaxBlockBits));
}

Answer<> check_standard(const ptxkit_stream_options& options, const ptxkit_codec_info& info) {
  if ((info.operations & PTXKIT_CAN_STREAM) == 0)
    return refuse(PTXKIT_UNSUPPORTED, fmt::format("there are no streams of {}", info.name), "use a batch");
  if (options.block_bytes != 0)
    return refuse(PTXKIT_INVALID_VALUE,
                  fmt::format("block_bytes is {}, {} has one size: leave it 0", options.block_bytes, info.name));
  const uint32_t known = options.codec == PTXKIT_CODEC_ZSTD ? PTXKIT_NO_CONTENT_CHECKSUM | PTXKIT_SEEKABLE : 0;
  if ((options.flags & ~known) != 0)
    return refuse(PTXKIT_INVALID_VALUE,
                  fmt::format("options: {} has no flags {:#x}", info.name, options.flags & ~known));
  return {};
}

Result<codec::StreamTotals> compress_standard(library::Engine& engine, const ptxkit_stream_options& options,
                                              const Coding& coding, Call& call, format::ByteSource& source,
                                              format::ByteSink& sink) {
  codec::Executor& executor = engine.executor();
  const auto content_bytes = options.content_bytes != 0 ? std::optional(options.content_bytes) : std::nullopt;
  const bool is_zstd = coding.kind == Coding::Kind::zstd;
  // Where the context takes whatever is faster, libzstd or libdeflate does it, so that the bytes do not depend on the
  // machine.
  codec::CpuBlocks on_cpu(executor);
  std::optional<library::Engine::BorrowedCoder> borrowed;
  if (engine.prefers_device() && (is_zstd ? codec::has_kernels(codec::ZstdCoding{coding.level})
                                          : codec::has_kernels(codec::GzipCoding{coding.level}))) {
    auto coder = engine.block_coder();
    if (!coder) return tl::unexpected(coder.error());
    borrowed.emplace(std::move(*coder));
  }
  if (is_zstd) {
    return codec::compress_zstd(source, sink, executor, borrowed ? **borrowed : on_cpu,
                                {.level = coding.level,
                                 .content_bytes = content_bytes,
                                 .has_checksum = (options.flags & PTXKIT_NO_CONTENT_CHECKSUM) == 0,
                                 .is_seekable = (options.flags & PTXKIT_SEEKABLE) != 0,
                                 .progress = call.progress(),
                                 .limits = call.limits()});
  }
  return codec::compress_gzip(
      source, sink, executor, borrowed ? **borrowed : on_cpu,
      {.level = coding.level, .content_bytes = content_bytes, .progress = call.progress(), .limits = call.limits()});
}

void set_totals(ptxkit_totals* totals, const codec::StreamTotals& from) {
  if (totals != nullptr) *totals = {from.raw_bytes, from.stored_bytes, from.frame_count, from.block_count};
}

Answer<codec::StreamTotals> compress(ptxkit_context& context, const ptxkit_stream_options& options, Call& call,
                                     format::ByteSource& source, format::ByteSink& sink) {
  auto coding = coding_of(options.codec, options.level);
  if (!coding) return tl::unexpected(coding.error());
  const auto elements = elements_of(options.codec, options.dtype, options.stride);
  if (!elements) return tl::unexpected(elements.error());
  if (*elements) coding->elements = **elements;
  library::Engine& engine = context.lz4.engine();
  Result<codec::StreamTotals> totals;
  if (coding->is_lz4()) {
    const auto header = frame_header(options);
    if (!header) return tl::unexpected(header.error());
    const bool is_reproducible = (options.flags & PTXKIT_REPRODUCIBLE) != 0;
    if (!header->independent_blocks && (is_reproducible || coding->is_high))
      return refuse(PTXKIT_UNSUPPORTED, "linked blocks have the fast encoder alone: level 1, not reproducible");
    std::optional<codec::Encoder> encoder;
    if (is_reproducible) encoder = codec::Encoder::reproducible;
    if (coding->is_high) encoder = codec::Encoder::high;
    totals = codec::compress_stream(
        source, sink, engine.backend(),
        {.header = *header, .encoder = encoder, .progress = call.progress(), .limits = call.limits()});
  } else if (coding->ptz == nullptr) {
    const auto info = info_of(options.codec);
    if (!info) return tl::unexpected(info.error());
    if (const auto good = check_standard(options, *info); !good) return tl::unexpected(good.error());
    totals = compress_standard(engine, options, *coding, call, source, sink);
  } else {
    const auto header = ptz_header(options, *coding);
    if (!header) return tl::unexpected(header.error());
    auto coder = engine.block_coder();
    if (!coder) return refuse(PTXKIT_DEVICE, coder.error());
    totals = codec::compress_ptz(
        source, sink, engine.executor(), *header,
        {.coder = &**coder, .search = coding->search, .progress = call.progress(), .limits = call.limits()});
  }
  if (!totals) return refuse(PTXKIT_INVALID_VALUE, totals.error());
  return *totals;
}

Answer<codec::StreamTotals> decompress(ptxkit_context& context, const ptxkit_stream_options& options, Call& call,
                                       format::ByteSource& source, format::ByteSink& sink) {
  if (options.flags != 0 || options.level != 0 || options.block_bytes != 0 || options.content_bytes != 0 ||
      options.dtype != 0 || options.stride != 0) {
    return refuse(PTXKIT_INVALID_VALUE,
                  "options: level, flags, block_bytes, content_bytes, dtype and stride are of compression only");
  }
  format::PeekedSource peeked(source);
  const auto first = peeked.first();
  if (!first) return refuse(PTXKIT_IO, first.error());
  library::Engine& engine = context.lz4.engine();
  Result<codec::StreamTotals> totals;
  const auto other = options.codec == PTXKIT_CODEC_ZSTD ? format::FileFormat::zstd : format::FileFormat::lz4;
  const format::FileFormat format = format::format_of_bytes(*first).value_or(other);
  if (format == format::FileFormat::zstd) {
    codec::ZstdCoder coder(engine.executor());
    auto frame_coder = engine.block_coder();
    if (!frame_coder) return refuse(PTXKIT_DEVICE, frame_coder.error());
    totals =
        codec::decompress_zstd(peeked, sink, engine.executor(), coder,
                               {.frame_coder = &**frame_coder, .progress = call.progress(), .limits = call.limits()});
  } else if (format == format::FileFormat::gzip) {
    codec::DeflateCoder coder(engine.executor());
    auto member_coder = engine.block_coder();
    if (!member_coder) return refuse(PTXKIT_DEVICE, member_coder.error());
    totals =
        codec::decompress_gzip(peeked, sink, engine.executor(), coder,
                               {.member_coder = &**member_coder, .progress = call.progress(), .limits = call.limits()});
  } else if (format == format::FileFormat::ptz) {
    auto coder = engine.block_coder();
    if (!coder) return refuse(PTXKIT_DEVICE, coder.error());
    codec::PtzOptions ptz;
    ptz.coder = &**coder;
    ptz.progress = call.progress();
    ptz.limits = call.limits();
    totals = codec::decompress_ptz(peeked, sink, engine.executor(), ptz);
  } else {
    totals = codec::decompress_stream(peeked, sink, engine.backend(),
                                      {.progress = call.progress(), .limits = call.limits()});
  }
  if (!totals) return refuse(PTXKIT_CANNOT_DECOMPRESS, totals.error());
  return *totals;
}

using Convert = Answer<codec::StreamTotals> (*)(ptxkit_context&, const ptxkit_stream_options&, Call&,
                                                format::ByteSource&, format::ByteSink&);

Answer<> run_stream(Convert convert, ptxkit_context* context, const ptxkit_stream_options* options,
                    ptxkit_read_function read, void* read_user, ptxkit_write_function write, void* write_user,
                    ptxkit_totals* totals) {
  if (auto given = require(context, "context"); !given) return given;
  if (auto given = require(reinterpret_cast<const void*>(read), "read"); !given) return given;
  if (auto given = require(reinterpret_cast<const void*>(write), "write"); !given) return given;
  const auto checked = read_stream_options(options);
  if (!checked) return tl::unexpected(checked.error());
  Call call(*checked);
  CallbackSource source(read, read_user);
  CallbackSink sink(write, write_user);
  const auto done = convert(*context, *checked, call, source, sink);
  if (done) {
    set_totals(totals, *done);
    return {};
  }
  Failure failure = done.error();
  if (call.is_cancelled()) failure.status = PTXKIT_CANCELLED;
  return tl::unexpected(failure);
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

// Whether the codec's header says the size of the content.
bool has_content_size(ptxkit_codec codec) { return codec == PTXKIT_CODEC_LZ4 || codec == PTXKIT_CODEC_ZSTD; }

Answer<> run_file(Convert convert, bool compresses, ptxkit_context* context, const ptxkit_stream_options* options,
                  const char* input_path, const char* output_path, ptxkit_totals* totals) {
  if (auto given = require(context, "context"); !given) return given;
  if (auto given = require(input_path, "input_path"); !given) return given;
  if (auto given = require(output_path, "output_path"); !given) return given;
  auto checked = read_stream_options(options);
  if (!checked) return tl::unexpected(checked.error());
  const Descriptor input(::open(input_path, O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (input.number() < 0 || ::fstat(input.number(), &info) != 0)
    return refuse(PTXKIT_IO, Error{fmt::format("cannot read: {}", std::strerror(errno)), input_path, {}});
  if (S_ISDIR(info.st_mode)) return refuse(PTXKIT_IO, Error{"expected a file, found a directory", input_path, {}});
  struct stat existing{};
  if (S_ISREG(info.st_mode) && ::stat(output_path, &existing) == 0 && FileIdentity(existing) == FileIdentity(info))
    return refuse(PTXKIT_INVALID_VALUE, Error{"the output is the input", output_path, "give another name"});
  if (compresses && has_content_size(checked->codec) && checked->content_bytes == 0 && S_ISREG(info.st_mode))
    checked->content_bytes = static_cast<uint64_t>(info.st_size);
  Call call(*checked);
  std::optional<Failure> failure;
  const auto write = [&](int descriptor) {
    format::DescriptorSource source(input.number(), input_path);
    format::DescriptorSink sink(descriptor, output_path);
    const auto done = convert(*context, *checked, call, source, sink);
    if (done) {
      set_totals(totals, *done);
    } else {
      failure = done.error();
      if (call.is_cancelled()) failure->status = PTXKIT_CANCELLED;
    }
    return done.has_value();
  };
  const mode_t permissions = S_ISREG(info.st_mode) ? mode_of(input.number(), info) & 0666 : 0666;
  const auto replaced = replace_file(output_path, write, permissions);
  if (failure) return tl::unexpected(*failure);
  if (!replaced) return refuse(PTXKIT_IO, replaced.error());
  return {};
}

}  // namespace
}  // namespace ptxkit::c_api

using namespace ptxkit;

ptxkit_status ptxkit_compress_stream(ptxkit_context* context, const ptxkit_stream_options* options,
                                     ptxkit_read_function read, void* read_user, ptxkit_write_function write,
                                     void* write_user, ptxkit_totals* totals) {
  return c_api::call(__func__, [&] {
    return c_api::run_stream(c_api::compress, context, options, read, read_user, write, write_user, totals);
  });
}

ptxkit_status ptxkit_decompress_stream(ptxkit_context* context, const ptxkit_stream_options* options,
                                       ptxkit_read_function read, void* read_user, ptxkit_write_function write,
                                       void* write_user, ptxkit_totals* totals) {
  return c_api::call(__func__, [&] {
    return c_api::run_stream(c_api::decompress, context, options, read, read_user, write, write_user, totals);
  });
}

ptxkit_status ptxkit_compress_file(ptxkit_context* context, const ptxkit_stream_options* options,
                                   const char* input_path, const char* output_path, ptxkit_totals* totals) {
  return c_api::call(__func__, [&] {
    return c_api::run_file(c_api::compress, true, context, options, input_path, output_path, totals);
  });
}

ptxkit_status ptxkit_decompress_file(ptxkit_context* context, const ptxkit_stream_options* options,
                                     const char* input_path, const char* output_path, ptxkit_totals* totals) {
  return c_api::call(__func__, [&] {
    return c_api::run_file(c_api::decompress, false, context, options, input_path, output_path, totals);
  });
}
