// Modules: PTX on the emulator or on a GPU, with buffers of the caller's.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/ptx/tree.hpp"
#include "runtime/c_api/json_options.hpp"
#include "runtime/c_api/machine.hpp"
#include "runtime/c_api/ptxkit.h"
#include "runtime/c_api/status.hpp"
#include "runtime/driver/context.hpp"
#include "runtime/driver/driver.hpp"
#include "runtime/driver/error_catalogue.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/launch/outcome_json.hpp"
#include "support/json.hpp"
#include "support/printable.hpp"
#include "support/result.hpp"

// Opaque to callers. The emulator's program says what entries and parameters a module has, on a GPU as well.
struct ptxkit_module {
  std::string name, text;
  std::shared_ptr<ptxkit::c_api::Machine> machine;
  std::optional<ptxkit::emulator::Program> program;  // it refers to the machine's device
  ptxkit::driver::ContextPointer context;            // null: the emulator
};

namespace ptxkit::c_api {
namespace {

struct Launch {
  emulator::EntryInfo entry;
  emulator::LaunchShape shape;
  std::span<const ptxkit_argument> arguments;
};

bool is_buffer(const ptxkit_argument& argument) {
  return argument.kind != PTXKIT_ARGUMENT_VALUE && argument.kind != PTXKIT_ARGUMENT_ADDRESS;
}
bool is_read(const ptxkit_argument& argument) {
  return argument.kind == PTXKIT_ARGUMENT_IN || argument.kind == PTXKIT_ARGUMENT_IN_OUT;
}
bool is_written(const ptxkit_argument& argument) {
  return argument.kind == PTXKIT_ARGUMENT_OUT || argument.kind == PTXKIT_ARGUMENT_IN_OUT;
}

Answer<std::unique_ptr<ptxkit_module>> decode(std::shared_ptr<Machine> machine, std::string_view text,
                                              const std::string& name) {
  auto made = std::make_unique<ptxkit_module>();
  made->name = name;
  made->text = text;
  made->machine = std::move(machine);
  const std::lock_guard lock(made->machine->mutex);
  auto program = emulator::Program::load_text(made->machine->device, made->text, made->name);
  if (!program) return refuse(PTXKIT_INVALID_VALUE, program.error());
  made->program.emplace(std::move(*program));
  return made;
}

Answer<> load_on(ptxkit_emulator* emulator, const char* text, size_t text_bytes, const char* options,
                 ptxkit_module** module) {
  if (auto given = require(module, "module"); !given) return given;
  *module = nullptr;
  if (auto given = require(emulator, "emulator"); !given) return given;
  if (auto given = require(text, "text"); !given) return given;
  const auto json = JsonOptions::read(options, {"name"});
  if (!json) return tl::unexpected(json.error());
  const auto name = json->string("name", "input.ptx");
  if (!name) return tl::unexpected(name.error());
  auto made = decode(emulator->machine, {text, text_bytes}, *name);
  if (!made) return tl::unexpected(made.error());
  *module = made->release();
  return {};
}

Answer<> load(const char* text, size_t text_bytes, const char* options, ptxkit_module** module) {
  if (auto given = require(module, "module"); !given) return given;
  *module = nullptr;
  if (auto given = require(text, "text"); !given) return given;
  const auto json = JsonOptions::read(options, {"backend", "name", "sm", "device", "cuda_library"});
  if (!json) return tl::unexpected(json.error());
  const auto backend = json->string("backend", "emulator"), name = json->string("name", "input.ptx"),
             cuda_library = json->string("cuda_library", "");
  for (const auto* each : {&backend, &name, &cuda_library})
    if (!*each) return tl::unexpected(each->error());
  const auto sm = json->number("sm", emulator::DeviceOptions().sm, 999), ordinal = json->number("device", 0, 1 << 16);
  for (const auto* each : {&sm, &ordinal})
    if (!*each) return tl::unexpected(each->error());
  const bool on_gpu = *backend == "cuda";
  if (!on_gpu && *backend != "emulator")
    return refuse(PTXKIT_INVALID_VALUE, "options: 'backend': expected emulator or cuda, found '" + *backend + "'");
  const char* const alien = on_gpu ? "sm" : json->has("device") ? "device" : "cuda_library";
  if (json->has(alien))
    return refuse(PTXKIT_INVALID_VALUE, fmt::format("options: '{}' has no effect on backend {}", alien, *backend));

  emulator::DeviceOptions device;
  device.sm = static_cast<uint32_t>(*sm);
  auto decoded = decode(std::make_shared<Machine>(device), {text, text_bytes}, *name);
  if (!decoded) return tl::unexpected(decoded.error());
  auto made = std::move(*decoded);
  if (on_gpu) {
    auto driver = driver::Driver::open(*cuda_library);
    if (!driver) return refuse(PTXKIT_NO_DEVICE, driver.error().error);
    const int count = (*driver)->device_count();
    if (static_cast<int>(*ordinal) >= count)
      return refuse(PTXKIT_NO_DEVICE, fmt::format("there is no device {}, the driver has {}", *ordinal, count));
    auto context = driver::Context::create(std::move(*driver), static_cast<int>(*ordinal));
    if (!context) return refuse(PTXKIT_DEVICE, context.error());
    made->context = std::move(*context);
  }
  *module = made.release();
  return {};
}

Answer<> describe(ptxkit_module* module, char** json) {
  if (auto given = require(module, "module"); !given) return given;
  if (auto given = require(json, "json"); !given) return given;
  OrderedJson entries = OrderedJson::array();
  for (const emulator::EntryInfo& entry : module->program->entries()) {
    OrderedJson parameters = OrderedJson::array();
    for (const emulator::EntryParameter& parameter : entry.parameters) {
      parameters.push_back(
          {{"name", parameter.name}, {"size_bytes", parameter.size_bytes}, {"align_bytes", parameter.align_bytes}});
    }
    entries.push_back({{"name", entry.name},
                       {"parameters", std::move(parameters)},
                       {"required_block", entry.required_block},
                       {"static_shared_bytes", entry.static_shared_bytes}});
  }
  const OrderedJson all = {{"entries", std::move(entries)}};
  *json = new_string(printable_json(all.dump(-1, ' ', false, OrderedJson::error_handler_t::replace)));
  return {};
}

Answer<Launch> read_launch(const ptxkit_module& module, const char* entry, const ptxkit_launch_shape* shape,
                           const ptxkit_argument* arguments, size_t argument_count) {
  for (const auto& [pointer, name] : {std::pair<const void*, const char*>{entry, "entry"}, {shape, "shape"}})
    if (auto given = require(pointer, name); !given) return tl::unexpected(given.error());
  if (argument_count != 0)
    if (auto given = require(arguments, "arguments"); !given) return tl::unexpected(given.error());
  auto info = module.program->entry(entry);
  if (!info) return refuse(PTXKIT_INVALID_VALUE, info.error());
  if (std::any_of(std::begin(shape->reserved), std::end(shape->reserved), [](uint32_t each) { return each != 0; }))
    return refuse(PTXKIT_INVALID_VALUE, "shape: a reserved field is not zero");
  if (argument_count != info->parameters.size()) {
    return refuse(PTXKIT_INVALID_VALUE, fmt::format("'{}' has {} parameters, found {} arguments", info->name,
                                                    info->parameters.size(), argument_count));
  }
  for (size_t i = 0; i < argument_count; ++i) {
    const ptxkit_argument& argument = arguments[i];
    const emulator::EntryParameter& parameter = info->parameters[i];
    const auto wrong = [&](std::string_view what) {
      return refuse(PTXKIT_INVALID_VALUE, fmt::format("argument {}, parameter '{}': {}", i, parameter.name, what));
    };
    if (argument.kind > PTXKIT_ARGUMENT_ADDRESS) return wrong(fmt::format("unknown kind {}", argument.kind));
    if (argument.data == nullptr && argument.bytes != 0) return wrong("data is null");
    if (argument.kind == PTXKIT_ARGUMENT_ADDRESS && module.context != nullptr)
      return wrong("an address of the emulator's memory on a GPU");
    if (argument.alignment != 0 && !std::has_single_bit(argument.alignment))
      return wrong(fmt::format("alignment is {}, expected a power of two", argument.alignment));
    const size_t bytes = is_buffer(argument) ? module.program->module().address_size / 8 : argument.bytes;
    if (bytes != parameter.size_bytes)
      return wrong(fmt::format("{} bytes, the parameter has {}", bytes, parameter.size_bytes));
  }
  const auto axes = [](const uint32_t(&from)[3]) {
    return emulator::Dim3{std::max(1u, from[0]), std::max(1u, from[1]), std::max(1u, from[2])};
  };
  return Launch{std::move(*info),
                {axes(shape->grid), axes(shape->block), shape->dynamic_shared_bytes, axes(shape->cluster)},
                {arguments, argument_count}};
}

Answer<emulator::LaunchOptions> read_launch_options(const JsonOptions& json) {
  emulator::LaunchOptions options;
  const auto checks = json.string("checks", "standard");
  if (!checks) return tl::unexpected(checks.error());
  const auto known = emulator::parse_checks(*checks);
  if (!known) return refuse(PTXKIT_INVALID_VALUE, "options: 'checks': " + known.error().what);
  options.checks = *known;
  const auto seed = json.number("seed", 0, UINT64_MAX), threads = json.number("threads", 1, 1024),
             max_steps = json.number("max_steps", 0, UINT64_MAX), max_faults = json.number("max_faults", 16, 1 << 20);
  for (const auto* each : {&seed, &threads, &max_steps, &max_faults})
    if (!*each) return tl::unexpected(each->error());
  const auto adversarial = json.boolean("adversarial", false);
  if (!adversarial) return tl::unexpected(adversarial.error());
  if (*adversarial && *seed == 0)
    return refuse(PTXKIT_INVALID_VALUE, "options: 'adversarial' needs a 'seed' of at least 1");
  if (*threads == 0 || *max_faults == 0)
    return refuse(PTXKIT_INVALID_VALUE, "options: 'threads' and 'max_faults' are at least 1");
  options.schedule_seed = *seed;
  options.adversarial = *adversarial;
  options.threads = static_cast<unsigned>(*threads);
  options.max_steps = *max_steps;
  options.max_faults = *max_faults;
  return options;
}

struct Report {
  std::string json;
  size_t fault_count = 0;
};

std::span<std::byte> bytes_of(const ptxkit_argument& argument) {
  return {static_cast<std::byte*>(argument.data), argument.bytes};
}

std::vector<std::byte> address_bytes(uint64_t address, size_t count) {
  std::vector<std::byte> bytes(count);
  std::memcpy(bytes.data(), &address, count);
  return bytes;
}

// The copies of a launch's buffers on the emulator, released at its end.
class Buffers {
 public:
  explicit Buffers(emulator::Device& device) : device_(device) {}
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() {
    for (const emulator::Address address : addresses_) (void)device_.release(address);
  }

