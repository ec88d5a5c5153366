// ptxkit: compression on the CPU and on NVIDIA GPUs, the PTX analyzer, and the PTX emulator. C99; no other header.
//
//   cc program.c $(pkg-config --cflags --libs ptxkit)        or   find_package(ptxkit COMPONENTS c), link ptxkit::c
//
// libptxkit.so.1 needs glibc alone. The driver (libcuda.so.1) is opened by the functions that say so, at run time.
//
// Errors. A function that can fail returns a ptxkit_status. After any other status than PTXKIT_OK, ptxkit_last_error()
// gives one line for people: what is wrong, where, and what to do. Results are then unspecified unless the function
// says otherwise. Nothing throws, and no argument ends the process. Null where a pointer is required, sizes that
// overflow, unknown codecs, flags and fields are PTXKIT_INVALID_VALUE.
//
// Threads. There is no global state but the last error, which each thread has for itself. Functions on one handle may
// be called from several threads at a time, except its *_destroy(). After fork(), the child must not use handles that
// the parent made; it makes its own.
//
// Options are structures of fixed size that begin with their size in bytes. Set them to the value of their
// *_DEFAULTS macro, which sets the size, and change fields. `reserved` must be zero: a later version gives it a meaning.
// A null pointer to options means the defaults.
//
// Strings are UTF-8 with a final zero. Sizes are in bytes unless a name says otherwise.
#ifndef PTXKIT_H
#define PTXKIT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PTXKIT_API __attribute__((visibility("default")))
#else
#define PTXKIT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define PTXKIT_VERSION_MAJOR 0
#define PTXKIT_VERSION_MINOR 1
#define PTXKIT_VERSION_PATCH 0

// Of the library at run time: 10000 * major + 100 * minor + patch, and "0.1.0".
PTXKIT_API uint32_t ptxkit_version(void);
PTXKIT_API const char* ptxkit_version_string(void);

// ---- Statuses -------------------------------------------------------------------------------------------------------

// Values are pinned. Where nvCOMP has a status of the same meaning, the number is the same.
typedef int32_t ptxkit_status;
enum {
  PTXKIT_OK = 0,
  PTXKIT_INVALID_VALUE = 10,      // an argument is null, overlaps another, or names nothing that exists
  PTXKIT_UNSUPPORTED = 11,        // this codec, framing or device cannot do it
  PTXKIT_CANNOT_DECOMPRESS = 12,  // the compressed bytes are malformed
  PTXKIT_BAD_CHECKSUM = 13,       // the bytes are well formed, but not those that were compressed
  PTXKIT_OUTPUT_TOO_SMALL = 15,
  PTXKIT_MISALIGNED = 17,
  PTXKIT_ITEM_TOO_LARGE = 18,
  PTXKIT_NO_MEMORY = 100,
  PTXKIT_IO = 101,         // a file or a callback of the caller failed
  PTXKIT_CANCELLED = 102,  // by ptxkit_hooks.is_cancelled
  PTXKIT_NO_DEVICE = 103,  // no driver, or no such device
  PTXKIT_DEVICE = 1000,    // the driver reported an error
  PTXKIT_INTERNAL = 10000  // a fault of this library: please report it
};

// "PTXKIT_OK"; "unknown status" for other numbers. Never null.
PTXKIT_API const char* ptxkit_status_name(ptxkit_status status);
// The text of the last failure on this thread, "" if there was none. Valid until the next call on this thread.
PTXKIT_API const char* ptxkit_last_error(void);
// Frees a string that this library returned through a char**. Null is accepted.
PTXKIT_API void ptxkit_string_free(char* string);

// ---- Codecs ---------------------------------------------------------------------------------------------------------

// 256 + n is the codec with the number n of `.ptz` files (docs/format.md). Levels of Zstandard are libzstd's, levels of
// gzip, zlib and deflate are libdeflate's.
typedef uint32_t ptxkit_codec;
#define PTXKIT_CODEC_LZ4 ((ptxkit_codec)1)
#define PTXKIT_CODEC_ZSTD ((ptxkit_codec)2)
#define PTXKIT_CODEC_GZIP ((ptxkit_codec)3)
#define PTXKIT_CODEC_ZLIB ((ptxkit_codec)4)
#define PTXKIT_CODEC_DEFLATE ((ptxkit_codec)5)
#define PTXKIT_CODEC_RANS ((ptxkit_codec)261)  // typed rANS, for arrays of numbers: ptxkit_dtype

