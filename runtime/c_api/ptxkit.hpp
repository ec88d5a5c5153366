// C++20 over ptxkit.h: owners, spans, and results that hold a value or a failure. Header only; nothing throws but
// std::bad_alloc of the containers that are returned. Link ptxkit::c, or what pkg-config says of ptxkit.
//
//   auto context = ptxkit::api::Context::create();
//   auto packed = context->compress(bytes);           // Expected<std::vector<uint8_t>>
//   if (!packed) std::fputs(packed.error().text.c_str(), stderr);
//
// Units, limits and errors are those of ptxkit.h, whose structures are used as they are.
#ifndef PTXKIT_HPP
#define PTXKIT_HPP

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <ptxkit.h>

namespace ptxkit::api {

struct Failure {
  ptxkit_status status = PTXKIT_OK;
  std::string text;  // for people
};

// A value, or why there is none.
template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}            // NOLINT(*-explicit-*)
  Expected(Failure failure) : state_(std::in_place_index<1>, std::move(failure)) {}  // NOLINT(*-explicit-*)

  explicit operator bool() const { return state_.index() == 0; }
  bool has_value() const { return state_.index() == 0; }
  // Preconditions: there is a value; there is none.
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& value() {
    assert(has_value());
    return *std::get_if<0>(&state_);
  }
  const T& value() const {
    assert(has_value());
    return *std::get_if<0>(&state_);
  }
  const Failure& error() const {
    assert(!has_value());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Failure> state_;
};

struct Done {};  // the value of an operation that gives none

// The failure that the calling thread has just got.
inline Failure last_failure(ptxkit_status status) { return {status, ptxkit_last_error()}; }

namespace detail {

// A string of the library.
class String {
 public:
  String() = default;
  String(const String&) = delete;
  String& operator=(const String&) = delete;
  ~String() { ptxkit_string_free(text_); }
  char** out() { return &text_; }
  std::string str() const { return text_ == nullptr ? std::string() : std::string(text_); }

 private:
  char* text_ = nullptr;
};

// A function object, const or not, as the functions' pointer to it.
template <class Function>
void* user(Function& function) {
  return const_cast<void*>(static_cast<const void*>(&function));
}

inline const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace detail

using Bytes = std::span<const uint8_t>;
using MutableBytes = std::span<uint8_t>;
using ByteVector = std::vector<uint8_t>;

inline Expected<ptxkit_codec> find_codec(const std::string& name) {
  ptxkit_codec codec = 0;
  if (const auto status = ptxkit_codec_find(name.c_str(), &codec)) return last_failure(status);
  return codec;
}

inline Expected<ptxkit_codec_info> query(ptxkit_codec codec) {
  ptxkit_codec_info info{};
  info.struct_bytes = sizeof info;
  if (const auto status = ptxkit_codec_query(codec, &info)) return last_failure(status);
  return info;
}

inline ptxkit_context_options context_options() { return PTXKIT_CONTEXT_OPTIONS_DEFAULTS; }
inline ptxkit_batch_options batch_options(ptxkit_codec codec = PTXKIT_CODEC_LZ4,
                                          ptxkit_framing framing = PTXKIT_FRAMING_RAW,
                                          uint32_t dtype = PTXKIT_DTYPE_BYTES, uint32_t stride = 0) {
  ptxkit_batch_options options = PTXKIT_BATCH_OPTIONS_DEFAULTS;
  options.codec = codec;
  options.framing = framing;
  options.dtype = dtype;
  options.stride = stride;
  return options;
}
inline ptxkit_stream_options stream_options(ptxkit_codec codec = PTXKIT_CODEC_LZ4, uint32_t dtype = PTXKIT_DTYPE_BYTES,
                                            uint32_t stride = 0) {
  ptxkit_stream_options options = PTXKIT_STREAM_OPTIONS_DEFAULTS;
  options.codec = codec;
  options.dtype = dtype;
  options.stride = stride;
  return options;
}

inline Expected<size_t> compress_bound(size_t item_bytes, const ptxkit_batch_options& options = batch_options()) {
  size_t bound = 0;
  if (const auto status = ptxkit_compress_bound(&options, item_bytes, &bound)) return last_failure(status);
  return bound;
}
inline Expected<size_t> decompressed_size(Bytes item, const ptxkit_batch_options& options = batch_options()) {
  size_t raw_bytes = 0;
  if (const auto status = ptxkit_decompressed_size(&options, item.data(), item.size(), &raw_bytes))
    return last_failure(status);
  return raw_bytes;
}

// Memory of a context, which must outlive it. See ptxkit_host_memory_create().
class HostMemory {
 public:
  HostMemory(ptxkit_context* context, void* memory, size_t bytes) : memory_(memory, Release{context}), bytes_(bytes) {}
  MutableBytes bytes() const { return {static_cast<uint8_t*>(memory_.get()), bytes_}; }

