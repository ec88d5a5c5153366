#include "runtime/c_api/context.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace ptxkit::c_api {
namespace {

Answer<library::Lz4Settings> settings_of(const ptxkit_context_options& options) {
  library::Lz4Settings settings;
  switch (options.policy & ~PTXKIT_MEASURE_DEVICE_TIMES) {
    case PTXKIT_POLICY_AUTOMATIC:
      settings.where = library::Where::automatic;
      break;
    case PTXKIT_POLICY_CPU:
      settings.where = library::Where::cpu;
      break;
    case PTXKIT_POLICY_GPU:
      settings.where = library::Where::gpu;
      break;
    case PTXKIT_POLICY_MIXED:
      settings.where = library::Where::both;
      break;
    default:
      return refuse(PTXKIT_INVALID_VALUE, "options: there is no policy " + std::to_string(options.policy));
  }
  constexpr uint32_t kMostThreads = 4096;
  if (options.cpu_threads > kMostThreads) {
    return refuse(PTXKIT_INVALID_VALUE, "options: cpu_threads is " + std::to_string(options.cpu_threads) +
                                            ", expected at most " + std::to_string(kMostThreads));
  }
  settings.cpu_threads = options.cpu_threads;
  if ((options.devices == nullptr) != (options.device_count == 0))
    return refuse(PTXKIT_INVALID_VALUE, "options: devices and device_count must both be given, or none of them");
  if (options.device_count != 0) settings.devices.assign(options.devices, options.devices + options.device_count);
  settings.measures_device_times = (options.policy & PTXKIT_MEASURE_DEVICE_TIMES) != 0;
  settings.device_memory_bytes = options.device_memory_bytes;
  settings.expected_bytes = options.expected_bytes;
  if (options.cuda_library != nullptr) settings.cuda_library = options.cuda_library;
  if (options.calibration_path != nullptr) settings.calibration_path = options.calibration_path;
  const ptxkit_hooks defaults = PTXKIT_HOOKS_DEFAULTS;
  const auto hooks = read_options(options.hooks, defaults, &ptxkit_hooks::reserved0, &ptxkit_hooks::reserved);
  if (!hooks) return tl::unexpected(hooks.error());
  if ((hooks->allocate == nullptr) != (hooks->release == nullptr))
    return refuse(PTXKIT_INVALID_VALUE, "hooks: allocate and release must both be given, or none of them");
  if (hooks->log != nullptr) {
    settings.log = [hooks = *hooks](library::LogLevel level, std::string_view message) {
      hooks.log(hooks.user, level == library::LogLevel::warning, std::string(message).c_str());
    };
  }
  if (hooks->allocate != nullptr) {
    settings.allocate = [hooks = *hooks](size_t size_bytes) -> std::shared_ptr<uint8_t> {
      auto* const memory = static_cast<uint8_t*>(hooks.allocate(hooks.user, size_bytes));
      if (memory == nullptr) return nullptr;
      return {memory, [hooks, size_bytes](uint8_t* first) { hooks.release(hooks.user, first, size_bytes); }};
    };
  }
  return settings;
}

Answer<> create(const ptxkit_context_options* options, ptxkit_context** context) {
  if (auto given = require(context, "context"); !given) return given;
  *context = nullptr;
  const ptxkit_context_options defaults = PTXKIT_CONTEXT_OPTIONS_DEFAULTS;
  const auto read = read_options(options, defaults);
  if (!read) return tl::unexpected(read.error());
  auto settings = settings_of(*read);
  if (!settings) return tl::unexpected(settings.error());
  auto lz4 = library::Lz4::open(std::move(*settings));
  if (!lz4) return refuse(PTXKIT_DEVICE, lz4.error());
  *context = new ptxkit_context{std::move(*lz4)};
  return {};
}

Answer<> create_memory(ptxkit_context& context, size_t bytes, void** memory) {
  *memory = nullptr;
  auto made = context.lz4.host_memory(std::max<size_t>(bytes, 1));
  if (!made) return refuse(PTXKIT_NO_MEMORY, made.error());
  void* const first = made->bytes().data();
  const std::lock_guard lock(context.mutex);
  context.memories.emplace(first, std::move(*made));
  *memory = first;
  return {};
}

Answer<> destroy_memory(ptxkit_context& context, void* memory) {
  if (memory == nullptr) return {};
  decltype(context.memories)::node_type released;  // its end may wait for a device, so it outlives the lock
  const std::lock_guard lock(context.mutex);
  released = context.memories.extract(memory);
  if (released.empty())
    return refuse(PTXKIT_INVALID_VALUE, fmt::format("{} is no memory of this context", fmt::ptr(memory)));
  return {};
}

}  // namespace
}  // namespace ptxkit::c_api

using namespace ptxkit;

ptxkit_status ptxkit_context_create(const ptxkit_context_options* options, ptxkit_context** context) {
  return c_api::call(__func__, [&] { return c_api::create(options, context); });
}

void ptxkit_context_destroy(ptxkit_context* context) { delete context; }

ptxkit_status ptxkit_context_describe(ptxkit_context* context, char** text) {
  return c_api::call(__func__, [&]() -> c_api::Answer<> {
    if (auto given = c_api::require(context, "context"); !given) return given;
    if (auto given = c_api::require(text, "text"); !given) return given;
    *text = c_api::new_string(context->lz4.description());
    return {};
  });
}

ptxkit_status ptxkit_context_device_times(ptxkit_context* context, ptxkit_device_times* times) {
  return c_api::call(__func__, [&]() -> c_api::Answer<> {
    if (auto given = c_api::require(context, "context"); !given) return given;
    if (auto given = c_api::require(times, "times"); !given) return given;
    if (times->struct_bytes != sizeof *times) {
      return c_api::refuse(PTXKIT_INVALID_VALUE,
                           fmt::format("times: struct_bytes is {}, expected {}", times->struct_bytes, sizeof *times));
    }
    const std::lock_guard lock(context->mutex);
    *times = {sizeof *times, 0, context->times.h2d, context->times.kernel, context->times.d2h, {}};
    return {};
  });
}

ptxkit_status ptxkit_host_memory_create(ptxkit_context* context, size_t bytes, void** memory) {
  return c_api::call(__func__, [&]() -> c_api::Answer<> {
    if (auto given = c_api::require(context, "context"); !given) return given;
    if (auto given = c_api::require(memory, "memory"); !given) return given;
    return c_api::create_memory(*context, bytes, memory);
  });
}

ptxkit_status ptxkit_host_memory_destroy(ptxkit_context* context, void* memory) {
  return c_api::call(__func__, [&]() -> c_api::Answer<> {
    if (auto given = c_api::require(context, "context"); !given) return given;
    return c_api::destroy_memory(*context, memory);
  });
}