// How the bytes of an item are wrapped.
typedef uint32_t ptxkit_framing;
enum {
  PTXKIT_FRAMING_RAW = 0,        // one LZ4 block, as LZ4_compress_default() writes it; the reader must know the raw size.
                                 // Of deflate, a stream without a wrapper; of rans, an item, which says its raw size
  PTXKIT_FRAMING_FRAME = 1,      // a whole file: an LZ4 or Zstandard frame, a gzip member, a zlib stream, or a `.ptz` container
  PTXKIT_FRAMING_NUMCODECS = 2,  // the raw size (4 bytes, little-endian), one LZ4 block: numcodecs.LZ4
  PTXKIT_FRAMING_HDF5 = 3,       // the chunk of HDF5 filter 32004
  PTXKIT_FRAMING_STORED = 4      // a byte that says how the rest is stored (docs/format.md): never over 1 + raw bytes
};

// What a codec can do: bits of ptxkit_codec_info.operations.
enum {
  PTXKIT_CAN_HOST_BATCH = 1,    // ptxkit_compress_batch(), ptxkit_decompress_batch()
  PTXKIT_CAN_STREAM = 2,        // ptxkit_compress_stream() and its kind
  PTXKIT_CAN_DEVICE_BATCH = 4,  // ptxkit_device_compress() and its kind
  PTXKIT_CAN_DEVICE_DECOMPRESS = 8  // ptxkit_device_decompress(), without the others unless PTXKIT_CAN_DEVICE_BATCH
};

typedef struct ptxkit_codec_info {
  uint32_t struct_bytes;  // in: sizeof(ptxkit_codec_info)
  ptxkit_codec codec;
  char name[24];       // "lz4"
  char extension[8];   // of files: ".lz4"
  uint32_t operations;  // PTXKIT_CAN_*
  uint32_t framings;    // bit n: framing n
  int32_t least_level, greatest_level, default_level;
  uint32_t default_block_bytes;     // of streams
  uint64_t largest_host_item;       // in bytes, of batches in host memory
  uint64_t largest_device_item;     // in bytes, of batches in device memory; 0 without PTXKIT_CAN_DEVICE_DECOMPRESS
  uint32_t input_alignment;         // in bytes: of an item to be compressed in device memory; 1 in host memory
  uint32_t reserved[11];
} ptxkit_codec_info;  // 128 bytes

PTXKIT_API size_t ptxkit_codec_count(void);
// PTXKIT_INVALID_VALUE: `index` is not below ptxkit_codec_count().
PTXKIT_API ptxkit_status ptxkit_codec_at(size_t index, ptxkit_codec* codec);
// By name: "lz4", "lzr". The error lists the names.
PTXKIT_API ptxkit_status ptxkit_codec_find(const char* name, ptxkit_codec* codec);
PTXKIT_API ptxkit_status ptxkit_codec_query(ptxkit_codec codec, ptxkit_codec_info* info);

// ---- Contexts: threads, and where there is one a GPU ----------------------------------------------------------------

typedef enum ptxkit_policy {
  PTXKIT_POLICY_AUTOMATIC = 0,  // the GPU where measured rates say that it is faster, otherwise the CPU
  PTXKIT_POLICY_CPU = 1,        // opens no driver
  PTXKIT_POLICY_GPU = 2,        // the GPU for what it supports; the CPU if there is none or it fails
  PTXKIT_POLICY_MIXED = 3       // each batch is shared out between them
} ptxkit_policy;

// Functions of the caller. They must not call back into the handle that called them, and must not throw or longjmp.
// `user` is passed to each. Any may be null.
typedef struct ptxkit_hooks {
  uint32_t struct_bytes;
  uint32_t reserved0;
  void* user;
  // A message for people; `is_warning` is 0 for details. Called from any thread.
  void (*log)(void* user, int is_warning, const char* message);
  // Memory for the batches of LZ4 streams, aligned to 64 bytes or more; null: none is left, the call ends with
  // PTXKIT_NO_MEMORY. Called from any thread. Streams of other codecs take theirs from malloc().
  void* (*allocate)(void* user, size_t bytes);
  void (*release)(void* user, void* memory, size_t bytes);
  // Between two batches of a stream, on the thread of the caller: bytes so far.
  void (*progress)(void* user, uint64_t raw_bytes, uint64_t stored_bytes);
  // At the same places: not 0 ends the call with PTXKIT_CANCELLED.
  int (*is_cancelled)(void* user);
  uint64_t reserved;
} ptxkit_hooks;  // 64 bytes
#define PTXKIT_HOOKS_DEFAULTS {sizeof(ptxkit_hooks), 0, 0, 0, 0, 0, 0, 0, 0}

