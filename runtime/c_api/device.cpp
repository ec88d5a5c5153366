// Batches in device memory.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "runtime/c_api/codecs.hpp"
#include "runtime/c_api/ptxkit.h"
#include "runtime/c_api/status.hpp"
#include "runtime/codec/blocks/typed_block.hpp"
#include "runtime/driver/driver.hpp"
#include "runtime/library/device_batches.hpp"

// Opaque to callers.
struct ptxkit_device {
  ptxkit::library::DeviceBatches batches;
};

namespace ptxkit::c_api {
namespace {

template <class T>
library::DeviceAddress address(T* pointer) {
  return reinterpret_cast<library::DeviceAddress>(pointer);
}

Answer<> create(int32_t ordinal, const char* cuda_library, ptxkit_device** device) {
  if (auto given = require(device, "device"); !given) return given;
  *device = nullptr;
  const std::string library = cuda_library == nullptr ? "" : cuda_library;
  const auto driver = driver::Driver::open(library);
  if (!driver) return refuse(PTXKIT_NO_DEVICE, driver.error().error);
  if (const int count = (*driver)->device_count(); ordinal < 0 || ordinal >= count)
    return refuse(PTXKIT_NO_DEVICE, fmt::format("there is no device {}, the driver has {}", ordinal, count));
  auto batches = library::DeviceBatches::open(ordinal, library);
  if (!batches) return refuse(PTXKIT_DEVICE, batches.error());
  *device = new ptxkit_device{std::move(*batches)};
  return {};
}

struct Request {
  library::Framing framing;
  library::Coding coding;
  bool is_fast;  // of level 1
};

Answer<library::Framing> framing_of(const ptxkit_batch_options& options) {
  switch (options.framing) {
    case PTXKIT_FRAMING_RAW:
      return library::Framing::raw;
    case PTXKIT_FRAMING_NUMCODECS:
      return library::Framing::numcodecs;
    case PTXKIT_FRAMING_FRAME:
      return library::Framing::frame;
    case PTXKIT_FRAMING_HDF5:
      return library::Framing::hdf5;
    default:
      return refuse(options.framing > PTXKIT_FRAMING_STORED ? PTXKIT_INVALID_VALUE : PTXKIT_UNSUPPORTED,
                    fmt::format("batches in device memory have no framing {}", options.framing),
                    "take RAW, NUMCODECS, FRAME or HDF5");
  }
}

// What libraries of others code in host memory.
std::optional<library::Coding> standard_coding_of(ptxkit_codec codec) {
  switch (codec) {
    case PTXKIT_CODEC_ZSTD:
      return library::Coding::zstd;
    case PTXKIT_CODEC_GZIP:
      return library::Coding::gzip;
    case PTXKIT_CODEC_ZLIB:
      return library::Coding::zlib;
    case PTXKIT_CODEC_DEFLATE:
      return library::Coding::deflate;
    default:
      return std::nullopt;
  }
}

enum class Direction : uint8_t { compress, decompress };

Answer<Request> read_request(const ptxkit_batch_options* options, Direction direction) {
  const ptxkit_batch_options defaults = PTXKIT_BATCH_OPTIONS_DEFAULTS;
  const auto read = read_options(options, defaults, &ptxkit_batch_options::reserved);
  if (!read) return tl::unexpected(read.error());
  const auto info = info_of(read->codec);
  if (!info) return tl::unexpected(info.error());
  const auto coding = coding_of(read->codec, read->level);
  if (!coding) return tl::unexpected(coding.error());
  if ((info->operations & PTXKIT_CAN_DEVICE_BATCH) == 0)
    return refuse(PTXKIT_UNSUPPORTED, fmt::format("{} has no batches in device memory", info->name));
  const auto standard = standard_coding_of(read->codec);
  if (standard && direction == Direction::compress && (read->level < 0 || read->level > 2)) {
    return refuse(PTXKIT_UNSUPPORTED,
                  fmt::format("{} has levels 1 and 2 in device memory, found {}", info->name, read->level),
                  "0 is level 2 there");
  }
  if (coding->is_high) return refuse(PTXKIT_UNSUPPORTED, "batches in device memory have level 1 alone");
  if ((read->flags & ~uint32_t{PTXKIT_REPRODUCIBLE}) != 0)
    return refuse(PTXKIT_INVALID_VALUE, fmt::format("options: unknown flags {:#x}", read->flags));
  const auto elements = elements_of(read->codec, read->dtype, read->stride);
  if (!elements) return tl::unexpected(elements.error());
  const auto framing = framing_of(*read);
  if (!framing) return tl::unexpected(framing.error());
  if (*elements && *framing != library::Framing::raw) {
    return refuse(PTXKIT_UNSUPPORTED, fmt::format("{} has no framing {}", info->name, read->framing),
                  "take PTXKIT_FRAMING_RAW");
  }
  if (standard) {
    if ((info->framings >> read->framing & 1) == 0) {
      return refuse(PTXKIT_UNSUPPORTED, fmt::format("{} has no framing {}", info->name, read->framing),
                    *standard == library::Coding::deflate ? "take PTXKIT_FRAMING_RAW" : "take PTXKIT_FRAMING_FRAME");
    }
    return Request{*framing, *standard, read->level == 1};
  }
  return Request{*framing,
                 *elements ? static_cast<library::Coding>(codec::layout_of(**elements)) : library::Coding::lz4, false};
}

Answer<> query(const ptxkit_batch_options* options, size_t max_input_bytes, size_t count,
               ptxkit_device_requirements* requirements) {
  if (auto given = require(requirements, "requirements"); !given) return given;
  if (requirements->struct_bytes != sizeof *requirements) {
    return refuse(PTXKIT_INVALID_VALUE, fmt::format("requirements: struct_bytes is {}, expected {}",
                                                    requirements->struct_bytes, sizeof *requirements));
  }
  const auto request = read_request(options, Direction::decompress);
  if (!request) return tl::unexpected(request.error());
  const auto needs = library::DeviceBatches::requirements(max_input_bytes, count, request->framing, request->coding);
  if (!needs) return refuse(PTXKIT_ITEM_TOO_LARGE, needs.error());
  *requirements = {};
  requirements->struct_bytes = sizeof *requirements;
  requirements->input_alignment = static_cast<uint32_t>(needs->input_alignment);
  requirements->output_alignment = static_cast<uint32_t>(needs->output_alignment);
  requirements->temp_alignment = static_cast<uint32_t>(needs->temp_alignment);
  requirements->temp_bytes = needs->temp_bytes;
  requirements->output_bytes = needs->output_bytes_bound;
  requirements->decompress_temp_bytes = needs->decompress_temp_bytes;
  return {};
}

}  // namespace
}  // namespace ptxkit::c_api