  Result<emulator::Address> add(const ptxkit_argument& argument, const std::string& name) {
    addresses_.reserve(addresses_.size() + 1);  // first: what is allocated is released
    auto address = device_.allocate(argument.bytes, name, argument.alignment != 0 ? argument.alignment : 256);
    if (!address) return address;
    addresses_.push_back(*address);
    if (is_read(argument))
      if (const auto done = device_.write(*address, bytes_of(argument)); !done) return tl::unexpected(done.error());
    return address;
  }

 private:
  emulator::Device& device_;
  std::vector<emulator::Address> addresses_;
};

Answer<Report> launch_on_emulator(ptxkit_module& module, const Launch& launch, const emulator::LaunchOptions& options) {
  emulator::Device& device = module.machine->device;
  Buffers buffers(device);
  std::vector<emulator::Argument> arguments;
  std::vector<emulator::Address> addresses;
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const ptxkit_argument& argument = launch.arguments[i];
    const emulator::EntryParameter& parameter = launch.entry.parameters[i];
    addresses.push_back(0);
    const std::string name = argument.name != nullptr ? argument.name : parameter.name;
    if (!is_buffer(argument)) {
      const auto bytes = bytes_of(argument);
      if (argument.kind == PTXKIT_ARGUMENT_ADDRESS && bytes.size() == sizeof(emulator::Address)) {
        emulator::Address address = 0;
        std::memcpy(&address, bytes.data(), sizeof address);
        device.rename(address, name);
      }
      arguments.push_back({{bytes.begin(), bytes.end()}});
      continue;
    }
    const auto address = buffers.add(argument, name);
    if (!address) return refuse(PTXKIT_NO_MEMORY, address.error());
    addresses.back() = *address;
    arguments.push_back({address_bytes(*address, parameter.size_bytes)});
  }
  const auto outcome = emulator::launch(*module.program, launch.entry.name, launch.shape, arguments, options);
  if (!outcome) return refuse(PTXKIT_INVALID_VALUE, outcome.error());
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    if (!is_written(launch.arguments[i])) continue;
    if (const auto done = device.read(addresses[i], bytes_of(launch.arguments[i])); !done)
      return refuse(PTXKIT_INTERNAL, done.error());
  }
  return Report{outcome_json(*outcome, module.name, launch.entry.name), outcome->faults.size()};
}