typedef struct ptxkit_context_options {
  uint32_t struct_bytes;
  uint32_t policy;               // ptxkit_policy, alone or with PTXKIT_MEASURE_DEVICE_TIMES
  uint32_t cpu_threads;          // 0: one for each usable core
  uint32_t device_count;         // 0: device 0
  const int32_t* devices;        // `device_count` ordinals, used together
  uint64_t device_memory_bytes;  // limit for each device; 0: what is free, less a reserve
  uint64_t expected_bytes;       // raw bytes that the context will handle; 0: unknown. Of PTXKIT_POLICY_AUTOMATIC
  const char* cuda_library;      // null: the system's libcuda.so.1
  const char* calibration_path;  // where `ptx-pack --measure-rates` keeps measured rates; null: rates are unknown
  const ptxkit_hooks* hooks;     // log, allocate and release; copied
} ptxkit_context_options;  // 64 bytes
#define PTXKIT_CONTEXT_OPTIONS_DEFAULTS {sizeof(ptxkit_context_options), 0, 0, 0, 0, 0, 0, 0, 0, 0}

// Added to a policy: ptxkit_context_device_times() has times, for two more events around each copy and each launch.
#define PTXKIT_MEASURE_DEVICE_TIMES ((uint32_t)256)

typedef struct ptxkit_context ptxkit_context;

// Starts threads; opens the driver with PTXKIT_POLICY_GPU and PTXKIT_POLICY_MIXED. The caller owns *context.
PTXKIT_API ptxkit_status ptxkit_context_create(const ptxkit_context_options* options, ptxkit_context** context);
// Waits for what the context has begun. Null is accepted.
PTXKIT_API void ptxkit_context_destroy(ptxkit_context* context);
// What runs the work: "cpu, 16 threads, liblz4 1.9.4". The caller frees *text with ptxkit_string_free().
PTXKIT_API ptxkit_status ptxkit_context_describe(ptxkit_context* context, char** text);

typedef struct ptxkit_device_times {
  uint32_t struct_bytes;   // in: sizeof(ptxkit_device_times)
  uint32_t reserved0;
  double copy_to_device, kernel, copy_to_host;  // seconds of the devices' clocks; they overlap with each other
  uint64_t reserved[4];
} ptxkit_device_times;  // 64 bytes

// The times that devices have spent on the batches in host memory of this context, all together; LZ4 alone. 0 without
// PTXKIT_MEASURE_DEVICE_TIMES, and where the CPU did the work.
PTXKIT_API ptxkit_status ptxkit_context_device_times(ptxkit_context* context, ptxkit_device_times* times);

// Memory for items of batches, aligned to 16 bytes or more: page-locked where the context uses a GPU, which copies items
// in it directly. The caller releases *memory with ptxkit_host_memory_destroy(), or destroys the context.
PTXKIT_API ptxkit_status ptxkit_host_memory_create(ptxkit_context* context, size_t bytes, void** memory);
// PTXKIT_INVALID_VALUE: `memory` is not of this context. Null is accepted.
PTXKIT_API ptxkit_status ptxkit_host_memory_destroy(ptxkit_context* context, void* memory);

// ---- Batches in host memory -----------------------------------------------------------------------------------------

typedef enum ptxkit_flags {
  PTXKIT_REPRODUCIBLE = 1,         // the same bytes on every backend and with every number of threads
  PTXKIT_NO_CONTENT_CHECKSUM = 2,  // LZ4 and Zstandard streams
  PTXKIT_BLOCK_CHECKSUMS = 4,      // LZ4 streams
  PTXKIT_LINKED_BLOCKS = 8,        // LZ4 streams: smaller, and decoded by one thread
  PTXKIT_CONTENT_CHECKSUM = 16,    // Zstandard items of batches; streams have one unless PTXKIT_NO_CONTENT_CHECKSUM is set
  PTXKIT_SEEKABLE = 32             // Zstandard streams: many frames, and a table of them behind
} ptxkit_flags;

