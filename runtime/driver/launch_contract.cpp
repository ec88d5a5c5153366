#include "runtime/driver/launch_contract.hpp"

#include <fmt/format.h>
#include <xxhash.h>

namespace ptxkit::driver {
namespace {

std::string xxh128_hex(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string_view name_of(kernels::ParameterType type) {
  switch (type) {
    case kernels::ParameterType::pointer:
      return "a pointer";
    case kernels::ParameterType::u32:
      return "a 4-byte scalar";
    case kernels::ParameterType::u64:
      return "an 8-byte scalar";
    case kernels::ParameterType::i32:
      return "a signed 4-byte scalar";
    case kernels::ParameterType::i64:
      return "a signed 8-byte scalar";
    case kernels::ParameterType::f32:
      return "a float";
    case kernels::ParameterType::f64:
      return "a double";
  }
  return "?";
}

}  // namespace

Result<void> check_verdict(const kernels::KernelImage& image) {
  const std::string where = fmt::format("kernel {} for {}, {}", image.name, image.target, image.variant);
  const char* const todo = "judge the text with ptx-debug analyze --falsify, or load it with load_unverified";
  if (!image.verdict) return fail("expected a verdict of the analyzer, found none", where, todo);
  const kernels::Verdict& verdict = *image.verdict;
  if (const std::string hash = xxh128_hex(image.ptx); hash != verdict.xxh128_hex) {
    return fail(fmt::format("the verdict is for another text: expected hash {}, found {}", verdict.xxh128_hex, hash),
                where, todo);
  }
  if (verdict.critical_count != 0) {
    return fail(fmt::format("expected no critical finding, found {}", verdict.critical_count), where, todo);
  }
  if (verdict.score < kMinVerdictScore) {
    return fail(fmt::format("expected a score of {} or more, found {}", kMinVerdictScore, verdict.score), where, todo);
  }
  return {};
}

LaunchContract contract_of(const kernels::KernelImage& image) {
  return {std::string(image.name), image.block_threads, {image.parameters.begin(), image.parameters.end()}};
}

Result<void> check_launch(const LaunchContract& contract, uint32_t grid_blocks, uint32_t block_threads,
                          std::span<const LaunchArgument> arguments) {
  const std::string where = "launch of " + contract.name;
  if (grid_blocks == 0) return fail("expected a grid of at least one block, found 0", where);
  if (block_threads != contract.block_threads) {
    return fail(fmt::format("expected blocks of {} threads, as the kernel's .reqntid has it, found {}",
                            contract.block_threads, block_threads),
                where);
  }
  if (arguments.size() != contract.parameters.size()) {
    return fail(fmt::format("expected {} arguments, found {}", contract.parameters.size(), arguments.size()), where);
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const kernels::KernelParameter& parameter = contract.parameters[i];
    if (arguments[i].type != parameter.type) {
      return fail(fmt::format("parameter {} ({}): expected {}, found {}", i, parameter.name, name_of(parameter.type),
                              name_of(arguments[i].type)),
                  where);
    }
    if (parameter.pointee_alignment_bytes > 1 && arguments[i].value % parameter.pointee_alignment_bytes != 0) {
      return fail(fmt::format("parameter {} ({}): expected an address aligned to {} bytes, found 0x{:x}", i,
                              parameter.name, parameter.pointee_alignment_bytes, arguments[i].value),
                  where);
    }
  }
  return {};
}

}  // namespace ptxkit::driver