Answer<Report> launch_on_gpu(ptxkit_module& module, const Launch& launch) {
  const auto device_error = [](const Error& error) { return refuse(PTXKIT_DEVICE, error); };
  const auto stream = driver::Stream::create(module.context);
  if (!stream) return device_error(stream.error());
  const auto kernel = driver::Kernel::load_unverified(module.context, module.text, {launch.entry.name, 0, {}});
  if (!kernel) return device_error(kernel.error());
  std::vector<std::optional<driver::DeviceMemory>> buffers(launch.arguments.size());
  std::vector<std::vector<std::byte>> values;
  const auto host_bytes = [](const ptxkit_argument& argument) {
    return std::span<uint8_t>(static_cast<uint8_t*>(argument.data), argument.bytes);
  };
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const ptxkit_argument& argument = launch.arguments[i];
    if (!is_buffer(argument)) {
      const auto bytes = bytes_of(argument);
      values.emplace_back(bytes.begin(), bytes.end());
      continue;
    }
    auto memory = driver::DeviceMemory::allocate(module.context, std::max<size_t>(argument.bytes, 1));
    if (!memory) return device_error(memory.error());
    if (is_read(argument))
      if (const auto done = memory->upload(host_bytes(argument), *stream); !done) return device_error(done.error());
    values.push_back(address_bytes(memory->handle(), launch.entry.parameters[i].size_bytes));
    buffers[i].emplace(std::move(*memory));
  }
  const auto axes = [](const emulator::Dim3& dim) { return std::array{dim.x, dim.y, dim.z}; };
  const driver::LaunchGeometry geometry{axes(launch.shape.grid), axes(launch.shape.block),
                                        launch.shape.dynamic_shared_bytes, axes(launch.shape.cluster)};
  if (const auto done = kernel->launch_unchecked(*stream, geometry, values); !done) return device_error(done.error());
  GpuEnd end;
  end.device = module.context->description();
  end.status = module.context->api().stream_synchronize(stream->handle());
  if (end.status != 0) {
    const Error error = driver::driver_error(end.status, "the launch ended");
    end.fault = {std::string(driver::explain(end.status).name), error.what, error.todo};
    return Report{outcome_json(end, module.name, launch.entry.name), 1};
  }
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    if (!is_written(launch.arguments[i])) continue;
    auto done = buffers[i]->download(host_bytes(launch.arguments[i]), *stream);
    if (done) done = stream->wait();
    if (!done) return device_error(done.error());
  }
  return Report{outcome_json(end, module.name, launch.entry.name), 0};
}