// The elements of items, streams and files of PTXKIT_CODEC_RANS. They may have any number of bytes: what is behind the last whole 128
// elements is stored as it is. Every bit pattern comes back, those of NaNs and denormals too. A wrong type costs ratio
// alone.
typedef enum ptxkit_dtype {
  PTXKIT_DTYPE_BYTES = 0,  // elements of `stride` bytes; each byte of an element is coded apart
  PTXKIT_DTYPE_BF16 = 1,
  PTXKIT_DTYPE_FP16 = 2,
  PTXKIT_DTYPE_FP32 = 3,
  PTXKIT_DTYPE_FP8_E4M3 = 4,
  PTXKIT_DTYPE_FP8_E5M2 = 5,
  PTXKIT_DTYPE_INT8 = 6
} ptxkit_dtype;

typedef struct ptxkit_batch_options {
  uint32_t struct_bytes;
  ptxkit_codec codec;
  ptxkit_framing framing;
  int32_t level;    // 0: the codec's default
  uint32_t flags;   // PTXKIT_REPRODUCIBLE; of Zstandard PTXKIT_CONTENT_CHECKSUM; or 0
  uint32_t dtype;   // ptxkit_dtype, of PTXKIT_CODEC_RANS; otherwise 0
  uint32_t stride;  // of PTXKIT_DTYPE_BYTES: 1, 2, 4 or 8 bytes, 0 for 1; otherwise 0
  uint32_t reserved[9];
} ptxkit_batch_options;  // 64 bytes
#define PTXKIT_BATCH_OPTIONS_DEFAULTS {sizeof(ptxkit_batch_options), PTXKIT_CODEC_LZ4, 0, 0, 0, 0, 0, {0}}

// The most bytes that compressing an item of `item_bytes` gives, whatever its content.
PTXKIT_API ptxkit_status ptxkit_compress_bound(const ptxkit_batch_options* options, size_t item_bytes, size_t* bound);

// Compresses `count` items. Item i is inputs[i] of input_bytes[i] bytes; it becomes outputs[i], of output_bytes[i] <=
// output_capacities[i] bytes. An item of 0 bytes may have a null input. Items need no alignment and may share inputs;
// outputs must overlap nothing. Works on the context's threads and devices, and returns when all is done.
//
// A status for each item is written to statuses[i], if `statuses` is not null: PTXKIT_OK or what is wrong with this
// item, which changes no other item; its output_bytes[i] is 0. The call returns PTXKIT_OK if all items are, otherwise
// the status of the first item that is not, or an error of the call as a whole, after which no result is valid.
PTXKIT_API ptxkit_status ptxkit_compress_batch(ptxkit_context* context, const ptxkit_batch_options* options,
                                               const void* const* inputs, const size_t* input_bytes, size_t count,
                                               void* const* outputs, const size_t* output_capacities,
                                               size_t* output_bytes, ptxkit_status* statuses);
// The same the other way round. `options` names codec and framing; level, flags, dtype and stride have no effect. Nothing
// is written outside of outputs[i] .. + output_capacities[i], whatever the input is.
PTXKIT_API ptxkit_status ptxkit_decompress_batch(ptxkit_context* context, const ptxkit_batch_options* options,
                                                 const void* const* inputs, const size_t* input_bytes, size_t count,
                                                 void* const* outputs, const size_t* output_capacities,
                                                 size_t* output_bytes, ptxkit_status* statuses);
// The raw size of one compressed item: from its header, or by parsing a raw block. A claim of the input: bound it before
// allocating. PTXKIT_UNSUPPORTED: PTXKIT_FRAMING_STORED, frames without a content size, gzip, zlib and deflate.
PTXKIT_API ptxkit_status ptxkit_decompressed_size(const ptxkit_batch_options* options, const void* input,
                                                  size_t input_bytes, size_t* raw_bytes);

// ---- Batches in device memory ---------------------------------------------------------------------------------------

// The kernels on one GPU, in its primary context, which the CUDA runtime uses as well.
typedef struct ptxkit_device ptxkit_device;

// Opens the driver and loads the kernels, which takes a second or more: make one for each GPU, and keep it.
// `cuda_library`: path of the driver; null: the system's libcuda.so.1. PTXKIT_NO_DEVICE: no driver, or no such device.
PTXKIT_API ptxkit_status ptxkit_device_create(int32_t ordinal, const char* cuda_library, ptxkit_device** device);
// The caller has waited for every stream to which a batch was submitted. Null is accepted.
PTXKIT_API void ptxkit_device_destroy(ptxkit_device* device);

