#include "tools/ptx-debug/pipeline_cost.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/tree.hpp"
#include "runtime/codec/device/block_pipeline.hpp"
#include "runtime/codec/device/declared_costs.hpp"
#include "runtime/codec/device/emulator_machine.hpp"
#include "runtime/codec/device/kernel_call.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "support/plural.hpp"

namespace ptxkit::tools {
namespace {

// The passes of one direction. A pass's memory is the sum of its buffers; the peak is what a queue allocates, since it
// arranges all regions before the first launch.
Result<std::string> direction_table(std::string_view direction, const codec::LaunchPlan& plan,
                                    codec::DeclaredCosts& costs) {
  std::string rows;
  uint64_t passes = 0, total_bytes = 0, thread_count = 0;
  for (const codec::KernelCall& call : plan.calls) {
    const auto cost = costs.cost(call.kernel);
    if (!cost) return tl::unexpected(cost.error());
    const auto memory = (*cost)->memory_bytes(call.size);
    if (!memory) return tl::unexpected(memory.error());
    const uint64_t threads = uint64_t{call.grid_blocks} * call.block_threads * (*cost)->passes;
    rows += fmt::format("  {:<22} {:>10} {:>12} {:>14} {:>16}\n", call.kernel, call.grid_blocks, threads,
                        (*cost)->local_mem_bytes, *memory);
    passes += (*cost)->passes;
    total_bytes += *memory;
    thread_count += threads;
  }
  const size_t region_count = plan.regions.size();
  return fmt::format(
      "{}: {}\n  {:<22} {:>10} {:>12} {:>14} {:>16}\n{}  {:<22} {:>10} {:>12} {:>14} {:>16}\n"
      "  {:<22} {:>10} {:>12} {:>14} {:>16}\n",
      direction, plural(passes, "pass", "passes"), "kernel", "CTAs", "threads", "shared a CTA", "memory", rows,
      "total of the passes", "", thread_count, "", total_bytes, fmt::format("peak, {}", plural(region_count, "region")),
      "", "", "", codec::memory_bytes_of(plan.regions));
}

}  // namespace

Result<void> KernelTexts::add(container::PtxImage text) {
  const ptx::ParseResult parsed = ptx::parse(text.text, text.name);
  if (!parsed.diagnostics.empty()) {
    return fail("the text does not parse", text.name, "ptx-debug check says where");
  }
  const ptx::Function* entry = nullptr;
  size_t entry_count = 0;
  for (const ptx::Function& function : parsed.module.functions) {
    if (!function.is_entry) continue;
    entry = &function;
    ++entry_count;
  }
  if (entry_count != 1) return fail(fmt::format("expected one kernel, found {}", entry_count), text.name);
  const std::string name(entry->name);
  if (const auto other = texts_.find(name); other != texts_.end()) {
    return fail(fmt::format("a second text of {}; the first is {}", name, other->second.image.name), text.name,
                "name one text of each kernel, such as build/ptx/*.sm_80.ptx");
  }
  Text& added = texts_[name];
  added.image = std::move(text);
  added.target = parsed.module.target;
  for (const uint32_t parameter : entry->parameters) {
    std::string_view spelled = parsed.module.variables[parameter].name;
    if (spelled.starts_with(name + "_")) spelled.remove_prefix(name.size() + 1);
    added.parameter_names.emplace_back(spelled);
  }
  for (const std::string& parameter : added.parameter_names) {
    added.parameters.push_back({parameter, kernels::ParameterType::pointer, 0});
  }
  added.kernel = {texts_.find(name)->first,      added.target,     "release",   added.image.text,
                  entry->attributes.req_ntid[0], added.parameters, std::nullopt};
  return {};
}

const kernels::KernelImage* KernelTexts::find(std::string_view kernel) const {
  const auto found = texts_.find(kernel);
  return found == texts_.end() ? nullptr : &found->second.kernel;
}

Result<std::string> pipeline_table(format::PtzCodec codec, const KernelTexts& texts, uint32_t block_count,
                                   uint64_t block_bytes) {
  std::string missing;
  const auto machine = codec::make_emulator_machine(
      [&](std::string_view kernel, uint32_t, uint32_t) {
        const kernels::KernelImage* const image = texts.find(kernel);
        if (image == nullptr && missing.empty()) missing = kernel;
        return image;
      },
      1);
  codec::Executor executor(1);
  const format::PtzCodecRow row = format::row_of(codec);
  const auto pipeline = codec::make_block_pipeline(*machine, executor, codec);
  codec::DeclaredCosts costs(*machine);
  std::string out =
      fmt::format("{} ({}), {} of {} bytes\n", row.name, row.summary, plural(block_count, "block"), block_bytes);
  using Plan = Result<codec::LaunchPlan>;
  const auto encoding = [&](codec::MatchSearch search) {
    return [&, search]() -> Plan { return pipeline->encoding_plan(block_count, block_bytes, search); };
  };
  std::vector<std::pair<std::string_view, std::function<Plan()>>> directions;
  if (row.has_match_search()) {
    directions = {{"encode, matches from chains", encoding(codec::MatchSearch::chains)},
                  {"encode, matches from tables", encoding(codec::MatchSearch::tables)}};
  } else {
    directions = {{"encode", encoding(codec::MatchSearch::chains)}};
  }
  directions.emplace_back("decode", [&]() -> Plan { return pipeline->decoding_plan(block_count, block_bytes); });
  for (const auto& [name, make_plan] : directions) {
    auto table = make_plan().and_then([&](const auto& plan) { return direction_table(name, plan, costs); });
    if (!missing.empty()) {
      return fail(fmt::format("no text of {}, which {} launches", missing, row.name), "",
                  "name the texts of all its kernels, such as build/ptx/*.sm_80.ptx");
    }
    if (!table) return table;
    out += *table;
  }
  return out;
}

}  // namespace ptxkit::tools
