// What the options ask of the codec: a backend, an encoder, a frame header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/codec/select_backend.hpp"
#include "tools/ptx-pack/options.hpp"

namespace ptxkit::pack {

// What --memory leaves for data; 0 if it was not given.
uint64_t data_bytes(const Options& options);

unsigned thread_count(const Options& options);

// The levels -1, -2 and -3 in the numbers of libzstd and libdeflate.
int zstd_level(const Options& options);
int gzip_level(const Options& options);

// Whether there are kernels for files of this format, as the options have them coded. --policy auto has Zstandard and
// gzip compressed by libzstd and libdeflate, so that the bytes of a file do not depend on the machine.
bool has_kernels(const Options& options, format::FileFormat format);
bool may_use_gpu(const Options& options, format::FileFormat format);

// By the names of what is read: what a file holds is known when it is opened.
codec::GpuWork gpu_work(const Options& options, const std::vector<std::string>& inputs);

codec::BackendRequest request_of(const Options& options, const std::vector<std::string>& inputs);

// Empty: the default encoder of the backend that runs the stream.
std::optional<codec::Encoder> encoder_asked_for(const Options& options);

// Without the content's size.
format::FrameHeader frame_header(const Options& options);

}  // namespace ptxkit::pack