typedef struct ptxkit_device_requirements {
  uint32_t struct_bytes;      // in: sizeof(ptxkit_device_requirements)
  uint32_t input_alignment;   // in bytes, of each item to compress; up to input_alignment - 1 bytes after it are read
  uint32_t output_alignment;  // of each output of a compression
  uint32_t temp_alignment;
  uint64_t temp_bytes;    // for ptxkit_device_compress(); may be 0
  uint64_t output_bytes;  // of each output of a compression: the most that an item of max_input_bytes takes
  uint64_t decompress_temp_bytes;  // for ptxkit_device_decompress(), of items of max_input_bytes raw bytes; may be 0
  uint32_t reserved[6];
} ptxkit_device_requirements;  // 64 bytes

// What ptxkit_device_compress() and ptxkit_device_decompress() need for `count` items of up to `max_input_bytes` raw
// bytes. Needs no GPU.
PTXKIT_API ptxkit_status ptxkit_device_query(const ptxkit_batch_options* options, size_t max_input_bytes, size_t count,
                                             ptxkit_device_requirements* requirements);

// Submits a batch to `stream`: a CUstream or cudaStream_t of this device, the default streams included (null, 1
// cudaStreamLegacy, 2 cudaStreamPerThread). Nothing is allocated, copied to or from the host, or waited for, so a stream
// that is being captured into a graph takes it. Results are valid once the stream has passed the call.
//
// `inputs`, `input_bytes`, `outputs`, `output_bytes` and `statuses` are arrays in device memory of `count` elements, and
// the addresses in them are of the device. Item i is inputs[i] of input_bytes[i] <= max_input_bytes bytes; it becomes
// outputs[i], with room for ptxkit_device_requirements.output_bytes, of output_bytes[i] bytes. `temp` is device memory
// in use until the stream has passed the call. The framings are raw, numcodecs, frame and hdf5. The bytes do not depend
// on the GPU; they are those of a reproducible batch in host memory, but for items of raw and numcodecs of one repeated
// byte of more than 64 KiB. Too few items of raw and numcodecs of at most 4096 bytes to fill the GPU have other bytes, in
// half the time, unless options has PTXKIT_REPRODUCIBLE.
//
// statuses[i], if `statuses` is not null, is PTXKIT_OK, PTXKIT_INVALID_VALUE (a null address), PTXKIT_MISALIGNED or
// PTXKIT_ITEM_TOO_LARGE; output_bytes[i] is then 0. The call itself returns an error if the arguments on the host cannot
// be right or the driver refuses them; then nothing was submitted. The order of the arguments is that of nvCOMP.
//
// Items of PTXKIT_CODEC_RANS have framing raw. Their addresses and those of their outputs are multiples of 16,
// otherwise the item's status is PTXKIT_MISALIGNED; that holds for ptxkit_device_decompress(), too. The bytes are those of a batch
// in host memory.
//
// Items of PTXKIT_CODEC_ZSTD, _GZIP and _ZLIB have framing frame, of PTXKIT_CODEC_DEFLATE framing raw; zstd, gzip and
// every other reader take them. Level 1 is fast, level 2, which is also level 0, smaller; there are no others. The bytes
// are not those of libzstd and libdeflate, which code in host memory. An item has at most 2^28 bytes, of gzip, zlib and
// deflate 65536; of larger ones ptxkit_device_requirements.output_bytes is 0. Items are encoded in rounds of as many as
// `temp` holds; ptxkit_device_requirements.temp_bytes is that of up to 4096 blocks of 64 KiB.
PTXKIT_API ptxkit_status ptxkit_device_compress(ptxkit_device* device, const void* const* inputs,
                                                const size_t* input_bytes, size_t max_input_bytes, size_t count,
                                                void* temp, size_t temp_bytes, void* const* outputs,
                                                size_t* output_bytes, const ptxkit_batch_options* options,
                                                ptxkit_status* statuses, void* stream);
