#include "runtime/launch/sized_launch.hpp"

#include <bit>

#include "runtime/emulator/emulator.hpp"

namespace ptxkit {
namespace {

constexpr unsigned kMaxGrowths = 12;  // of all buffers of a launch
constexpr uint64_t kMaxSteps = 500'000;

}  // namespace

bool has_given_size(std::string_view parameter, const flow::LaunchFacts* facts) {
  if (facts == nullptr) return false;
  const auto known = facts->parameters.find(parameter);
  return known != facts->parameters.end() && (known->second.size_bytes != 0 || !known->second.members.empty() ||
                                              !known->second.content.empty() || !known->second.object.empty());
}

std::optional<Growth> growth_for(const emulator::Fault& fault, const EmulatedLaunch& run, const GeneratedLaunch& launch,
                                 const flow::LaunchFacts* facts, uint64_t most_bytes) {
  if (fault.kind != emulator::FaultKind::out_of_bounds || !fault.has_address) return std::nullopt;
  std::optional<Growth> nearest;
  uint64_t begin = 0;
  for (size_t parameter = 0, number = 0; parameter < launch.parameters.size(); ++parameter)
    for (const GeneratedBuffer& buffer : launch.parameters[parameter].buffers) {
      const uint64_t address = run.addresses[number++];
      if (address > fault.address || address < begin) continue;
      begin = address;
      nearest = {parameter, buffer.offset, 0};
    }
  const uint64_t needed_bytes = fault.address - begin + fault.access_bytes;
  if (!nearest || needed_bytes > most_bytes || has_given_size(launch.parameters[nearest->parameter].name, facts))
    return std::nullopt;
  nearest->size_bytes = std::bit_ceil(needed_bytes);
  return nearest;
}

void grow(GeneratedLaunch& launch, const Growth& growth) {
  for (GeneratedBuffer& buffer : launch.parameters[growth.parameter].buffers)
    if (buffer.offset == growth.offset) resize(buffer, growth.size_bytes);
}

bool size(const ptx::Module& module, const ptx::Function& kernel, const flow::LaunchFacts* facts,
          GeneratedLaunch& launch, uint64_t most_bytes, emulator::LaunchOptions options) {
  options.checks = emulator::kCheckBounds;
  options.max_faults = 1;
  GeneratedLaunch roomy = launch;
  for (unsigned growth = 0; growth < kMaxGrowths; ++growth) {
    emulator::Device device;
    const auto run = emulate(device, module, kernel, roomy, options);
    if (!run) return false;
    if (run->outcome.ok() || run->outcome.faults.front().kind == emulator::FaultKind::out_of_steps) {
      launch = std::move(roomy);
      return true;
    }
    const auto wanted = growth_for(run->outcome.faults.front(), *run, roomy, facts, most_bytes);
    if (!wanted) return run->outcome.faults.front().kind != emulator::FaultKind::out_of_bounds;
    grow(roomy, *wanted);
  }
  return false;
}

Result<GeneratedLaunch> generate_sized_launch(const ptx::Module& module, const ptx::Function& kernel,
                                              const flow::LaunchFacts* facts, unsigned variant, uint64_t most_bytes) {
  auto made = generate_launch(module, kernel, facts, variant);
  if (made) made->align_bytes = kApartBytes;
  if (made) size(module, kernel, facts, *made, most_bytes, {.max_steps = kMaxSteps});
  return made;
}

}  // namespace ptxkit