 private:
  struct Release {
    ptxkit_context* context;
    void operator()(void* memory) const { ptxkit_host_memory_destroy(context, memory); }
  };
  std::unique_ptr<void, Release> memory_;
  size_t bytes_;
};

// Threads, and where there is one a GPU. Any thread may use it.
class Context {
 public:
  static Expected<Context> create(const ptxkit_context_options& options = context_options()) {
    ptxkit_context* context = nullptr;
    if (const auto status = ptxkit_context_create(&options, &context)) return last_failure(status);
    return Context(context);
  }

  Expected<std::string> description() {
    detail::String text;
    if (const auto status = ptxkit_context_describe(get(), text.out())) return last_failure(status);
    return text.str();
  }
  ptxkit_context* get() const { return context_.get(); }

  Expected<HostMemory> host_memory(size_t bytes) {
    void* memory = nullptr;
    if (const auto status = ptxkit_host_memory_create(get(), bytes, &memory)) return last_failure(status);
    return HostMemory(get(), memory, bytes);
  }
  Expected<ptxkit_device_times> device_times() {
    ptxkit_device_times times{};
    times.struct_bytes = sizeof times;
    if (const auto status = ptxkit_context_device_times(get(), &times)) return last_failure(status);
    return times;
  }

  // A batch in the caller's memory; results as in ptxkit_compress_batch(). `sizes` and `statuses` (which may be empty)
  // have a place for each item.
  Expected<Done> compress(std::span<const Bytes> inputs, std::span<const MutableBytes> outputs, std::span<size_t> sizes,
                          const ptxkit_batch_options& options = batch_options(),
                          std::span<ptxkit_status> statuses = {}) {
    return run(ptxkit_compress_batch, inputs, outputs, sizes, options, statuses);
  }
  Expected<Done> decompress(std::span<const Bytes> inputs, std::span<const MutableBytes> outputs,
                            std::span<size_t> sizes, const ptxkit_batch_options& options = batch_options(),
                            std::span<ptxkit_status> statuses = {}) {
    return run(ptxkit_decompress_batch, inputs, outputs, sizes, options, statuses);
  }

  // One item.
  Expected<ByteVector> compress(Bytes raw, const ptxkit_batch_options& options = batch_options()) {
    const auto bound = compress_bound(raw.size(), options);
    if (!bound) return bound.error();
    return one(ptxkit_compress_batch, raw, *bound, options);
  }
  // `raw_bytes`: the item's size, or an upper bound of it.
  Expected<ByteVector> decompress(Bytes packed, size_t raw_bytes,
                                  const ptxkit_batch_options& options = batch_options()) {
    return one(ptxkit_decompress_batch, packed, raw_bytes, options);
  }

  // read(MutableBytes into) -> bytes read, 0 at the end, or a negative number; write(Bytes) -> bool. Both are called on
  // threads of the library, and must not throw.
  template <class Read, class Write>
  Expected<ptxkit_totals> compress_stream(Read&& read, Write&& write,
                                          const ptxkit_stream_options& options = stream_options()) {
    return stream(ptxkit_compress_stream, read, write, options);
  }
  template <class Read, class Write>
  Expected<ptxkit_totals> decompress_stream(Read&& read, Write&& write,
                                            const ptxkit_stream_options& options = stream_options()) {
    return stream(ptxkit_decompress_stream, read, write, options);
  }

  Expected<ptxkit_totals> compress_file(const std::string& input_path, const std::string& output_path,
                                        const ptxkit_stream_options& options = stream_options()) {
    return file(ptxkit_compress_file, input_path, output_path, options);
  }
  Expected<ptxkit_totals> decompress_file(const std::string& input_path, const std::string& output_path,
                                          const ptxkit_stream_options& options = stream_options()) {
    return file(ptxkit_decompress_file, input_path, output_path, options);
  }

 private:
  struct Destroy {
    void operator()(ptxkit_context* context) const { ptxkit_context_destroy(context); }
  };
  explicit Context(ptxkit_context* context) : context_(context) {}

