#include "runtime/launch/differential.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "runtime/driver/context.hpp"
#include "runtime/driver/driver.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/launch/generated_bytes.hpp"
#include "runtime/launch/generated_launch.hpp"
#include "runtime/launch/object_spec.hpp"
#include "runtime/launch/sized_launch.hpp"
#include "support/result.hpp"

namespace ptxkit {

using rules::Differential;

namespace {

// One schedule in the expected order, one random, two adversarial.
struct Schedule {
  uint64_t seed;
  bool is_adversarial;
  std::string_view name;
};
constexpr Schedule kSchedules[] = {{0, false, "with the warps in order"},
                                   {1, false, "in schedule random:1"},
                                   {1, true, "in schedule adversarial:1"},
                                   {2, true, "in schedule adversarial:2"}};
constexpr uint64_t kMaxSteps = 2'000'000;
constexpr uint64_t kMaxGrownBytes = 4 << 20;
constexpr int kHighestLevel = 4;  // of the driver's compiler

Differential not_run(std::string why) { return {Differential::Outcome::not_run, std::move(why)}; }

struct Run {
  std::vector<std::byte> memory;                          // contents of all buffers, concatenated
  std::string trouble;                                    // why the run did not end normally
  bool has_died = false;                                  // of a fault on a GPU, which invalidates the context
  std::vector<std::pair<std::string, size_t>> buffers{};  // their parameters or variables, and where each begins
};

std::vector<std::pair<std::string, size_t>> places_of(const GeneratedLaunch& launch) {
  std::vector<std::pair<std::string, size_t>> places;
  size_t at = 0;
  for (const auto* list : {&launch.parameters, &launch.variables})
    for (const GeneratedParameter& each : *list)
      for (const GeneratedBuffer& buffer : each.buffers) {
        places.emplace_back(each.name, at);
        at += buffer.bytes.size();
      }
  return places;
}

Run run_once(const ptx::Module& module, const ptx::Function& kernel, const flow::LaunchFacts* facts,
             const Schedule& schedule) {
  Run run;
  emulator::Device device;
  const auto generated = generate_sized_launch(module, kernel, facts, 0, kMaxGrownBytes);
  if (!generated) return {{}, generated.error().message()};
  const auto emulated = emulate(device, module, kernel, *generated,
                                {.checks = emulator::kCheckStandard,
                                 .schedule_seed = schedule.seed,
                                 .adversarial = schedule.is_adversarial,
                                 .max_steps = kMaxSteps});
  if (!emulated) return {{}, emulated.error().message()};
  const emulator::Outcome& outcome = emulated->outcome;
  if (!outcome.ok())
    return {{},
            fmt::format("the sanitizer has a fault {}, which makes a difference mean nothing: {} [{}]", schedule.name,
                        outcome.faults.front().message, emulator::rule(outcome.faults.front().kind))};
  run.buffers = places_of(*generated);
  size_t number = 0;
  for (const GeneratedBuffer* buffer : all_buffers(*generated)) {
    const emulator::Address address = emulated->addresses[number++];
    if (buffer->bytes.empty()) continue;
    const size_t at = run.memory.size();
    run.memory.resize(at + buffer->bytes.size());
    if (auto read = device.read(address, std::span(run.memory).subspan(at)); !read) return {{}, read.error().message()};
  }
  return run;
}

// Whether the results may differ between machines: .approx, .full, and instructions that are always approximate.
bool is_approximate(const ptx::Function& kernel) {
  return std::ranges::any_of(kernel.instructions, [&](const ptx::Instruction& instruction) {
    return ptx::facts_of(kernel, instruction).approximates;
  });
}

// Whether what is left in memory may depend on the order of updates without any race: sums of floating point numbers,
// places that are handed out by a counter.
bool has_updates(const ptx::Module& module) {
  return std::ranges::any_of(module.functions, [](const ptx::Function& function) {
    return std::ranges::any_of(function.instructions, [](const ptx::Instruction& instruction) {
      return instruction.op == ptx::Op::atom || instruction.op == ptx::Op::red;
    });
  });
}

// Memory of the buffers of a launch on a GPU.
class GpuBuffers {
 public:
  GpuBuffers(const driver::ContextPointer& context, const driver::Stream& stream, uint32_t address_bytes)
      : context_(context), stream_(stream), address_bytes_(address_bytes) {}