// The same the other way round. Items have any alignment. Nothing is written outside of outputs[i] ..
// + output_capacities[i], whatever the input is. `output_bytes` may be null. Statuses of items are
// PTXKIT_CANNOT_DECOMPRESS and PTXKIT_OUTPUT_TOO_SMALL, too.
//
// Items of PTXKIT_CODEC_ZSTD are Zstandard frames of any encoder, in framing frame, and skippable ones; of more than
// 2^28 raw bytes they are PTXKIT_ITEM_TOO_LARGE. ptxkit_device_query() says how much `temp` they need, 3 2/3 bytes for
// each raw byte; an item of more raw bytes than `temp` suffices for is PTXKIT_ITEM_TOO_LARGE. Checksums are verified.
// PTXKIT_UNSUPPORTED: a frame that needs a dictionary, or a window above 2^32 bytes.
//
// Items of PTXKIT_CODEC_GZIP, _ZLIB and _DEFLATE are those of any encoder, of at most 2^28 bytes, and need no `temp`.
// A gzip item may have several members. Checksums are verified.
//
// Framings raw and numcodecs need no `temp`. Of framings frame and hdf5 all blocks of an item are decoded at the same
// time, if there are at most as many as fit `temp`: decompress_temp_bytes suffices for items of
// max_input_bytes in blocks of 64 KiB or more. An item of more blocks, of several frames, or of blocks that depend on
// each other or are not full is decoded by one warp, which is slow. Skippable frames are passed. Sizes and checksums of
// headers, blocks and content are verified: further statuses are PTXKIT_BAD_CHECKSUM, and PTXKIT_UNSUPPORTED for legacy
// frames and those that need a dictionary.
PTXKIT_API ptxkit_status ptxkit_device_decompress(ptxkit_device* device, const void* const* inputs,
                                                  const size_t* input_bytes, const size_t* output_capacities,
                                                  size_t* output_bytes, size_t count, void* temp, size_t temp_bytes,
                                                  void* const* outputs, const ptxkit_batch_options* options,
                                                  ptxkit_status* statuses, void* stream);
// The raw sizes of compressed items: output_bytes[i] becomes what ptxkit_device_decompress() makes of item i, given the
// room, or 0 where statuses[i] is not PTXKIT_OK. From the headers where the framing has a size, which is a claim of the
// item, or PTXKIT_UNSUPPORTED for a frame that has none; a raw block is followed through its sequences, without writing.
// The call is PTXKIT_UNSUPPORTED for codecs other than PTXKIT_CODEC_LZ4. Items of PTXKIT_CODEC_RANS have their raw size
// as a u64 at byte 8.
// The order of the arguments is that of nvCOMP.
PTXKIT_API ptxkit_status ptxkit_device_decompressed_sizes(ptxkit_device* device, const void* const* inputs,
                                                          const size_t* input_bytes, size_t* output_bytes, size_t count,
                                                          const ptxkit_batch_options* options, ptxkit_status* statuses,
                                                          void* stream);

// ---- Streams and files ----------------------------------------------------------------------------------------------

// Reads up to `bytes` bytes to `into`. Returns their number, 0 at the end of the input, or a negative number to fail
// the call with PTXKIT_IO.
typedef int64_t (*ptxkit_read_function)(void* user, void* into, size_t bytes);
// Writes all `bytes` bytes of `from`. Returns 0, or another number to fail the call with PTXKIT_IO.
typedef int (*ptxkit_write_function)(void* user, const void* from, size_t bytes);

typedef struct ptxkit_stream_options {
  uint32_t struct_bytes;
  ptxkit_codec codec;     // of decompression only for inputs whose first bytes do not tell
  int32_t level;          // compression only; 0: the codec's default
  uint32_t flags;         // compression only: ptxkit_flags
  uint32_t block_bytes;   // compression only; 0: the codec's default. LZ4: 64 KiB, 256 KiB, 1 or 4 MiB; .ptz: 2^12 to 2^20
  uint32_t reserved0;
  uint64_t content_bytes;  // compression only: of the whole input, for the frame's header; 0: unknown
  uint64_t memory_bytes;   // for all buffers of the stream; 0: as much as is fastest
  const ptxkit_hooks* hooks;  // progress and is_cancelled; used during the call only
  uint32_t dtype;             // compression only: ptxkit_dtype, of PTXKIT_CODEC_RANS; otherwise 0
  uint32_t stride;            // compression only, of PTXKIT_DTYPE_BYTES: 1, 2, 4 or 8 bytes, 0 for 1; otherwise 0
  uint32_t reserved[2];
} ptxkit_stream_options;  // 64 bytes
#define PTXKIT_STREAM_OPTIONS_DEFAULTS {sizeof(ptxkit_stream_options), PTXKIT_CODEC_LZ4, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}}

