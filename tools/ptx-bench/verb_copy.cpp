#include "tools/ptx-bench/gpu_lz4.hpp"
#include "tools/ptx-bench/verb.hpp"

namespace ptxkit::bench {

Result<driver::ContextPointer> open_device(int ordinal) {
  auto driver = driver::Driver::open();
  if (!driver) return tl::unexpected(driver.error().error);
  return driver::Context::create(std::move(*driver), ordinal);
}

Result<void> measure_ceilings(const driver::ContextPointer& context, const Settings& settings, Measurements& all) {
  const auto seconds = measure_copy(context, settings.size_bytes, settings.repetition);
  if (!seconds) return tl::unexpected(seconds.error());
  all.device = context->info().name;
  // Every byte is read and written.
  all.copied_bytes_per_second = 2 * static_cast<double>(settings.size_bytes) / *seconds;
  all.warp_instructions_per_second = context->info().warp_instructions_per_second();
  return {};
}

Result<Measurements> run_copy(const Settings& settings) {
  const auto context = open_device(settings.device);
  if (!context) return tl::unexpected(context.error());
  const auto seconds = measure_copy(*context, settings.size_bytes, settings.repetition);
  if (!seconds) return tl::unexpected(seconds.error());
  Measurements all;
  all.device = (*context)->info().name;
  // Every byte is read and written.
  all.rows.push_back({"-", "copy within the device, read + write", 0, 2 * settings.size_bytes, 0, *seconds});
  return all;
}

}  // namespace ptxkit::bench