  // PlaceBuffer of argument_of().
  Result<std::vector<std::byte>> operator()(const GeneratedBuffer& buffer) {
    if (!buffer.object.empty()) {
      const auto spec = parse_object_spec(buffer.object);
      if (!spec) return tl::unexpected(spec.error());
      auto object = GpuObject::create(context_, *spec, buffer.bytes, stream_);
      if (!object) return tl::unexpected(object.error());
      auto value = object->value();
      placed_.push_back({std::move(*object), buffer.bytes.size()});
      return value;
    }
    auto memory = driver::DeviceMemory::allocate(context_, buffer.bytes.size());
    if (!memory) return tl::unexpected(memory.error());
    const auto* const bytes = reinterpret_cast<const uint8_t*>(buffer.bytes.data());
    if (auto done = memory->upload({bytes, buffer.bytes.size()}, stream_); !done) return tl::unexpected(done.error());
    const uint64_t address = memory->handle();
    placed_.push_back({std::move(*memory), buffer.bytes.size()});
    return address_value(address, address_bytes_);
  }

  // Sets a variable of the kernel's module to bytes or binds it to an object.
  Result<void> set(const driver::Kernel& kernel, const GeneratedParameter& variable) {
    const auto value = argument_of(variable, std::ref(*this));
    if (!value) return tl::unexpected(value.error());
    if (!variable.buffers.empty())
      return std::get<GpuObject>(placed_.back().memory).bind(kernel.handle(), variable.name);
    auto done = kernel.write_variable(stream_, variable.name, *value);
    return done ? stream_.wait() : done;  // `value` must live until then
  }

  // Concatenates the contents of all buffers; complete after the stream has been waited for.
  Result<void> download(std::vector<std::byte>& into) const {
    size_t size_bytes = 0;
    for (const Placed& each : placed_) size_bytes += each.size_bytes;
    into.resize(size_bytes);
    size_t at = 0;
    Result<void> done;
    for (const Placed& each : placed_) {
      const std::span bytes = std::span(into).subspan(at, each.size_bytes);
      at += each.size_bytes;
      if (bytes.empty() || !done) continue;
      if (const auto* object = std::get_if<GpuObject>(&each.memory))
        done = object->download(bytes, stream_);
      else
        done = std::get<driver::DeviceMemory>(each.memory)
                   .download({reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}, stream_);
    }
    return done;
  }

