#include "runtime/launch/generated_launch.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "analyzer/ptx/names.hpp"
#include "runtime/launch/address_parts.hpp"
#include "runtime/launch/aggregate_members.hpp"
#include "runtime/launch/generated_scalars.hpp"
#include "runtime/launch/object_spec.hpp"
#include "runtime/launch/offset_words.hpp"
#include "support/hex.hpp"
#include "support/saturating.hpp"

namespace ptxkit {

std::array<bool, 3> dimensions_of(const ptx::Function& kernel, ptx::SpecialRegister special) {
  std::array<bool, 3> read{};
  for (const ptx::Instruction& each : kernel.instructions)
    for (const ptx::Operand& operand : kernel.operands(each))
      if (operand.kind == ptx::OperandKind::special && operand.id == static_cast<uint32_t>(special) &&
          operand.component >= 'x' && operand.component <= 'z')
        read[operand.component - 'x'] = true;
  return read;
}

namespace {

constexpr uint64_t kDefaultBufferBytes = 1 << 16, kLargestBufferBytes = 1 << 30;
// By variant; later variants use the last one. Small, because counts that divide each other must be small.
constexpr std::array<uint64_t, 5> kDefaultScalars = {64, 64, 64, 1, 2};
constexpr uint32_t kDefaultThreads = 64, kDefaultBlocks = 2;
constexpr uint64_t kSharedBytes = 48 << 10, kSharedAlign = 128;

// Grids and blocks of searching variants, in turn. Kernels that read y or z get more than one there.
constexpr std::array<uint32_t, 4> kBlocks = {2, 1, 3, 2}, kThreads = {64, 64, 32, 96};

// A parameter that holds no address, according to the launch file or its type.
bool is_scalar(const ptx::Variable& parameter, const flow::ParameterFacts* known, uint32_t address_bits) {
  return (known != nullptr && known->low) || ptx::byte_width(parameter.type) != address_bits / 8 ||
         ptx::kind(parameter.type) == ptx::TypeKind::floating;
}

// Whether the launch file gives the parameter a buffer.
bool is_buffer(const flow::ParameterFacts* known) {
  return known != nullptr && (known->size_bytes != 0 || !known->content.empty());
}

uint64_t default_scalar(unsigned variant) {
  return kDefaultScalars[std::min<size_t>(variant, kDefaultScalars.size() - 1)];
}

uint64_t scalar_value(const flow::ParameterFacts* known, unsigned variant) {
  if (known == nullptr || !known->low) return default_scalar(variant);
  const uint64_t high = std::max(known->high.value_or(*known->low), *known->low);
  return variant % 2 == 0 ? *known->low : high;
}

emulator::LaunchShape search_shape(const ptx::Function& kernel, unsigned number) {
  const size_t at = number % kBlocks.size();
  const auto grid = dimensions_of(kernel, ptx::SpecialRegister::ctaid);
  const auto block = dimensions_of(kernel, ptx::SpecialRegister::tid);
  emulator::LaunchShape shape;
  shape.grid = {kBlocks[at], grid[1] ? kBlocks[at] : 1, grid[2] ? kBlocks[at] : 1};
  shape.block = {kThreads[at], 1, 1};
  if (block[2])
    shape.block = {kThreads[at] / 8, 4, 2};
  else if (block[1])
    shape.block = {kThreads[at] / 4, 4, 1};
  return shape;
}

emulator::LaunchShape shape_of(const ptx::Function& kernel, const flow::LaunchFacts* facts, unsigned variant) {
  emulator::LaunchShape shape;
  shape.grid = {kDefaultBlocks, 1, 1};
  shape.block = {kDefaultThreads, 1, 1};
  const auto& most = kernel.attributes.max_ntid;
  const uint64_t most_threads = saturating_product(most[0], std::max(most[1], 1u), std::max(most[2], 1u));
  if (variant >= kFirstSearchVariant) shape = search_shape(kernel, variant - kFirstSearchVariant);
  if (most[0] && shape.block.count() > most_threads)
    shape.block = {static_cast<uint32_t>(std::min<uint64_t>(kDefaultThreads, most_threads)), 1, 1};
  const auto& required = kernel.attributes.req_ntid;
  if (required[0]) shape.block = {required[0], std::max(required[1], 1u), std::max(required[2], 1u)};
  if (facts == nullptr) return shape;
  const auto or_one = [](uint32_t count) { return std::max(count, 1u); };
  if (facts->block[0]) shape.block = {facts->block[0], or_one(facts->block[1]), or_one(facts->block[2])};
  if (facts->grid[0]) shape.grid = {facts->grid[0], or_one(facts->grid[1]), or_one(facts->grid[2])};
  shape.dynamic_shared_bytes = static_cast<uint32_t>(facts->dynamic_shared_bytes);
  return shape;
}

// What remains of the 48 KiB that every block may have; 0 without unsized shared memory.
uint32_t free_shared_bytes(const ptx::Module& module, const ptx::Function& kernel) {
  uint64_t taken = 0;
  bool is_open = false;
  for (const ptx::Variable& variable : module.variables) {
    const bool is_of_kernel = variable.function == ptx::kNone || &module.functions[variable.function] == &kernel;
    if (variable.space != ptx::Space::shared || !is_of_kernel) continue;
    is_open |= variable.is_unsized;
    taken += (variable.size_bytes + kSharedAlign - 1) / kSharedAlign * kSharedAlign;
  }
  return is_open && taken < kSharedBytes ? static_cast<uint32_t>(kSharedBytes - taken) : 0;
}

// The contents of the buffers of a variant.
Content content_of(const ptx::Function& kernel, unsigned variant) {
  if (variant < kFirstSearchVariant) return static_cast<Content>(variant);
  bool has_floats = false, has_doubles = false, has_halves = false;
  for (const ptx::Instruction& each : kernel.instructions)
    for (unsigned i = 0; i < each.type_count; ++i) {
      has_floats |= each.types[i] == ptx::Type::f32;
      has_doubles |= each.types[i] == ptx::Type::f64;
      has_halves |= each.types[i] == ptx::Type::f16 || each.types[i] == ptx::Type::f16x2;
    }
  std::vector<Content> contents = {Content::small_words, Content::rising_words};
  if (has_floats)
    contents.insert(contents.begin(), {Content::floats, Content::rising_floats, Content::floats, Content::equal_floats,
                                       Content::edge_floats});
  if (has_doubles) contents.insert(contents.begin(), {Content::doubles, Content::edge_doubles});
  if (has_halves) contents.insert(contents.begin(), Content::halves);
  contents.insert(contents.end(), {Content::random, Content::counting, Content::zeros});
  return contents[(variant - kFirstSearchVariant) % contents.size()];
}

}  // namespace

Result<GeneratedLaunch> generate_launch(const ptx::Module& module, const ptx::Function& kernel,
                                        const flow::LaunchFacts* facts, unsigned variant) {
  GeneratedLaunch launch;
  launch.variant = variant;
  launch.address_bytes = module.address_size / 8;
  launch.shape = shape_of(kernel, facts, variant);
  if (launch.shape.dynamic_shared_bytes == 0) launch.shape.dynamic_shared_bytes = free_shared_bytes(module, kernel);
  const std::set<ptx::RegId> parts = address_parts(kernel);
  const std::set<ptx::VariableId> numbers = address_sized_scalars(module, kernel, parts);
  const std::vector<OffsetWords> offsets = offset_words(module, kernel, parts);
  std::optional<std::vector<AggregateMember>> members;
  unsigned buffer_count = 0, scalar_count = 0;
  const std::vector<uint64_t> constants = compared_constants(kernel);
  const auto content = static_cast<unsigned>(content_of(kernel, variant));
  std::optional<Error> refused;
  const auto add_buffer = [&](GeneratedParameter& out, uint64_t offset, uint64_t size_bytes,
                              std::span<const std::byte> given, const std::string& object) {
    if (refused) return;
    const unsigned seed = content + kContents * buffer_count++;
    uint64_t value_bytes = launch.address_bytes;
    if (!object.empty()) {
      const auto spec = parse_object_spec(object);
      if (!spec) return void(refused = spec.error());
      size_bytes = spec->size_bytes();
      value_bytes = spec->value_bytes();
    } else if (size_bytes == 0) {
      size_bytes = given.empty() ? kDefaultBufferBytes : given.size();
    }
    if (offset + value_bytes > out.value.size()) {
      refused = Error{fmt::format("'{}' has {} bytes, too few for an object at offset {} of {} bytes", out.name,
                                  out.value.size(), offset, value_bytes),
                      {},
                      {}};
    } else if (size_bytes > kLargestBufferBytes) {
      refused = Error{fmt::format("a buffer of {} bytes exceeds the limit of a generated launch, {} bytes", size_bytes,
                                  kLargestBufferBytes),
                      {},
                      {}};
    } else {
      GeneratedBuffer& buffer = out.buffers.emplace_back();
      buffer.offset = offset;
      buffer.seed = seed;
      buffer.hex = hex_of(given);
      buffer.object = object;
      const auto words = std::ranges::find_if(offsets, [&](const OffsetWords& each) {
        return module.variables[each.parameter].name == out.name && each.offset == offset;
      });
      if (words != offsets.end() && object.empty() && static_cast<Content>(content) != Content::zeros) {
        buffer.offsets = words->offsets;
        buffer.word_bytes = words->word_bytes;
      }
      resize(buffer, size_bytes);
    }
  };
  for (const ptx::VariableId id : kernel.parameters) {
    const ptx::Variable& parameter = module.variables[id];
    const flow::ParameterFacts* known = nullptr;
    if (facts != nullptr) {
      const auto found = facts->parameters.find(parameter.name);
      if (found != facts->parameters.end()) known = &found->second;
    }
    GeneratedParameter& out = launch.parameters.emplace_back();
    out.name = parameter.name;
    out.is_aggregate = parameter.is_array;
    const auto number = static_cast<unsigned>(launch.parameters.size() - 1);
    const auto scalar_of = [&](ptx::Type type) {
      const unsigned place = scalar_count++;
      if (variant < kFirstSearchVariant) return scalar_value(known, variant);
      const auto values = scalar_values(type, known, constants, launch.shape.grid.count() * launch.shape.block.count());
      return values[scalar_choice(variant - kFirstSearchVariant, place, values.size())];
    };
    const auto take_content = [&] {
      if (known == nullptr) return false;
      std::ranges::copy_n(known->content.begin(), std::min(known->content.size(), out.value.size()), out.value.begin());
      return !known->content.empty();
    };
    if (known != nullptr && !known->object.empty()) {
      out.value.resize(parameter.is_array ? parameter.size_bytes : ptx::byte_width(parameter.type));
      buffer_count = std::max(buffer_count, number);
      add_buffer(out, 0, 0, known->content, known->object);
    } else if (parameter.is_array) {
      out.value.resize(parameter.size_bytes);
      const bool is_given = take_content();
      const bool has_members = known != nullptr && !known->members.empty();
      if (has_members)
        for (const flow::MemberFacts& member : known->members)
          if (member.offset + launch.address_bytes <= out.value.size())
            add_buffer(out, member.offset, member.size_bytes, member.content, member.object);
      if (!members) members = aggregate_members(module, kernel, parts);
      for (const AggregateMember& member : *members) {
        if (member.parameter != id || member.offset + member.size_bytes > out.value.size()) continue;
        if (member.is_address && !has_members) add_buffer(out, member.offset, 0, {}, {});
        if (member.is_address || is_given) continue;
        const uint64_t scalar = scalar_of(member.type);
        std::memcpy(&out.value[member.offset], &scalar, std::min<size_t>(member.size_bytes, sizeof scalar));
      }
    } else if (is_scalar(parameter, known, module.address_size) || (numbers.contains(id) && !is_buffer(known))) {
      const uint64_t value = scalar_of(parameter.type);
      out.value.resize(ptx::byte_width(parameter.type));
      if (!take_content()) std::memcpy(out.value.data(), &value, std::min(out.value.size(), sizeof value));
    } else {
      out.value.resize(launch.address_bytes);
      buffer_count = std::max(buffer_count, number);
      add_buffer(out, 0, known != nullptr ? known->size_bytes : 0,
                 known != nullptr ? std::span(known->content) : std::span<const std::byte>(), {});
    }
  }
  for (const ptx::Variable& variable : module.variables) {
    if (facts == nullptr || variable.function != ptx::kNone) continue;
    const auto known = facts->variables.find(variable.name);
    if (known == facts->variables.end()) continue;
    GeneratedParameter& out = launch.variables.emplace_back();
    out.name = variable.name;
    out.value = repeated_bytes(hex_of(known->second.content), variable.size_bytes);
    if (!known->second.object.empty()) add_buffer(out, 0, 0, known->second.content, known->second.object);
  }
  if (refused) return tl::unexpected(std::move(*refused));
  return launch;
}

std::vector<const GeneratedBuffer*> all_buffers(const GeneratedLaunch& launch) {
  std::vector<const GeneratedBuffer*> buffers;
  for (const auto* list : {&launch.parameters, &launch.variables})
    for (const GeneratedParameter& each : *list)
      for (const GeneratedBuffer& buffer : each.buffers) buffers.push_back(&buffer);
  return buffers;
}

void resize(GeneratedBuffer& buffer, uint64_t size_bytes) {
  if (!buffer.hex.empty())
    buffer.bytes = repeated_bytes(buffer.hex, size_bytes);
  else if (buffer.offsets)
    buffer.bytes = generated_offsets(size_bytes, *buffer.offsets, buffer.word_bytes, buffer.seed);
  else
    buffer.bytes = generated_bytes(size_bytes, buffer.seed);
}

Result<std::vector<std::byte>> argument_of(const GeneratedParameter& parameter, const PlaceBuffer& place) {
  std::vector<std::byte> value = parameter.value;
  for (const GeneratedBuffer& buffer : parameter.buffers) {
    const auto placed = place(buffer);
    if (!placed) return placed;
    std::ranges::copy(*placed, value.begin() + static_cast<ptrdiff_t>(buffer.offset));
  }
  return value;
}

Result<PlacedLaunch> place_launch(emulator::Device& device, const emulator::Program& program,
                                  const GeneratedLaunch& launch) {
  PlacedLaunch placed;
  const auto value_of = [&](const GeneratedParameter& parameter) {
    return argument_of(parameter, [&](const GeneratedBuffer& buffer) -> Result<std::vector<std::byte>> {
      emulator::Address& address = placed.addresses.emplace_back(0);
      if (!buffer.bytes.empty()) {
        const auto allocated = device.allocate(buffer.bytes.size(), parameter.name, launch.align_bytes);
        if (!allocated) return tl::unexpected(allocated.error());
        address = *allocated;
        if (auto written = device.write(address, buffer.bytes); !written) return tl::unexpected(written.error());
      }
      if (buffer.object.empty()) return address_value(address, launch.address_bytes);
      const auto spec = parse_object_spec(buffer.object);
      if (!spec) return tl::unexpected(spec.error());
      return object_value(device, *spec, address);
    });
  };
  for (const GeneratedParameter& parameter : launch.parameters) {
    auto value = value_of(parameter);
    if (!value) return tl::unexpected(value.error());
    placed.arguments.push_back({std::move(*value)});
  }
  for (const GeneratedParameter& variable : launch.variables) {
    const auto value = value_of(variable);
    if (!value) return tl::unexpected(value.error());
    if (auto written = program.write(variable.name, *value); !written) return tl::unexpected(written.error());
  }
  return placed;
}

Result<EmulatedLaunch> emulate(emulator::Device& device, const ptx::Module& module, const ptx::Function& kernel,
                               const GeneratedLaunch& launch, const emulator::LaunchOptions& options,
                               const RunRecord& record) {
  // The module outlives the run.
  const auto program = emulator::Program::load(
      device, std::shared_ptr<const ptx::Module>(std::shared_ptr<void>(), &module), kernel.name);
  if (!program) return tl::unexpected(program.error());
  auto placed = place_launch(device, *program, launch);
  if (!placed) return tl::unexpected(placed.error());
  EmulatedLaunch run{*program, std::move(placed->addresses), {}, {}, {}};
  if (record.counts) {
    auto counted = emulator::launch_counted(*program, kernel.name, launch.shape, placed->arguments, options);
    if (!counted) return tl::unexpected(counted.error());
    run.outcome = std::move(counted->outcome);
    run.counts = std::move(counted->counts);
    return run;
  }
  auto watched =
      emulator::launch_watched(*program, kernel.name, launch.shape, placed->arguments, record.watched_lines, options);
  if (!watched) return tl::unexpected(watched.error());
  run.outcome = std::move(watched->outcome);
  run.visits = std::move(watched->visits);
  return run;
}

}  // namespace ptxkit
