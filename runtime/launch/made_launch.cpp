#include "runtime/launch/made_launch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyzer/flow/launch.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/launch/generated_bytes.hpp"
#include "runtime/launch/sized_launch.hpp"
#include "support/saturating.hpp"

namespace ptxkit {
namespace {

using emulator::Dim3;
using ptx::SpecialRegister;

constexpr uint64_t kMaxGrownBytes = 4 << 20;
constexpr uint32_t kWarp = 32;

// By the number of the launch.
constexpr std::array<unsigned, kMadeLaunches> kVariants = {0, 1, 5, 11, 7, 6, 9};
constexpr std::array<uint32_t, kMadeLaunches> kGrids = {2, 2, 3, 2, 4, 2, 1};
constexpr std::array<uint32_t, kMadeLaunches> kThreads = {128, 128, 256, 64, 512, 96, 32};
constexpr std::array<std::array<uint32_t, 2>, kMadeLaunches> kTiles = {
    {{16, 16}, {16, 16}, {32, 32}, {32, 8}, {8, 8}, {32, 4}, {8, 4}}};

// What a kernel reads of the place of its threads. A call hides what its callee reads.
struct Places {
  std::array<bool, 3> threads{}, blocks{};
  bool waits_for_block = false;
};

Places places_of(const ptx::Function& kernel) {
  Places places;
  places.threads = dimensions_of(kernel, SpecialRegister::tid);
  places.blocks = dimensions_of(kernel, SpecialRegister::ctaid);
  for (const ptx::Instruction& each : kernel.instructions) {
    places.waits_for_block |= ptx::is_cta_barrier(kernel, each);
    const bool is_call = each.op == ptx::Op::call;
    places.threads[0] |= is_call;
    places.blocks[0] |= is_call;
    for (const ptx::Operand& operand : kernel.operands(each)) {
      if (operand.kind != ptx::OperandKind::special) continue;
      switch (static_cast<SpecialRegister>(operand.id)) {
        case SpecialRegister::laneid:
        case SpecialRegister::warpid:
        case SpecialRegister::lanemask_eq:
        case SpecialRegister::lanemask_le:
        case SpecialRegister::lanemask_lt:
        case SpecialRegister::lanemask_ge:
        case SpecialRegister::lanemask_gt:
          places.threads[0] = true;
          break;
        case SpecialRegister::clusterid:
        case SpecialRegister::cluster_ctaid:
        case SpecialRegister::cluster_ctarank:
          places.blocks[0] = true;
          break;
        default:
          break;
      }
    }
  }
  return places;
}

uint32_t or_one(uint32_t count) { return std::max(count, 1u); }

// A block of the dimensions that the kernel reads. .maxntid is taken for the block that it is launched with, since
// compilers derive it from there.
Dim3 block_of(const ptx::Function& kernel, const Places& places, unsigned number) {
  const auto& most = kernel.attributes.max_ntid;
  const auto limit = static_cast<uint32_t>(
      most[0] ? std::min<uint64_t>(saturating_product(most[0], or_one(most[1]), or_one(most[2])), 1024) : 1024);
  const auto& reads = places.threads;
  const auto& [x, y] = kTiles[number];
  Dim3 block;
  if (reads[1] || reads[2]) {
    if (most[0] && (most[1] > 1 || most[2] > 1)) return {most[0], or_one(most[1]), or_one(most[2])};
    block.x = reads[0] ? std::min(x, limit) : 1;
    const uint32_t rest = std::max(1u, (most[0] ? limit : x * y) / block.x);
    block.y = reads[1] ? (reads[2] ? std::max(1u, rest / 4) : rest) : 1;
    block.z = reads[2] ? std::min(64u, std::max(1u, rest / block.y)) : 1;
    return block;
  }
  if (!reads[0] && !places.waits_for_block) return block;
  if (most[0]) return {number == kZerosLaunch && limit >= 2 * kWarp ? limit / 2 : limit, 1, 1};
  block.x = kThreads[number];
  return block;
}

Dim3 grid_of(const ptx::Function& kernel, const Places& places, unsigned number) {
  const auto& cluster = kernel.attributes.req_cluster;
  Dim3 grid;
  grid.x = or_one(cluster[0]) * (places.blocks[0] ? kGrids[number] : 1);
  grid.y = or_one(cluster[1]) * (places.blocks[1] ? 2 : 1);
  grid.z = or_one(cluster[2]) * (places.blocks[2] ? 2 : 1);
  return grid;
}

std::string axes(const Dim3& dim) { return fmt::format("({}, {}, {})", dim.x, dim.y, dim.z); }

// The value of a scalar as a reader of the PTX would write it.
std::string value_text(const ptx::Variable& parameter, const std::vector<std::byte>& value) {
  uint64_t bits = 0;
  std::memcpy(&bits, value.data(), std::min(value.size(), sizeof bits));
  if (parameter.type == ptx::Type::f32) return fmt::format("{}", std::bit_cast<float>(static_cast<uint32_t>(bits)));
  if (parameter.type == ptx::Type::f64) return fmt::format("{}", std::bit_cast<double>(bits));
  return fmt::format("{}", bits);
}

bool is_given(const flow::ParameterFacts* known) {
  return known != nullptr && (known->low || !known->content.empty() || !known->object.empty());
}

// Phrases for the parameters whose values, sizes or contents were chosen.
void add_parameters(const ptx::Module& module, const ptx::Function& kernel, const flow::LaunchFacts* facts,
                    const GeneratedLaunch& launch, std::vector<std::string>& assumptions) {
  std::vector<std::string> scalars, buffers;
  for (size_t i = 0; i < launch.parameters.size(); ++i) {
    const GeneratedParameter& parameter = launch.parameters[i];
    const flow::ParameterFacts* known = nullptr;
    if (facts != nullptr) {
      const auto found = facts->parameters.find(parameter.name);
      if (found != facts->parameters.end()) known = &found->second;
    }
    if (is_given(known)) continue;
    if (parameter.is_aggregate) {
      scalars.push_back(fmt::format("the members of '{}'", parameter.name));
    } else if (parameter.buffers.empty()) {
      scalars.push_back(
          fmt::format("{} = {}", parameter.name, value_text(module.variables[kernel.parameters[i]], parameter.value)));
    } else if (has_given_size(parameter.name, facts)) {
      buffers.push_back(fmt::format("what '{}' holds", parameter.name));
    } else {
      buffers.push_back(fmt::format("{} bytes for '{}'", parameter.buffers.front().bytes.size(), parameter.name));
    }
  }
  if (!scalars.empty()) assumptions.push_back(fmt::format("made up: {}", fmt::join(scalars, ", ")));
  if (!buffers.empty()) assumptions.push_back(fmt::format("made up with its contents: {}", fmt::join(buffers, ", ")));
}

// Zeros in every buffer whose contents were chosen.
void clear(GeneratedLaunch& launch) {
  for (GeneratedParameter& parameter : launch.parameters)
    for (GeneratedBuffer& buffer : parameter.buffers) {
      if (!buffer.hex.empty()) continue;
      buffer.offsets.reset();
      buffer.seed = static_cast<unsigned>(Content::zeros);
      resize(buffer, buffer.bytes.size());
    }
}

}  // namespace

Result<MadeLaunch> make_launch(const ptx::Module& module, const ptx::Function& kernel, const flow::LaunchFacts* facts,
                               unsigned number, uint64_t max_steps) {
  auto generated = generate_launch(module, kernel, facts, kVariants[number]);
  if (!generated) return tl::unexpected(generated.error());
  MadeLaunch made;
  const Places places = places_of(kernel);
  const bool has_block = kernel.attributes.req_ntid[0] || (facts != nullptr && facts->block[0]);
  const bool has_grid = facts != nullptr && facts->grid[0];
  emulator::LaunchShape& shape = generated->shape;
  if (!has_block) shape.block = block_of(kernel, places, number);
  if (!has_grid) shape.grid = grid_of(kernel, places, number);
  made.is_shape_given = has_block && has_grid;
  if (!has_grid && !has_block)
    made.assumptions.push_back(fmt::format("made up: grid {}, block {}", axes(shape.grid), axes(shape.block)));
  else if (!has_grid)
    made.assumptions.push_back(fmt::format("made up: grid {}", axes(shape.grid)));
  else if (!has_block)
    made.assumptions.push_back(fmt::format("made up: block {}", axes(shape.block)));
  if (number == kZerosLaunch) clear(*generated);
  made.launch = std::move(*generated);
  made.launch.align_bytes = kApartBytes;
  const MadeSchedule schedule = made_schedule(number);
  made.is_sized =
      size(module, kernel, facts, made.launch, kMaxGrownBytes,
           {.schedule_seed = schedule.seed, .adversarial = schedule.is_adversarial, .max_steps = max_steps});
  add_parameters(module, kernel, facts, made.launch, made.assumptions);
  return made;
}

MadeSchedule made_schedule(unsigned number) {
  constexpr std::array<uint64_t, kMadeLaunches> kSeeds = {0, 1, 0, 1, 2, 2, 0};
  MadeSchedule schedule;
  schedule.seed = kSeeds[number];
  schedule.is_adversarial = number == kZerosLaunch || number == 5;
  schedule.word = schedule.seed == 0
                      ? "in-order"
                      : fmt::format("{}:{}", schedule.is_adversarial ? "adversarial" : "random", schedule.seed);
  return schedule;
}

}  // namespace ptxkit
