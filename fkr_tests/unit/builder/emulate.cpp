// Runs a definition on the emulator: buffers, arguments in the order of the parameters, launch.
#include "fkr_tests/unit/builder/emulate.hpp"

#include <stdexcept>

#include "runtime/emulator/emulator.hpp"

namespace ptxkit::testing {
namespace {

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

void require(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().message());
}

emulator::Address upload(emulator::Device& device, const char* name, const Words& words) {
  const emulator::Address address = value_of(device.allocate(words.size() * sizeof(uint64_t), name));
  require(device.write(address, std::as_bytes(std::span(words))));
  return address;
}

}  // namespace

Ran run(const std::function<void(dsl::Kernel&, const InWords&, const InWords&, const OutWords&)>& body, const Words& a,
        const Words& b, const RunOptions& options) {
  using namespace dsl;
  const KernelDefinition kernel =
      define({.name = "run", .block = options.block}, [body](Kernel& k, Arg<"a", InWords> in_a, Arg<"b", InWords> in_b,
                                                             Arg<"out", OutWords> out) { body(k, in_a, in_b, out); });
  const std::string ptx = emit_ptx(kernel, options.emit);

  emulator::Device device;
  const auto program = value_of(emulator::Program::load_text(device, ptx, "run.ptx"));
  Ran ran;
  ran.out.resize(options.out_count == 0 ? size_t{options.block} * options.grid : options.out_count);
  const emulator::Address out = upload(device, "out", ran.out);
  const auto size = [](const Words& words) { return emulator::Argument::of(static_cast<uint32_t>(words.size())); };
  std::vector<emulator::Argument> arguments = {emulator::Argument::of(upload(device, "a", a)),
                                               size(a),
                                               emulator::Argument::of(upload(device, "b", b)),
                                               size(b),
                                               emulator::Argument::of(out),
                                               size(ran.out)};
  emulator::Address debug = 0;
  if (options.emit.variant == Variant::debug) {
    ran.debug.resize(2 * (size_t{options.emit.debug_records} + 1));
    debug = upload(device, "debug_buffer", ran.debug);
    arguments.push_back(emulator::Argument::of(debug));
  }
  const emulator::Outcome outcome =
      value_of(emulator::launch(program, "run", {.grid = {options.grid}, .block = {options.block}}, arguments));
  if (!outcome.ok()) ran.report = emulator::render(outcome, "run.ptx");
  require(device.read(out, std::as_writable_bytes(std::span(ran.out))));
  if (debug != 0) require(device.read(debug, std::as_writable_bytes(std::span(ran.debug))));
  return ran;
}

}  // namespace ptxkit::testing
