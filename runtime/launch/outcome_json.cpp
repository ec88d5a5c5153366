#include "runtime/launch/outcome_json.hpp"

#include <span>
#include <utility>

#include <fmt/format.h>

#include "support/json.hpp"
#include "support/printable.hpp"

namespace ptxkit {
namespace {

OrderedJson place_json(const emulator::Site& site, const emulator::ThreadId& thread) {
  return {{"entry", site.entry},   {"line", site.line},       {"column", site.column}, {"ptx", site.text},
          {"source", site.source}, {"thread", thread.thread}, {"block", thread.block}};
}

OrderedJson to_json(std::span<const emulator::Fault> faults) {
  OrderedJson list = OrderedJson::array();
  for (const emulator::Fault& fault : faults) {
    OrderedJson each{{"kind", emulator::name(fault.kind)},
                     {"rule", emulator::rule(fault.kind)},
                     {"message", fault.message},
                     {"at", place_json(fault.site, fault.thread)}};
    if (fault.has_address) {
      each["address"] = fmt::format("{:#x}", fault.address);
      each["access_bytes"] = fault.access_bytes;
    }
    if (!fault.object.empty())
      each["object"] = {
          {"name", fault.object}, {"size_bytes", fault.object_bytes}, {"offset_bytes", fault.object_offset}};
    if (fault.undefined.bytes != 0) {
      auto ranges = OrderedJson::array();
      for (const auto& [offset_bytes, size_bytes] : fault.undefined.ranges)
        ranges.push_back({{"offset_bytes", offset_bytes}, {"size_bytes", size_bytes}});
      each["undefined"] = {{"size_bytes", fault.undefined.bytes},
                           {"range_count", fault.undefined.range_count},
                           {"ranges", std::move(ranges)},
                           {"space", fault.undefined.space}};
    }
    if (fault.has_other) {
      each["other"] = place_json(fault.other_site, fault.other_thread);
      each["other"]["message"] = fault.other_message;
    }
    list.push_back(std::move(each));
  }
  return list;
}

std::string dumped(const OrderedJson& json) {
  return printable_json(json.dump(2, ' ', false, OrderedJson::error_handler_t::replace)) + "\n";
}

}  // namespace

std::string outcome_json(const emulator::Outcome& outcome, const std::string& file, const std::string& entry) {
  OrderedJson out{{"schema", kRunSchema},
                  {"file", file},
                  {"entry", entry},
                  {"backend", "emulator"},
                  {"output", outcome.output},
                  {"faults", to_json(outcome.faults)},
                  {"notes", to_json(outcome.notes)}};
  if (outcome.lost_prints != 0)
    out["output_lost"] = {{"calls", outcome.lost_prints}, {"size_bytes", outcome.lost_print_bytes}};
  const emulator::Statistics& counts = outcome.statistics;
  out["statistics"] = {{"warp_instructions", counts.warp_instructions},
                       {"thread_instructions", counts.thread_instructions},
                       {"divergent_branches", counts.divergent_branches},
                       {"barriers", counts.barriers},
                       {"blocks", counts.cta_count}};
  return dumped(out);
}

std::string outcome_json(const GpuEnd& end, const std::string& file, const std::string& entry) {
  OrderedJson out{{"schema", kRunSchema},
                  {"file", file},
                  {"entry", entry},
                  {"backend", "cuda"},
                  {"device", end.device},
                  {"status", end.status},
                  {"timed_out", end.timed_out},
                  {"interrupted", end.interrupted},
                  {"faults", OrderedJson::array()}};
  if (const GpuEnd::Fault& fault = end.fault; !fault.kind.empty()) {
    out["faults"].push_back({{"kind", fault.kind}, {"message", fault.message}});
    if (!fault.next_step.empty()) out["faults"].back()["next_step"] = fault.next_step;
  }
  return dumped(out);
}

}  // namespace ptxkit