typedef struct ptxkit_totals {
  uint64_t raw_bytes, stored_bytes, frame_count, block_count;
} ptxkit_totals;

// Compresses everything that `read` gives into one LZ4 or Zstandard frame, gzip members of 64 KiB (BGZF), or a `.ptz`
// container, in bounded memory. `read` and `write`
// are called on threads of the library, one call of each at a time, never after the function has returned. `totals` may
// be null.
PTXKIT_API ptxkit_status ptxkit_compress_stream(ptxkit_context* context, const ptxkit_stream_options* options,
                                                ptxkit_read_function read, void* read_user, ptxkit_write_function write,
                                                void* write_user, ptxkit_totals* totals);
// Decompresses all frames or members, or the container, that `read` gives; which of them it is, its first bytes say, or
// options->codec where they do not: a skippable frame may stand before LZ4 and Zstandard frames. After an
// error, what was written is the raw bytes before the fault.
PTXKIT_API ptxkit_status ptxkit_decompress_stream(ptxkit_context* context, const ptxkit_stream_options* options,
                                                  ptxkit_read_function read, void* read_user,
                                                  ptxkit_write_function write, void* write_user, ptxkit_totals* totals);
// The same from file to file. The output appears complete under its name, replacing a file of that name, or not at all.
// A file that is replaced keeps its permissions; a new one has those of the input that the umask allows, without
// execution. The output cannot be the input.
PTXKIT_API ptxkit_status ptxkit_compress_file(ptxkit_context* context, const ptxkit_stream_options* options,
                                              const char* input_path, const char* output_path, ptxkit_totals* totals);
PTXKIT_API ptxkit_status ptxkit_decompress_file(ptxkit_context* context, const ptxkit_stream_options* options,
                                                const char* input_path, const char* output_path, ptxkit_totals* totals);

// ---- The analyzer ---------------------------------------------------------------------------------------------------

// Checks a PTX text against the catalogue, as `ptx-debug analyze` does. `options`, null or a JSON object:
//   name        string: of the text, in messages; "input.ptx"
//   format      "json" (docs/reports.md), "sarif" or "text"; "json"
//   falsify     true: all rules; false: those of critical and high severity
//   select, ignore, check   arrays of strings: rules by id or name; groups of rules
//   kernels     array of strings: names of the entries to examine; all
//   launch      object: a launch file (docs/analyzer.md)
//   assume_align   number: alignment in bytes of every pointer parameter
//   profile     "root-cause" or "pattern"
//   release     true: a release build, without a debug buffer
//   fail_on     string: "high", "medium:likely", "none"
//   min_score   number, 0 to 100
//   verbose     true: of "text", the verdict of every rule
// The caller frees *report with ptxkit_string_free(). *exit_code, if not null, is that of the program: 0 good, 2 poor, 3
// critical, 10 the text does not parse. The function returns PTXKIT_OK whatever the verdict is.
PTXKIT_API ptxkit_status ptxkit_analyze(const char* text, size_t text_bytes, const char* options, char** report,
                                        int* exit_code);

// ---- Running kernels, on the emulator or on a GPU -------------------------------------------------------------------

typedef struct ptxkit_module ptxkit_module;

// Loads a PTX text. `options`, null or a JSON object:
//   backend     "emulator" or "cuda"; "emulator"
//   name        string: of the text, in messages; "input.ptx"
//   sm          number: compute capability that the emulator has, 90 for 9.0; 121. Newer modules are refused
//   device      number: ordinal of the GPU; 0
//   cuda_library   string: path of the driver; the system's
PTXKIT_API ptxkit_status ptxkit_module_load(const char* text, size_t text_bytes, const char* options,
                                            ptxkit_module** module);
PTXKIT_API void ptxkit_module_destroy(ptxkit_module* module);
// The entries and their parameters as JSON: {"entries": [{"name", "parameters": [{"name", "size_bytes", "align_bytes"}],
// "required_block": [x, y, z], "static_shared_bytes"}]}. The caller frees *json with ptxkit_string_free().
PTXKIT_API ptxkit_status ptxkit_module_describe(ptxkit_module* module, char** json);

// An emulated device whose memory stays between launches and is shared by the modules loaded on it. Freed memory is not
// reused for as long as possible, so that a use after free is a fault. What has not been written counts as
// uninitialised, over launches as well.
typedef struct ptxkit_emulator ptxkit_emulator;

