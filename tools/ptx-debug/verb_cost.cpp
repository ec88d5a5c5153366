// `ptx-debug cost FILE...`: the memory and threads that each text's @pz_cost block states for inputs of given sizes.
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analyzer/analyze/place.hpp"
#include "analyzer/container/images.hpp"
#include "analyzer/inspect/statistics.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/rules/score.hpp"
#include "kernels/cost.hpp"
#include "runtime/codec/format/codecs.hpp"
#include "runtime/codec/format/ptz.hpp"
#include "support/plural.hpp"
#include "support/printable.hpp"
#include "support/result.hpp"
#include "tools/ptx-debug/inputs.hpp"
#include "tools/ptx-debug/option_values.hpp"
#include "tools/ptx-debug/pipeline_cost.hpp"
#include "tools/ptx-debug/sandbox_option.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kSizes[] = {256 << 10, 4 << 20};

struct CostOptions {
  Inputs inputs;
  std::vector<uint64_t> sizes;  // default: kSizes, or the block size of the pipeline's codec
  uint64_t item_count = 1;
  std::optional<uint64_t> coded_bytes;  // default: N bytes, because input that does not shrink is stored raw
  bool json = false;
  std::string pipeline;  // the name of a codec, or empty

  kernels::LaunchSize launch(uint64_t input_bytes) const {
    return {input_bytes, item_count, coded_bytes.value_or(input_bytes)};
  }
};

Result<std::string> table(const std::string& name, const kernels::KernelCost& cost, const CostOptions& options) {
  std::string out = fmt::format("{}: {} threads per byte of input, {} pass{}, {} bytes of shared memory a CTA\n",
                                printable_path(name), cost.threads_per_element, cost.passes,
                                cost.passes == 1 ? "" : "es", cost.local_mem_bytes);
  if (!cost.note.empty()) out += fmt::format("  {}\n", cost.note);
  out += fmt::format("  {:<16} {:<20}", "", fmt::format("N, in {}", plural(options.item_count, "item")));
  for (const uint64_t size : options.sizes) out += fmt::format(" {:>16}", size);
  out += '\n';
  const auto row = [&](std::string_view what, std::string_view formula, const auto& value) -> Result<void> {
    out += fmt::format("  {:<16} {:<20}", what, formula);
    for (const uint64_t size : options.sizes) {
      const Result<uint64_t> at = value(size);
      if (!at) return tl::unexpected(at.error());
      out += fmt::format(" {:>16}", *at);
    }
    out += '\n';
    return {};
  };
  for (const kernels::CostBuffer& buffer : cost.buffers) {
    const auto written =
        row(buffer.name, buffer.bytes.text(), [&](uint64_t n) { return buffer.bytes.evaluate(options.launch(n)); });
    if (!written) return tl::unexpected(written.error());
  }
  auto written = row("memory", "", [&](uint64_t n) { return cost.memory_bytes(options.launch(n)); });
  if (written) written = row("threads", "", [&](uint64_t n) { return cost.thread_count(n); });
  if (!written) return tl::unexpected(written.error());
  return out;
}

Result<std::string> json(const std::string& name, const kernels::KernelCost& cost, const CostOptions& options) {
  Json out = {{"path", name},          {"threads_per_element", cost.threads_per_element},
              {"passes", cost.passes}, {"local_mem_bytes", cost.local_mem_bytes},
              {"note", cost.note},     {"buffers", Json::array()},
              {"sizes", Json::array()}};
  for (const kernels::CostBuffer& buffer : cost.buffers) {
    out["buffers"].push_back({{"name", buffer.name}, {"bytes", buffer.bytes.text()}});
  }
  for (const uint64_t size : options.sizes) {
    const kernels::LaunchSize launch = options.launch(size);
    const auto memory = cost.memory_bytes(launch);
    if (!memory) return tl::unexpected(memory.error());
    const auto threads = cost.thread_count(size);
    if (!threads) return tl::unexpected(threads.error());
    out["sizes"].push_back({{"input_bytes", size},
                            {"item_count", launch.item_count},
                            {"coded_bytes", launch.coded_bytes},
                            {"memory_bytes", *memory},
                            {"threads", *threads}});
  }
  return printable_json(out.dump(2, ' ', false, Json::error_handler_t::replace));
}

// The block of a text, whose shared memory must cover what the text declares. A text that is only a block, or that does
// not parse as PTX, declares nothing.
Result<kernels::KernelCost> cost_of(const container::PtxImage& image) {
  auto cost = kernels::parse_kernel_cost(image.text);
  if (!cost) return cost;
  const ptx::ParseResult parsed = ptx::parse(image.text, image.name);
  for (const inspect::FunctionStatistics& function : inspect::statistics_of(parsed.module)) {
    if (!function.is_entry || function.shared_bytes <= cost->local_mem_bytes) continue;
    return fail(fmt::format("local_mem is {} bytes, and the shared variables of {} take {}", cost->local_mem_bytes,
                            function.name, function.shared_bytes),
                "", "declare what a CTA takes");
  }
  return cost;
}