Answer<> run(ptxkit_module* module, const char* entry, const ptxkit_launch_shape* shape,
             const ptxkit_argument* arguments, size_t argument_count, const char* options, char** report,
             size_t* fault_count) {
  if (auto given = require(module, "module"); !given) return given;
  if (auto given = require(report, "report"); !given) return given;
  *report = nullptr;
  const auto json = JsonOptions::read(options, {"checks", "seed", "adversarial", "threads", "max_steps", "max_faults"});
  if (!json) return tl::unexpected(json.error());
  if (module->context != nullptr && options != nullptr && std::string_view(options) != "{}")
    return refuse(PTXKIT_INVALID_VALUE, "options: they are of the emulator only; pass null on backend cuda");
  const auto settings = read_launch_options(*json);
  if (!settings) return tl::unexpected(settings.error());
  const auto launch = read_launch(*module, entry, shape, arguments, argument_count);
  if (!launch) return tl::unexpected(launch.error());
  const std::lock_guard lock(module->machine->mutex);
  const auto done =
      module->context == nullptr ? launch_on_emulator(*module, *launch, *settings) : launch_on_gpu(*module, *launch);
  if (!done) return tl::unexpected(done.error());
  *report = new_string(done->json);
  if (fault_count != nullptr) *fault_count = done->fault_count;
  return {};
}

}  // namespace
}  // namespace ptxkit::c_api

using namespace ptxkit;

ptxkit_status ptxkit_module_load(const char* text, size_t text_bytes, const char* options, ptxkit_module** module) {
  return c_api::call(__func__, [&] { return c_api::load(text, text_bytes, options, module); });
}

ptxkit_status ptxkit_emulator_load(ptxkit_emulator* emulator, const char* text, size_t text_bytes, const char* options,
                                   ptxkit_module** module) {
  return c_api::call(__func__, [&] { return c_api::load_on(emulator, text, text_bytes, options, module); });
}

void ptxkit_module_destroy(ptxkit_module* module) { delete module; }

ptxkit_status ptxkit_module_describe(ptxkit_module* module, char** json) {
  return c_api::call(__func__, [&] { return c_api::describe(module, json); });
}

ptxkit_status ptxkit_launch(ptxkit_module* module, const char* entry, const ptxkit_launch_shape* shape,
                            const ptxkit_argument* arguments, size_t argument_count, const char* options, char** report,
                            size_t* fault_count) {
  return c_api::call(__func__, [&] {
    return c_api::run(module, entry, shape, arguments, argument_count, options, report, fault_count);
  });
}