using namespace ptxkit;

ptxkit_status ptxkit_device_create(int32_t ordinal, const char* cuda_library, ptxkit_device** device) {
  return c_api::call(__func__, [&] { return c_api::create(ordinal, cuda_library, device); });
}

void ptxkit_device_destroy(ptxkit_device* device) { delete device; }

ptxkit_status ptxkit_device_query(const ptxkit_batch_options* options, size_t max_input_bytes, size_t count,
                                  ptxkit_device_requirements* requirements) {
  return c_api::call(__func__, [&] { return c_api::query(options, max_input_bytes, count, requirements); });
}

ptxkit_status ptxkit_device_compress(ptxkit_device* device, const void* const* inputs, const size_t* input_bytes,
                                     size_t max_input_bytes, size_t count, void* temp, size_t temp_bytes,
                                     void* const* outputs, size_t* output_bytes, const ptxkit_batch_options* options,
                                     ptxkit_status* statuses, void* stream) {
  return c_api::call(__func__, [&]() -> c_api::Answer<> {
    if (auto given = c_api::require(device, "device"); !given) return given;
    const auto request = c_api::read_request(options, c_api::Direction::compress);
    if (!request) return tl::unexpected(request.error());
    library::BatchCompression batch;
    batch.inputs = c_api::address(inputs);
    batch.input_bytes = c_api::address(input_bytes);
    batch.max_input_bytes = max_input_bytes;
    batch.item_count = count;
    batch.temp = c_api::address(temp);
    batch.temp_bytes = temp_bytes;
    batch.outputs = c_api::address(outputs);
    batch.output_bytes = c_api::address(output_bytes);
    batch.statuses = c_api::address(statuses);
    batch.framing = request->framing;
    batch.coding = request->coding;
    batch.is_fast = request->is_fast;
    batch.is_reproducible = options != nullptr && (options->flags & PTXKIT_REPRODUCIBLE) != 0;
    if (const auto done = device->batches.compress(batch, stream); !done)
      return c_api::refuse(PTXKIT_INVALID_VALUE, done.error());
    return {};
  });
}

ptxkit_status ptxkit_device_decompress(ptxkit_device* device, const void* const* inputs, const size_t* input_bytes,
                                       const size_t* output_capacities, size_t* output_bytes, size_t count, void* temp,
                                       size_t temp_bytes, void* const* outputs, const ptxkit_batch_options* options,
                                       ptxkit_status* statuses, void* stream) {
  return c_api::call(__func__, [&]() -> c_api::Answer<> {
    if (auto given = c_api::require(device, "device"); !given) return given;
    const auto request = c_api::read_request(options, c_api::Direction::decompress);
    if (!request) return tl::unexpected(request.error());
    library::BatchDecompression batch;
    batch.inputs = c_api::address(inputs);
    batch.input_bytes = c_api::address(input_bytes);
    batch.output_capacities = c_api::address(output_capacities);
    batch.output_bytes = c_api::address(output_bytes);
    batch.item_count = count;
    batch.temp = c_api::address(temp);
    batch.temp_bytes = temp_bytes;
    batch.outputs = c_api::address(outputs);
    batch.framing = request->framing;
    batch.coding = request->coding;
    batch.statuses = c_api::address(statuses);
    if (const auto done = device->batches.decompress(batch, stream); !done)
      return c_api::refuse(PTXKIT_INVALID_VALUE, done.error());
    return {};
  });
}

ptxkit_status ptxkit_device_decompressed_sizes(ptxkit_device* device, const void* const* inputs,
                                               const size_t* input_bytes, size_t* output_bytes, size_t count,
                                               const ptxkit_batch_options* options, ptxkit_status* statuses,
                                               void* stream) {
  return c_api::call(__func__, [&]() -> c_api::Answer<> {
    if (auto given = c_api::require(device, "device"); !given) return given;
    const auto request = c_api::read_request(options, c_api::Direction::decompress);
    if (!request) return tl::unexpected(request.error());
    if (request->coding != library::Coding::lz4) {
      return c_api::refuse(PTXKIT_UNSUPPORTED, "only lz4 has a call for raw sizes in device memory",
                           "an item of rans has its raw size as a u64 at byte 8, most frames in their header");
    }
    library::BatchSizes batch;
    batch.inputs = c_api::address(inputs);
    batch.input_bytes = c_api::address(input_bytes);
    batch.item_count = count;
    batch.output_bytes = c_api::address(output_bytes);
    batch.statuses = c_api::address(statuses);
    batch.framing = request->framing;
    if (const auto done = device->batches.decompressed_sizes(batch, stream); !done)
      return c_api::refuse(PTXKIT_INVALID_VALUE, done.error());
    return {};
  });
}