  template <class Function>
  Expected<Done> run(Function function, std::span<const Bytes> inputs, std::span<const MutableBytes> outputs,
                     std::span<size_t> sizes, const ptxkit_batch_options& options, std::span<ptxkit_status> statuses) {
    if (outputs.size() != inputs.size() || sizes.size() != inputs.size() ||
        (!statuses.empty() && statuses.size() != inputs.size()))
      return Failure{PTXKIT_INVALID_VALUE, "inputs, outputs, sizes and statuses differ in their number"};
    std::vector<const void*> from(inputs.size());
    std::vector<void*> to(inputs.size());
    std::vector<size_t> from_bytes(inputs.size()), to_bytes(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      from[i] = inputs[i].data();
      from_bytes[i] = inputs[i].size();
      to[i] = outputs[i].data();
      to_bytes[i] = outputs[i].size();
    }
    const auto status = function(get(), &options, from.data(), from_bytes.data(), inputs.size(), to.data(),
                                 to_bytes.data(), sizes.data(), statuses.empty() ? nullptr : statuses.data());
    if (status != PTXKIT_OK) return last_failure(status);
    return Done{};
  }

  template <class Function>
  Expected<ByteVector> one(Function function, Bytes input, size_t room, const ptxkit_batch_options& options) {
    ByteVector output(room);
    const void* const from = input.data();
    void* const to = output.data();
    const size_t from_bytes = input.size();
    size_t used = 0;
    if (const auto status = function(get(), &options, &from, &from_bytes, 1, &to, &room, &used, nullptr))
      return last_failure(status);
    output.resize(used);
    return output;
  }

  template <class Function, class Read, class Write>
  Expected<ptxkit_totals> stream(Function function, Read& read, Write& write, const ptxkit_stream_options& options) {
    const auto read_bytes = [](void* user, void* into, size_t count) noexcept -> int64_t {
      return static_cast<int64_t>(
          (*static_cast<std::remove_reference_t<Read>*>(user))(MutableBytes(static_cast<uint8_t*>(into), count)));
    };
    const auto write_bytes = [](void* user, const void* from, size_t count) noexcept -> int {
      return (*static_cast<std::remove_reference_t<Write>*>(user))(Bytes(static_cast<const uint8_t*>(from), count)) ? 0
                                                                                                                    : 1;
    };
    ptxkit_totals totals{};
    const auto status =
        function(get(), &options, read_bytes, detail::user(read), write_bytes, detail::user(write), &totals);
    if (status != PTXKIT_OK) return last_failure(status);
    return totals;
  }

  template <class Function>
  Expected<ptxkit_totals> file(Function function, const std::string& input_path, const std::string& output_path,
                               const ptxkit_stream_options& options) {
    ptxkit_totals totals{};
    if (const auto status = function(get(), &options, input_path.c_str(), output_path.c_str(), &totals))
      return last_failure(status);
    return totals;
  }

  std::unique_ptr<ptxkit_context, Destroy> context_;
};

// The kernels on one GPU, for batches in device memory. Any thread may use it.
class Device {
 public:
  // `cuda_library`: path of the driver; empty: the system's.
  static Expected<Device> create(int32_t ordinal = 0, const std::string& cuda_library = {}) {
    ptxkit_device* device = nullptr;
    if (const auto status = ptxkit_device_create(ordinal, detail::or_null(cuda_library), &device))
      return last_failure(status);
    return Device(device);
  }
  static Expected<ptxkit_device_requirements> query(size_t max_input_bytes, size_t count,
                                                    const ptxkit_batch_options& options = batch_options()) {
    ptxkit_device_requirements requirements{};
    requirements.struct_bytes = sizeof requirements;
    if (const auto status = ptxkit_device_query(&options, max_input_bytes, count, &requirements))
      return last_failure(status);
    return requirements;
  }