 private:
  struct Placed {
    std::variant<driver::DeviceMemory, GpuObject> memory;
    size_t size_bytes;
  };
  const driver::ContextPointer& context_;
  const driver::Stream& stream_;
  uint32_t address_bytes_;
  std::vector<Placed> placed_;
};

Run run_on_gpu(const driver::ContextPointer& context, const ptx::Module& module, const ptx::Function& kernel,
               const flow::LaunchFacts* facts, int level) {
  const auto generated = generate_sized_launch(module, kernel, facts, 0, kMaxGrownBytes);
  if (!generated) return {{}, generated.error().message()};
  auto stream = driver::Stream::create(context);
  if (!stream) return {{}, stream.error().message()};
  auto loaded =
      driver::Kernel::load_unverified(context, std::string(module.text), {std::string(kernel.name), 0, {}}, level);
  if (!loaded) return {{}, loaded.error().message()};
  GpuBuffers buffers(context, *stream, generated->address_bytes);
  std::vector<std::vector<std::byte>> arguments;
  for (const GeneratedParameter& parameter : generated->parameters) {
    auto value = argument_of(parameter, std::ref(buffers));
    if (!value) return {{}, value.error().message()};
    arguments.push_back(std::move(*value));
  }
  for (const GeneratedParameter& variable : generated->variables)
    if (auto set = buffers.set(*loaded, variable); !set) return {{}, set.error().message()};
  const auto axes = [](const emulator::Dim3& dim) { return std::array{dim.x, dim.y, dim.z}; };
  const emulator::LaunchShape& shape = generated->shape;
  auto done = loaded->launch_unchecked(
      *stream, {axes(shape.grid), axes(shape.block), shape.dynamic_shared_bytes, axes(shape.cluster)}, arguments);
  if (done) done = stream->wait();
  Run run;
  if (done) done = buffers.download(run.memory);
  if (done) done = stream->wait();
  if (!done) {
    run.trouble = done.error().message();
    run.has_died = true;
  }
  return run;
}

// The aligned eight bytes of the first difference: "bytes 8 to 15 of 'out' are 00 ... on the emulator and 01 ...
// there".
std::string first_difference(const Run& emulated, const Run& a, std::string_view where_a, const Run& b,
                             std::string_view where_b) {
  const auto first = std::mismatch(a.memory.begin(), a.memory.end(), b.memory.begin()).first - a.memory.begin();
  const auto after = std::ranges::upper_bound(emulated.buffers, static_cast<size_t>(first), {},
                                              &std::pair<std::string, size_t>::second);
  const auto& [name, begin] = *std::prev(after);
  const size_t end = after == emulated.buffers.end() ? a.memory.size() : after->second;
  const size_t from = (static_cast<size_t>(first) - begin) / 8 * 8, to = std::min(from + 8, end - begin);
  const auto hex = [&](const Run& run) {
    std::string text;
    for (size_t i = from; i < to; ++i) text += fmt::format(" {:02x}", std::to_integer<int>(run.memory[begin + i]));
    return text;
  };
  return fmt::format("bytes {} to {} of '{}' are{} {} and{} {}", from, to - 1, name, hex(a), where_a, hex(b), where_b);
}

// A register whose value is another one in every run or on every machine; empty where the module reads none.
std::string_view unsteady_register(const ptx::Module& module) {
  using Special = ptx::SpecialRegister;
  constexpr Special kUnsteady[] = {Special::clock,       Special::clock_hi,       Special::clock64,
                                   Special::globaltimer, Special::globaltimer_lo, Special::globaltimer_hi,
                                   Special::smid,        Special::nsmid,          Special::warpid,
                                   Special::nwarpid,     Special::gridid};
  for (const ptx::Function& function : module.functions)
    for (const ptx::Operand& operand : function.operand_pool)
      if (operand.kind == ptx::OperandKind::special &&
          std::ranges::find(kUnsteady, static_cast<Special>(operand.id)) != std::end(kUnsteady))
        return ptx::text(static_cast<Special>(operand.id));
  return {};
}

std::string unsteady(std::string_view name) {
  return fmt::format("the module reads {}, whose value differs from run to run or between machines", name);
}

}  // namespace

Differential compare_with_gpu(const ptx::Module& module, ptx::FunctionId kernel, const flow::LaunchFacts* facts) {
  // The process has only one primary context: nothing can run after a fault.
  static std::atomic<bool> context_is_lost = false;
  if (context_is_lost) return not_run("an earlier kernel destroyed the GPU's context");
  if (const auto name = unsteady_register(module); !name.empty()) return not_run(unsteady(name));
  const ptx::Function& function = module.functions[kernel];
  auto opened = driver::Driver::open();
  if (!opened) return not_run(opened.error().error.what);
  const char* chosen = std::getenv("PTXKIT_DEVICE");
  const auto context = driver::Context::create(std::move(*opened), chosen != nullptr ? std::atoi(chosen) : 0);
  if (!context) return not_run(context.error().message());
  const bool holds_emulator = !is_approximate(function);
  const Run emulated = run_once(module, function, facts, kSchedules[0]);
  if (!emulated.trouble.empty()) return not_run(emulated.trouble);
  Run first = emulated;
  std::string first_place = "on the emulator";
  for (int level = 0; level <= kHighestLevel; ++level) {
    Run run = run_on_gpu(*context, module, function, facts, level);
    const std::string place = fmt::format("on {} at level {}", (*context)->info().name, level);
    if (run.has_died) context_is_lost = true;
    if (!run.trouble.empty() && !run.has_died) return not_run(run.trouble);
    if (run.has_died)
      return {Differential::Outcome::different,
              fmt::format("it runs {} and fails {}: {}", first_place, place, run.trouble)};
    if (level == 0 && !holds_emulator) {
      first = std::move(run);
      first_place = place;
    } else if (run.memory != first.memory) {
      return {Differential::Outcome::different, first_difference(emulated, first, first_place, run, place)};
    }
  }
  return {Differential::Outcome::same, fmt::format("{}levels 0 to {} of {}", holds_emulator ? "the emulator and " : "",
                                                   kHighestLevel, (*context)->info().name)};
}

Differential compare_schedules(const ptx::Module& module, ptx::FunctionId kernel, const flow::LaunchFacts* facts) {
  if (const auto name = unsteady_register(module); !name.empty()) return not_run(unsteady(name));
  std::vector<Run> runs;  // all, since a difference counts only where the sanitizer finds nothing in any of them
  for (const Schedule& schedule : kSchedules) {
    runs.push_back(run_once(module, module.functions[kernel], facts, schedule));
    if (!runs.back().trouble.empty()) return not_run(runs.back().trouble);
  }
  for (size_t i = 1; i < runs.size(); ++i) {
    if (runs[i].memory == runs[0].memory) continue;
    const std::string what = first_difference(runs[0], runs[0], kSchedules[0].name, runs[i], kSchedules[i].name);
    if (has_updates(module)) return not_run("the result depends on the order of atomic updates: " + what);
    return {Differential::Outcome::different, what};
  }
  return {Differential::Outcome::same, fmt::format("{} schedules on the emulator", std::size(kSchedules))};
}

}  // namespace ptxkit
