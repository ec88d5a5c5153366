#include "runtime/c_api/context.hpp"

#include <limits>

namespace ptxkit::c_api {
namespace {

Answer<library::Lz4Settings> settings_of(const ptxkit_context_options& options) {
  library::Lz4Settings settings;
  switch (options.policy) {
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