  // Arrays of `count` elements in device memory, and a CUstream or cudaStream_t: see ptxkit_device_compress().
  Expected<Done> compress(const void* const* inputs, const size_t* input_bytes, size_t max_input_bytes, size_t count,
                          void* temp, size_t temp_bytes, void* const* outputs, size_t* output_bytes, void* stream,
                          const ptxkit_batch_options& options = batch_options(), ptxkit_status* statuses = nullptr) {
    if (const auto status = ptxkit_device_compress(get(), inputs, input_bytes, max_input_bytes, count, temp, temp_bytes,
                                                   outputs, output_bytes, &options, statuses, stream))
      return last_failure(status);
    return Done{};
  }
  Expected<Done> decompress(const void* const* inputs, const size_t* input_bytes, const size_t* output_capacities,
                            size_t* output_bytes, size_t count, void* const* outputs, void* stream,
                            const ptxkit_batch_options& options = batch_options(), ptxkit_status* statuses = nullptr,
                            void* temp = nullptr, size_t temp_bytes = 0) {
    if (const auto status = ptxkit_device_decompress(get(), inputs, input_bytes, output_capacities, output_bytes, count,
                                                     temp, temp_bytes, outputs, &options, statuses, stream))
      return last_failure(status);
    return Done{};
  }
  Expected<Done> decompressed_sizes(const void* const* inputs, const size_t* input_bytes, size_t* output_bytes,
                                    size_t count, void* stream, const ptxkit_batch_options& options = batch_options(),
                                    ptxkit_status* statuses = nullptr) {
    if (const auto status = ptxkit_device_decompressed_sizes(get(), inputs, input_bytes, output_bytes, count, &options,
                                                             statuses, stream))
      return last_failure(status);
    return Done{};
  }
  ptxkit_device* get() const { return device_.get(); }

 private:
  struct Destroy {
    void operator()(ptxkit_device* device) const { ptxkit_device_destroy(device); }
  };
  explicit Device(ptxkit_device* device) : device_(device) {}

  std::unique_ptr<ptxkit_device, Destroy> device_;
};

struct Analysis {
  std::string report;
  int exit_code = 0;
};
// `options`: JSON, or empty.
inline Expected<Analysis> analyze(std::string_view ptx, const std::string& options = {}) {
  detail::String report;
  Analysis analysis;
  if (const auto status =
          ptxkit_analyze(ptx.data(), ptx.size(), detail::or_null(options), report.out(), &analysis.exit_code))
    return last_failure(status);
  analysis.report = report.str();
  return analysis;
}

struct LaunchReport {
  std::string json;
  size_t fault_count = 0;
};

// Arguments of a launch. The memory that they point to must live until it has returned.
template <class T>
ptxkit_argument value(const T& of) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {PTXKIT_ARGUMENT_VALUE, 0, const_cast<T*>(&of), sizeof of, nullptr};  // only read
}
template <class T>
ptxkit_argument value(const T&& of) = delete;  // a temporary would be gone before the launch
template <class T>
ptxkit_argument in(std::span<T> buffer, const char* name = nullptr) {
  using Plain = std::remove_const_t<T>;
  return {PTXKIT_ARGUMENT_IN, 0, const_cast<Plain*>(buffer.data()), buffer.size_bytes(), name};  // only read
}
template <class T>
ptxkit_argument out(std::span<T> buffer, const char* name = nullptr) {
  return {PTXKIT_ARGUMENT_OUT, 0, buffer.data(), buffer.size_bytes(), name};
}
template <class T>
ptxkit_argument in_out(std::span<T> buffer, const char* name = nullptr) {
  return {PTXKIT_ARGUMENT_IN_OUT, 0, buffer.data(), buffer.size_bytes(), name};
}

// PTX on the emulator, or on a GPU.
class Module {
 public:
  static Expected<Module> load(std::string_view ptx, const std::string& options = {}) {
    ptxkit_module* module = nullptr;
    if (const auto status = ptxkit_module_load(ptx.data(), ptx.size(), detail::or_null(options), &module))
      return last_failure(status);
    return Module(module);
  }

  Expected<std::string> description() {
    detail::String json;
    if (const auto status = ptxkit_module_describe(get(), json.out())) return last_failure(status);
    return json.str();
  }
  Expected<LaunchReport> launch(const std::string& entry, const ptxkit_launch_shape& shape,
                                std::span<const ptxkit_argument> arguments, const std::string& options = {}) {
    detail::String json;
    LaunchReport report;
    if (const auto status = ptxkit_launch(get(), entry.c_str(), &shape, arguments.data(), arguments.size(),
                                          detail::or_null(options), json.out(), &report.fault_count))
      return last_failure(status);
    report.json = json.str();
    return report;
  }
  ptxkit_module* get() const { return module_.get(); }

 private:
  struct Destroy {
    void operator()(ptxkit_module* module) const { ptxkit_module_destroy(module); }
  };
  explicit Module(ptxkit_module* module) : module_(module) {}

  std::unique_ptr<ptxkit_module, Destroy> module_;
};

}  // namespace ptxkit::api

#endif  // PTXKIT_HPP