// `options`, null or a JSON object: sm, as above.
PTXKIT_API ptxkit_status ptxkit_emulator_create(const char* options, ptxkit_emulator** emulator);
// Modules that were loaded on it keep what they need. Null is accepted.
PTXKIT_API void ptxkit_emulator_destroy(ptxkit_emulator* emulator);
// As ptxkit_module_load(), on the emulator's device. `options`, null or a JSON object: name, as above.
PTXKIT_API ptxkit_status ptxkit_emulator_load(ptxkit_emulator* emulator, const char* text, size_t text_bytes,
                                              const char* options, ptxkit_module** module);
// `alignment`: a power of two; 0: 256, as cudaMalloc gives. The address is aligned to no more than that. `name`: in
// faults; null: "buffer".
PTXKIT_API ptxkit_status ptxkit_emulator_allocate(ptxkit_emulator* emulator, size_t bytes, uint32_t alignment,
                                                  const char* name, uint64_t* address);
// PTXKIT_INVALID_VALUE: `address` is not one that ptxkit_emulator_allocate() gave, or was released before.
PTXKIT_API ptxkit_status ptxkit_emulator_release(ptxkit_emulator* emulator, uint64_t address);
// Copies. PTXKIT_INVALID_VALUE: no one allocation holds the whole range.
PTXKIT_API ptxkit_status ptxkit_emulator_write(ptxkit_emulator* emulator, uint64_t address, const void* from,
                                               size_t bytes);
PTXKIT_API ptxkit_status ptxkit_emulator_read(ptxkit_emulator* emulator, uint64_t address, void* into, size_t bytes);

typedef enum ptxkit_argument_kind {
  PTXKIT_ARGUMENT_VALUE = 0,  // `data` holds the parameter's bytes, little-endian
  // A buffer of `bytes` bytes in host memory. The parameter is the address of a copy of exactly that size, so the
  // emulator knows its bounds. in: copied before the launch; out: copied back after it, and not initialised before.
  PTXKIT_ARGUMENT_IN = 1,
  PTXKIT_ARGUMENT_OUT = 2,
  PTXKIT_ARGUMENT_IN_OUT = 3,
  // `data` holds an address in the memory of the module's emulator (ptxkit_emulator_allocate()), as a value does. With
  // it the allocation that the address lies in takes `name`, which faults of this and later launches show.
  PTXKIT_ARGUMENT_ADDRESS = 4
} ptxkit_argument_kind;

typedef struct ptxkit_argument {
  uint32_t kind;       // ptxkit_argument_kind
  uint32_t alignment;  // of the copy, a power of two; 0: 256, as cudaMalloc gives. Emulator only
  void* data;
  size_t bytes;
  const char* name;  // in faults; null: the parameter's
} ptxkit_argument;   // 32 bytes

typedef struct ptxkit_launch_shape {
  uint32_t grid[3], block[3], cluster[3];  // 0 counts as 1
  uint32_t dynamic_shared_bytes;
  uint32_t reserved[6];
} ptxkit_launch_shape;  // 64 bytes

// Runs an entry to its end, with one argument for each parameter. `options`, null or a JSON object; all but the last
// for the emulator only:
//   checks      "standard", "all", "none" or a list such as "bounds,races"; "standard"
//   seed        number: 0 runs warps in order, others in a pseudo-random order; 0
//   adversarial true: with a seed, schedules that programmers do not expect
//   threads     number of host threads; 1
//   max_steps   number of warp instructions after which the launch ends with a fault; 0, no limit
//   max_faults  number; 16
// *report is JSON as `ptx-debug run --json` writes it: faults, statistics, what the kernel printed. *fault_count, if not
// null, is the number of faults. A launch with faults returns PTXKIT_OK: the report is the result. The caller frees
// *report with ptxkit_string_free(). On a GPU there is at most one fault. It destroys the device's context in this process:
// later calls that use the device fail with PTXKIT_DEVICE. Launches of one module run one after another.
PTXKIT_API ptxkit_status ptxkit_launch(ptxkit_module* module, const char* entry, const ptxkit_launch_shape* shape,
                                       const ptxkit_argument* arguments, size_t argument_count, const char* options,
                                       char** report, size_t* fault_count);

#ifdef __cplusplus
}
#endif

#endif  // PTXKIT_H