int show_pipeline(const CostOptions& options) {
  const format::PtzCodecRow* const row = format::find_ptz_codec(options.pipeline);
  if (row == nullptr) {
    return usage_error("cost",
                       fmt::format("--pipeline: expected {}, found '{}'", format::ptz_codec_names(), options.pipeline));
  }
  if (options.json || options.coded_bytes) {
    return usage_error("cost", "--pipeline prints a table of the largest coded form: give neither --json nor --coded");
  }
  std::vector<uint64_t> sizes = options.sizes;
  if (sizes.empty()) sizes = {options.item_count << row->block_bits};
  constexpr uint64_t kMostBytes = uint64_t{1} << format::kPtzMaxBlockBits;
  constexpr uint64_t kMostBlocks = 1 << 12;  // sizes of launches have 32 bits
  if (options.item_count == 0 || options.item_count > kMostBlocks) {
    return usage_error(
        "cost", fmt::format("--items: a pipeline takes 1 to {} blocks, found {}", kMostBlocks, options.item_count));
  }
  for (const uint64_t size : sizes) {
    if (size % options.item_count == 0 && size != 0 && size / options.item_count <= kMostBytes) continue;
    return usage_error("cost", fmt::format("--n: {} bytes are not {} blocks of 1 to {} bytes, as large as each other",
                                           size, options.item_count, kMostBytes));
  }
  if (const auto what = fault(options.inputs)) return usage_error("cost", *what);
  if (const auto code = begin_sandbox(options.inputs.sandbox, {})) return *code;
  KernelTexts texts;
  rules::Status status = rules::Status::good;
  const auto take = [&](container::PtxImage image) {
    const auto added = texts.add(std::move(image));
    if (added) return;
    complain(added.error().message());
    status = std::max(status, rules::Status::unparsable);
  };
  const auto refuse = [&](const std::string&, const Error& error) {
    complain(error.message());
    status = rules::Status::unreadable;
  };
  for_each_image(options.inputs, [](container::PtxImage image, const std::string&) { return image; }, take, refuse);
  for (const uint64_t size : sizes) {
    if (status != rules::Status::good) break;
    const auto table =
        pipeline_table(row->codec, texts, static_cast<uint32_t>(options.item_count), size / options.item_count);
    if (!table) {
      complain(table.error().message());
      status = rules::Status::unparsable;
    } else if (!print(*table)) {
      status = rules::Status::unreadable;
    }
  }
  return rules::exit_code(status);
}

int show(CostOptions options) {
  if (!options.pipeline.empty()) return show_pipeline(options);
  if (options.sizes.empty()) options.sizes.assign(std::begin(kSizes), std::end(kSizes));
  const auto work = [&](container::PtxImage image, const std::string&) -> ImageResult {
    const auto cost = cost_of(image);
    const auto text = !cost          ? Result<std::string>(tl::unexpected(cost.error()))
                      : options.json ? json(image.name, *cost, options)
                                     : table(image.name, *cost, options);
    if (text) return {rules::Status::good, *text};
    Error error = text.error();
    error.where = error.where.empty() ? image.name : fmt::format("{}: {}", image.name, error.where);
    return {rules::Status::unparsable, {}, fmt::format("ptx-debug: {}\n", printable(error.message()))};
  };
  if (!options.json) return print_each_result("cost", options.inputs, work);
  return print_each_result("cost", options.inputs, work, json_list("ptxkit-cost-1", "kernels"));
}

}  // namespace

void add_cost(CLI::App& app, Action& action) {
  Verb verb(app, "cost", "memory and threads that the @pz_cost block of each FILE declares");
  const auto options = std::make_shared<CostOptions>();
  add_inputs(verb, options->inputs);
  verb.option("--n", options->sizes,
              "N, bytes of input of all items, separated by commas; 262144 and 4194304 without, or the block size of "
              "--pipeline")
      .type_name("N")
      .check(whole_number())
      .comma_separated()
      .repeated();
  verb.option("--items", options->item_count, "items that these bytes are of, as large as each other; 1 without")
      .type_name("COUNT")
      .check(whole_number());
  verb.option("--coded", options->coded_bytes, "M, bytes of the coded form of all items; as many as N without")
      .type_name("M")
      .check(whole_number());
  verb.option(
          "--pipeline", options->pipeline,
          "the launches that encode and decode COUNT blocks of a .ptz codec; FILE are the texts of its kernels, one "
          "of each")
      .type_name("CODEC");
  verb.flag("--json", options->json, "as JSON");
  verb.callback([options, &action] { action = [options] { return show(*options); }; });
}

}  // namespace ptxkit::tools
