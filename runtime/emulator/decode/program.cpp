// Loading: parses, places and decodes a module. Implements Program.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/tree.hpp"
#include "runtime/emulator/core/image.hpp"
#include "runtime/emulator/core/layout.hpp"
#include "runtime/emulator/core/memory.hpp"
#include "runtime/emulator/decode/decode.hpp"
#include "support/result.hpp"

namespace ptxkit::emulator {

namespace {

constexpr size_t kMaxErrors = 50;

tl::unexpected<Error> fail_with(const std::vector<std::string>& errors, std::string todo) {
  std::string what;
  for (size_t i = 0; i < std::min(errors.size(), kMaxErrors); ++i) what += (i ? "\n" : "") + errors[i];
  if (errors.size() > kMaxErrors) what += fmt::format("\nand {} more", errors.size() - kMaxErrors);
  return fail(std::move(what), {}, std::move(todo));
}

}  // namespace

Result<Program> Program::load(Device& device, std::shared_ptr<const ptx::Module> module, std::string_view only) {
  const DeviceOptions& options = device.options();
  if (module->target_sm > options.sm)
    return fail(fmt::format("the module is for {}, the emulated device is sm_{}", module->target, options.sm),
                module->path, "compile for an older target or raise DeviceOptions::sm");
  auto image = std::make_shared<ProgramImage>();
  image->module = std::move(module);
  image->memory = &device.memory();
  image->functions.resize(image->module->functions.size());
  std::vector<std::string> errors;
  Layout layout = place_variables(device.memory(), *image, only, errors);
  if (errors.empty()) Decoder(*image, layout).decode_all();
  if (!errors.empty()) {
    for (const auto& [name, variable] : image->globals)
      if (variable.address >> kWindowShift != kConstWindow >> kWindowShift) (void)device.release(variable.address);
    return fail_with(errors, "");
  }
  for (const EntryImage& entry : image->entries) image->infos.push_back(entry.info);
  return Program(std::move(image));
}

Result<Program> Program::load_text(Device& device, std::string text, std::string path) {
  ptx::ParseResult parsed = ptx::parse(std::move(text), std::move(path));
  if (!parsed.diagnostics.empty()) {
    std::vector<std::string> errors;
    errors.reserve(parsed.diagnostics.size());
    for (const ptx::Diagnostic& each : parsed.diagnostics)
      errors.push_back(located(parsed.module, each.at, each.message));
    return fail_with(errors, "");
  }
  return load(device, std::make_shared<const ptx::Module>(std::move(parsed.module)));
}

const std::vector<EntryInfo>& Program::entries() const { return image_->infos; }

Result<EntryInfo> Program::entry(std::string_view name) const {
  std::string known;
  for (const EntryInfo& each : image_->infos) {
    if (each.name == name) return each;
    known += (known.empty() ? "" : ", ") + each.name;
  }
  return fail(fmt::format("no entry '{}'", name), image_->module->path,
              known.empty() ? "the module has no entries" : fmt::format("its entries are {}", known));
}

Result<Variable> Program::global(std::string_view name) const {
  auto it = image_->globals.find(std::string(name));
  if (it == image_->globals.end())
    return fail(fmt::format("no global or constant variable '{}'", name), image_->module->path);
  return it->second;
}

namespace {

// Host memory of the first `size_bytes` of a variable; `shadow` is null for constants, which are always defined.
struct HostPlace {
  uint8_t* bytes = nullptr;
  uint8_t* shadow = nullptr;
};

Result<HostPlace> host_place(const ProgramImage& image, const Result<Variable>& variable, std::string_view name,
                             size_t size_bytes) {
  if (!variable) return tl::unexpected(variable.error());
  if (size_bytes > variable->size_bytes)
    return fail(fmt::format("variable '{}' has {} bytes, not {}", name, variable->size_bytes, size_bytes),
                image.module->path);
  if (variable->address >> kWindowShift == kConstWindow >> kWindowShift)
    return HostPlace{image.constant_bytes.data() + (variable->address & kWindowMask)};
  const uint64_t offset = variable->address - kGlobalBase;
  return HostPlace{image.memory->bytes + offset, image.memory->shadow + offset};
}

}  // namespace

Result<void> Program::write(std::string_view name, std::span<const std::byte> bytes) const {
  const auto place = host_place(*image_, global(name), name, bytes.size());
  if (!place) return tl::unexpected(place.error());
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(place->bytes));
  if (place->shadow != nullptr) std::fill_n(place->shadow, bytes.size(), uint8_t{0xff});
  return {};
}

Result<void> Program::read(std::string_view name, std::span<std::byte> bytes) const {
  const auto place = host_place(*image_, global(name), name, bytes.size());
  if (!place) return tl::unexpected(place.error());
  std::copy_n(reinterpret_cast<const std::byte*>(place->bytes), bytes.size(), bytes.begin());
  return {};
}

const ptx::Module& Program::module() const { return *image_->module; }

}  // namespace ptxkit::emulator
