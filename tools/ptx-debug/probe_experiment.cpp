#include "tools/ptx-debug/probe_experiment.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/probes/probes.hpp"
#include "runtime/driver/context.hpp"

namespace ptxkit::tools {
namespace {

constexpr size_t kBufferBytes = 1024;
constexpr size_t kProcesses = 4;  // in parallel; they share the GPU, each with a context of its own

// "580.159.04" from the kernel module, or else the CUDA version of the library.
std::string driver_version(const driver::Driver& driver) {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string word;
  while (file >> word) {
    if (std::count(word.begin(), word.end(), '.') >= 1 && word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
  }
  return fmt::format("CUDA {}.{}", driver.version() / 1000, driver.version() % 1000 / 10);
}

Result<int> launch_probe(const driver::ContextPointer& context, const ProbeCase& which) {
  using driver::LaunchArgument;
  using kernels::ParameterType;
  const driver::LaunchContract contract{which.probe,
                                        32,
                                        {{"out", ParameterType::pointer, 256},
                                         {"scratch", ParameterType::pointer, 256},
                                         {"offset", ParameterType::u32, 0}}};
  auto kernel = driver::Kernel::load_unverified(
      context, kernels::probe_ptx(which.probe, kernels::ProbeOffset::parameter), contract, which.level);
  if (!kernel) return tl::unexpected(kernel.error());
  auto stream = driver::Stream::create(context);
  if (!stream) return tl::unexpected(stream.error());
  auto out = driver::DeviceMemory::allocate(context, kBufferBytes);
  auto scratch = driver::DeviceMemory::allocate(context, kBufferBytes);
  if (!out || !scratch) return tl::unexpected(out ? scratch.error() : out.error());
  for (const auto* memory : {&*out, &*scratch}) {
    if (auto filled = memory->fill(0, *stream); !filled) return tl::unexpected(filled.error());
  }
  const LaunchArgument arguments[] = {LaunchArgument::of(out->as<uint8_t>()),
                                      LaunchArgument::of(scratch->as<uint8_t>()),
                                      LaunchArgument::of(which.offset_bytes)};
  if (auto launched = kernel->launch(*stream, 1, 32, arguments); !launched) return tl::unexpected(launched.error());
  return context->api().stream_synchronize(stream->handle());
}

std::string output_of(std::FILE* pipe) {
  std::string output;
  char line[512];
  while (std::fgets(line, sizeof line, pipe) != nullptr) output += line;
  return output;
}

}  // namespace

Result<std::string> run_probe(const ProbeCase& which) {
  const auto names = kernels::probe_names();
  if (std::ranges::find(names, which.probe) == names.end()) return fail(fmt::format("no probe '{}'", which.probe));
  auto opened = driver::Driver::open();
  if (!opened) return fail(opened.error().error.what, "probe", "the experiment needs a GPU and its driver");
  const char* chosen = std::getenv("PTXKIT_DEVICE");
  auto context = driver::Context::create(std::move(*opened), chosen != nullptr ? std::atoi(chosen) : 0);
  if (!context) return tl::unexpected(context.error());
  const auto status = launch_probe(*context, which);
  if (!status) return tl::unexpected(status.error());
  const auto& info = (*context)->info();
  return fmt::format("status {} sm_{}{} driver {} device {}\n", *status, info.major, info.minor,
                     driver_version((*context)->driver()), info.name);
}

namespace {

// The message of a child process, to be quoted in a message of this one.
std::string without_prefix(std::string text) {
  constexpr std::string_view kName = "ptx-debug: ";
  if (text.starts_with(kName)) text.erase(0, kName.size());
  text.erase(text.find_last_not_of('\n') + 1);
  return text.empty() ? "its process ended without a result" : text;
}

}  // namespace

Result<ProbeOutcome> read_probe_line(const std::string& text) {
  ProbeOutcome outcome;
  char driver[64] = {};
  int name_at = 0;
  const size_t at = text.find("status ");
  const char* const line = at == std::string::npos ? "" : text.c_str() + at;
  if (std::sscanf(line, "status %d sm_%u driver %63[^d] device %n", &outcome.status, &outcome.family_sm, driver,
                  &name_at) < 3 ||
      name_at == 0)
    return fail(without_prefix(text), "the probe did not run");
  outcome.driver = driver;
  outcome.driver.erase(outcome.driver.find_last_not_of(' ') + 1);
  outcome.device = line + name_at;
  outcome.device.erase(outcome.device.find_first_of('\n'));
  return outcome;
}

Result<Experiment> run_probes(const std::vector<int>& levels, const std::string& date,
                              const std::function<std::string(const ProbeCase&)>& command) {
  std::vector<ProbeCase> cases;
  for (const std::string_view name : kernels::probe_names()) {
    for (const uint32_t offset : kProbeOffsets) {
      for (const int level : levels) cases.push_back({std::string(name), offset, level});
    }
  }
  std::vector<ProbeOutcome> outcomes;
  for (size_t begin = 0; begin < cases.size(); begin += kProcesses) {
    const size_t end = std::min(begin + kProcesses, cases.size());
    std::vector<std::FILE*> pipes;
    for (size_t i = begin; i < end; ++i) pipes.push_back(::popen(command(cases[i]).c_str(), "r"));
    std::optional<Error> error;
    for (std::FILE* const pipe : pipes) {
      auto outcome = read_probe_line(pipe != nullptr ? output_of(pipe) : "no process could be started");
      if (pipe != nullptr) ::pclose(pipe);
      if (!outcome) {
        error = outcome.error();
      } else {
        outcomes.push_back(std::move(*outcome));
      }
    }
    if (error) return tl::unexpected(*error);
  }

  Experiment experiment;
  experiment.run_count = cases.size();
  rules::EvidenceFile& evidence = experiment.evidence;
  evidence.device = outcomes.front().device;
  evidence.family_sm = outcomes.front().family_sm;
  evidence.driver = outcomes.front().driver;
  evidence.date = date;
  evidence.method = fmt::format(
      "ptx-debug probe: each of kernels/probes/ (PTX 8.0, sm_70) at each offset and at the compiler's levels {}, in a "
      "process of its own; CUresult of the wait",
      fmt::join(levels, ", "));
  evidence.offsets_bytes.assign(std::begin(kProbeOffsets), std::end(kProbeOffsets));
  for (size_t i = 0; i < cases.size(); i += levels.size()) {
    const ProbeCase& which = cases[i];
    if (evidence.probes.empty() || evidence.probes.back().probe != which.probe)
      evidence.probes.push_back({which.probe, {}});
    const int last = outcomes[i + levels.size() - 1].status;
    evidence.probes.back().status.push_back(static_cast<uint32_t>(last));
    for (size_t k = 0; k + 1 < levels.size(); ++k) {
      if (outcomes[i + k].status == last) continue;
      experiment.by_level.push_back(fmt::format("{} + {}: {} at level {}, {} at level {}", which.probe,
                                                which.offset_bytes, outcomes[i + k].status, levels[k], last,
                                                levels.back()));
    }
  }
  return experiment;
}

std::string to_json(const Experiment& experiment) {
  const rules::EvidenceFile& evidence = experiment.evidence;
  nlohmann::ordered_json offsets = nlohmann::ordered_json::array(), probes = nlohmann::ordered_json::object();
  for (const uint32_t offset : evidence.offsets_bytes) offsets.push_back(std::to_string(offset));
  for (const rules::ProbeResult& probe : evidence.probes) probes[probe.probe] = probe.status;
  nlohmann::ordered_json out{{"device", evidence.device},  {"target_family", fmt::format("sm_{}", evidence.family_sm)},
                             {"driver", evidence.driver},  {"date", evidence.date},
                             {"method", evidence.method},  {"result_by_offset", std::move(offsets)},
                             {"probes", std::move(probes)}};
  if (!experiment.by_level.empty())
    out["note"] = fmt::format("levels differ: {}", fmt::join(experiment.by_level, "; "));
  return out.dump(2) + "\n";
}

std::vector<std::string> differences(const rules::EvidenceFile& mine, const rules::EvidenceFile& other) {
  std::vector<std::string> found;
  for (const rules::ProbeResult& theirs : other.probes) {
    const auto here = std::ranges::find(mine.probes, theirs.probe, &rules::ProbeResult::probe);
    for (size_t i = 0; i < other.offsets_bytes.size(); ++i) {
      const uint32_t offset = other.offsets_bytes[i];
      const size_t column = std::ranges::find(mine.offsets_bytes, offset) - mine.offsets_bytes.begin();
      if (here == mine.probes.end() || column == mine.offsets_bytes.size()) {
        found.push_back(fmt::format("{} + {}: not run here", theirs.probe, offset));
      } else if (here->status[column] != theirs.status[i]) {
        found.push_back(
            fmt::format("{} + {}: {} here, {} there", theirs.probe, offset, here->status[column], theirs.status[i]));
      }
    }
  }
  return found;
}

}  // namespace ptxkit::tools
