// Faults: each is recorded once for each instruction, with the details that a report prints, and rendered as text.
#include <algorithm>

#include <fmt/format.h>

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

namespace {

struct KindText {
  std::string_view name, rule, text;
  bool stops;
};
constexpr KindText kKinds[] = {
#define FAULT(id, rule, stops, words) {#id, rule, words, stops},
#include "runtime/emulator/fault_kinds.def"
#undef FAULT
};
const KindText& row(FaultKind kind) { return kKinds[static_cast<size_t>(kind)]; }

// Strips blanks at both ends and reduces inner runs of blanks to one.
std::string collapse_blanks(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool blank = c == ' ' || c == '\t' || c == '\r';
    if (!blank)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// Resolves a faulting address to its space and sets it to the offset there.
ptx::Space resolve(ptx::Space space, Address& address) {
  if (space != ptx::Space::generic && space != ptx::Space::global) return space;
  switch (address >> kWindowShift) {
    case kSharedWindow >> kWindowShift:
      address &= kWindowMask;
      return ptx::Space::shared;
    case kLocalWindow >> kWindowShift:
      address &= kWindowMask;
      return ptx::Space::local;
    case kConstWindow >> kWindowShift:
      address &= kWindowMask;
      return ptx::Space::constant;
    case kParamWindow >> kWindowShift:
      address &= kWindowMask;
      return ptx::Space::param;
    default:
      address -= kGlobalBase;
      return ptx::Space::global;
  }
}

const FunctionImage& function_at(const ProgramImage& image, uint32_t pc) {
  return image.functions[image.sites[pc].function];
}

std::string register_name(const ProgramImage& image, uint32_t pc, Ref ref) {
  const FunctionImage& function = function_at(image, pc);
  auto it = std::upper_bound(function.slots.begin(), function.slots.end(),
                             std::pair<uint32_t, uint32_t>{ref & kRefIndex, 0xffffffffu});
  if (it == function.slots.begin()) return "a register";
  return image.module->functions[image.sites[pc].function].registers[std::prev(it)->second].name();
}

std::string triple(const std::array<uint32_t, 3>& v) { return fmt::format("({},{},{})", v[0], v[1], v[2]); }

}  // namespace

void name_object(const Warp& warp, ptx::Space space, Address address, Fault& fault) {
  const Launch& launch = *warp.cta->launch;
  Address offset = address;
  ptx::Space where = resolve(space, offset);
  const Object* object = nullptr;
  switch (where) {
    case ptx::Space::global:
      if (offset < launch.memory->limit) object = launch.memory->table.nearest(offset);
      break;
    case ptx::Space::shared:
      object = offset <= kWindowMask ? launch.shared.objects.nearest(offset) : nullptr;
      break;
    case ptx::Space::constant:
      object = launch.image->constant_objects.nearest(offset);
      break;
    case ptx::Space::local:
      for (const Frame* frame = warp.frame; frame && !object; frame = frame->caller)
        if (offset >= frame->local_base) {
          object = frame->function->local_objects.nearest(offset - frame->local_base);
          offset -= frame->local_base;
          break;
        }
      break;
    default:
      break;
  }
  if (!object) return;
  fault.object = object->name;
  fault.object_offset = static_cast<int64_t>(offset - object->begin);
  fault.object_bytes = object->size_bytes;
}

std::string register_name(const Warp& warp, Ref ref) { return register_name(warp, warp.pc, ref); }
std::string register_name(const Warp& warp, uint32_t pc, Ref ref) {
  return register_name(*warp.cta->launch->image, pc, ref);
}

std::string_view text(FaultKind kind) { return row(kind).text; }
std::string_view name(FaultKind kind) { return row(kind).name; }
std::string_view rule(FaultKind kind) { return row(kind).rule; }
bool stops(FaultKind kind) { return row(kind).stops; }

Site site_of(const ProgramImage& image, uint32_t pc) {
  Site site;
  if (pc >= image.sites.size()) return site;
  const CodeSite& code = image.sites[pc];
  const ptx::Function& function = image.module->functions[code.function];
  site.instruction = code.instruction;
  site.entry = std::string(function.name);
  if (code.instruction >= function.instructions.size()) return site;
  const ptx::Instruction& instruction = function.instructions[code.instruction];
  ptx::Position position = image.module->position(instruction.at);
  site.line = position.line;
  site.column = position.column;
  site.text = collapse_blanks(image.module->line(position.line));
  if (instruction.location != ptx::kNone) {
    const ptx::Location& location = image.module->locations[instruction.location];
    const ptx::SourceFile* file = image.module->file(location.file);
    site.source = fmt::format("{}:{}", file ? file->path : "?", location.line);
  }
  return site;
}

uint32_t line_of(const ProgramImage& image, uint32_t pc) {
  const CodeSite& code = image.sites[pc];
  const auto& instructions = image.module->functions[code.function].instructions;
  return code.instruction < instructions.size() ? image.module->position(instructions[code.instruction].at).line : 0;
}

ThreadId thread_of(const Launch& launch, uint64_t cta_turn, uint32_t warp, uint32_t lane) {
  const Dim3 block = launch.shape.block;
  uint32_t linear = warp * kLanes + lane;
  return {block_of(launch.shape, cta_turn), {linear % block.x, linear / block.x % block.y, linear / block.x / block.y}};
}

std::string where_text(const Launch& launch, uint32_t pc) {
  Site site = site_of(*launch.image, pc);
  return fmt::format("line {} ({})", site.line, site.text);
}

bool already_reported(const Warp& warp, FaultKind kind) {
  Launch& launch = *warp.cta->launch;
  std::lock_guard lock(launch.mutex);
  return launch.reported.contains({static_cast<uint32_t>(kind), warp.pc});
}

namespace {

Fault fault_of(const Warp& warp, FaultDetail detail) {
  const Cta& cta = *warp.cta;
  const Launch& launch = *cta.launch;
  Fault fault;
  fault.kind = detail.kind;
  fault.message = std::move(detail.message);
  fault.site = site_of(*launch.image, warp.pc);
  fault.thread = thread_of(launch, cta.turn, warp.index, detail.lane);
  if (detail.has_address) {
    fault.has_address = true;
    fault.address = detail.address;
    fault.access_bytes = detail.access_bytes;
    name_object(warp, detail.space, detail.address, fault);
    if (const Object* object = detail.object) {
      fault.object = object->name;
      fault.object_offset = static_cast<int64_t>((detail.address & kRankOffsetMask) - object->begin);
      fault.object_bytes = object->size_bytes;
    }
  }
  if (detail.has_other) {
    fault.has_other = true;
    fault.other_site = site_of(*launch.image, detail.other_pc);
    fault.other_thread = thread_of(launch, detail.other_cta == kSameCta ? cta.turn : detail.other_cta,
                                   detail.other_warp, detail.other_lane);
    fault.other_message = std::move(detail.other_message);
  }
  return fault;
}

}  // namespace

void report(Warp& warp, FaultDetail detail) {
  Cta& cta = *warp.cta;
  Launch& launch = *cta.launch;
  if (stops(detail.kind)) cta.stopped = true;
  std::lock_guard lock(launch.mutex);
  if (launch.faults.size() >= launch.options.max_faults) return;
  if (!launch.reported.emplace(static_cast<uint32_t>(detail.kind), warp.pc).second) return;
  launch.faults.emplace_back(cta.number, fault_of(warp, std::move(detail)));
  if (launch.faults.size() >= launch.options.max_faults) launch.stop = true;
}

void note(Warp& warp, FaultDetail detail) {
  Launch& launch = *warp.cta->launch;
  std::lock_guard lock(launch.mutex);
  if (launch.notes.size() >= launch.options.max_faults) return;
  if (!launch.reported.emplace(static_cast<uint32_t>(detail.kind), warp.pc).second) return;
  launch.notes.emplace_back(warp.cta->number, fault_of(warp, std::move(detail)));
}

uint32_t add_origin(Cta& cta, const Origin& origin) {
  constexpr size_t kMaxOrigins = 100000;
  uint32_t& last = cta.origin_of_place[uint64_t{origin.pc} << 1 | (origin.computed ? 1 : 0)];
  if (cta.origins.size() < kMaxOrigins) {
    cta.origins.push_back(origin);
    last = static_cast<uint32_t>(cta.origins.size());
  }
  return last;
}

void report_undefined(Warp& warp, FaultKind kind, Ref ref, uint32_t lanes) {
  Cta& cta = *warp.cta;
  const ProgramImage& image = *cta.launch->image;
  const uint32_t origin = origin_of(warp, ref);
  FaultDetail detail{.kind = kind, .lane = static_cast<unsigned>(std::countr_zero(lanes))};
  const std::string_view what = kind == FaultKind::uninitialised_branch  ? "predicate"
                                : kind == FaultKind::uninitialised_store ? "stored value"
                                                                         : "address";
  const std::string user = register_name(image, warp.pc, ref);
  if (origin == 0 || origin > cta.origins.size()) {
    detail.message = fmt::format("{} {} has never been written", what, user);
  } else {
    const Origin& from = cta.origins[origin - 1];
    detail.has_other = true;
    detail.other_pc = from.pc;
    detail.other_warp = from.warp;
    detail.other_lane = from.lane;
    if (from.space == ptx::Space::reg) {
      auto source = register_name(image, from.pc, static_cast<Ref>(from.address));
      detail.message = fmt::format("{} {} depends on {}, which has never been written", what, user, source);
      detail.other_message = "used here first";
    } else {
      if (from.space == ptx::Space::shared) detail.kind = FaultKind::uninitialised_shared;
      Fault place;
      name_object(warp, from.space, from.address, place);
      std::string object = place.object.empty() ? fmt::format("{:#x}", from.address)
                                                : fmt::format("'{}' + {}", place.object, place.object_offset);
      detail.message = fmt::format("{} {} depends on memory at {} that has never been written", what, user, object);
      detail.other_message = "loaded here";
    }
  }
  report(warp, std::move(detail));
}

namespace {

// `what` is "fault" or "note".
std::string render(const Fault& fault, std::string_view path, std::string_view what) {
  auto rule_text = rule(fault.kind).empty() ? std::string(text(fault.kind))
                                            : fmt::format("{} [{}]", text(fault.kind), rule(fault.kind));
  std::string out =
      fmt::format("{}:{}:{}: {}: {}: {}\n", path, fault.site.line, fault.site.column, what, rule_text, fault.message);
  auto line = [&](std::string_view label, const std::string& value) {
    out += fmt::format("  {:<8}{}\n", label, value);
  };
  auto thread = [](const ThreadId& id) { return fmt::format("{} of block {}", triple(id.thread), triple(id.block)); };
  if (!fault.site.text.empty()) line("ptx", fmt::format("{} in '{}'", fault.site.text, fault.site.entry));
  if (!fault.site.source.empty()) line("source", fault.site.source);
  line("thread", thread(fault.thread));
  if (fault.has_address && !fault.object.empty())
    line("object", fmt::format("'{}' of {} bytes, offset {}", fault.object, fault.object_bytes, fault.object_offset));
  if (fault.has_other) {
    line("other", fmt::format("{}: {}:{}: {} in '{}'", fault.other_message, path, fault.other_site.line,
                              fault.other_site.text, fault.other_site.entry));
    if (!fault.other_site.source.empty()) line("", fault.other_site.source);
    line("", "thread " + thread(fault.other_thread));
  }
  return out;
}

}  // namespace

std::string render(const Fault& fault, std::string_view path) { return render(fault, path, "fault"); }

std::string render(const Outcome& outcome, std::string_view path) {
  std::string out;
  for (const Fault& fault : outcome.faults) out += render(fault, path);
  for (const Fault& note : outcome.notes) out += render(note, path, "note");
  return out;
}

}  // namespace ptxkit::emulator
