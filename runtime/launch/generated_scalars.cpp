#include "runtime/launch/generated_scalars.hpp"

#include <algorithm>
#include <bit>

namespace ptxkit {
namespace {

constexpr uint64_t kSizes[] = {100, 300, 7, 1000, 33, 200, 500, 3, 2000};
constexpr double kNumbers[] = {1.5, -0.3, 0.1, 3.14159, 100, -2.75, 1e-3};
constexpr uint64_t kLargestConstant = 1 << 16;
constexpr size_t kMaxConstants = 8, kMaxPowers = 6, kRandomValues = 6;
// Searching launches with a common index for all scalars, and as many with separate ones
constexpr unsigned kIndexSequenceLength = 8;

void add(std::vector<uint64_t>& values, uint64_t value) {
  if (std::ranges::find(values, value) == values.end()) values.push_back(value);
}

// The product in the field of 8 elements, modulo x^3 + x + 1. Multiplication by a nonzero element is a permutation.
unsigned field_product(unsigned a, unsigned b) {
  unsigned sum = 0;
  for (unsigned bit = 0; bit < 3; ++bit) sum ^= (b >> bit & 1) * (a << bit);
  for (const unsigned bit : {4u, 3u}) sum ^= (sum >> bit & 1) * (0b1011 << (bit - 3));
  return sum;
}

}  // namespace

std::vector<uint64_t> compared_constants(const ptx::Function& kernel) {
  std::vector<uint64_t> constants;
  for (const ptx::Instruction& each : kernel.instructions) {
    if (each.op != ptx::Op::setp && each.op != ptx::Op::set) continue;
    for (const ptx::Operand& operand : kernel.operands(each))
      if (operand.kind == ptx::OperandKind::integer && operand.value > 1 && operand.value <= kLargestConstant &&
          constants.size() < kMaxConstants)
        add(constants, operand.value);
  }
  return constants;
}

std::vector<uint64_t> scalar_values(ptx::Type type, const flow::ParameterFacts* known,
                                    const std::vector<uint64_t>& constants, uint64_t threads) {
  std::vector<uint64_t> values;
  const bool is_floating = ptx::kind(type) == ptx::TypeKind::floating;
  if (known == nullptr || !known->low) {
    for (const double number : kNumbers) {
      if (type == ptx::Type::f32) values.push_back(std::bit_cast<uint32_t>(static_cast<float>(number)));
      if (type == ptx::Type::f64) values.push_back(std::bit_cast<uint64_t>(number));
    }
    if (!values.empty()) return values;
    for (const uint64_t size : kSizes) add(values, size);
    for (const uint64_t constant : constants)
      for (const uint64_t value : {constant, constant + 1, constant - 1}) add(values, value);
    return values;
  }
  const uint64_t low = *known->low, high = std::max(known->high.value_or(low), low);
  const auto add_inside = [&](uint64_t value) {
    if (value >= low && value <= high) add(values, value);
  };
  add_inside(low);
  add_inside(high);
  uint64_t state = low ^ high * 0x9e3779b97f4a7c15;
  for (size_t i = 0; i < kRandomValues; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;  // Knuth's MMIX generator
    add_inside(high - low == ~uint64_t{0} ? state : low + (state >> 16) % (high - low + 1));
  }
  if (is_floating) return values;
  for (const uint64_t constant : constants)
    for (const uint64_t value : {constant, constant + 1, constant - 1}) add_inside(value);
  for (const uint64_t value : {threads, threads - 1, threads + 1, threads / 2, low + 1, high - 1}) add_inside(value);
  uint64_t power = std::bit_floor(std::max<uint64_t>(high, 1));
  for (size_t i = 0; i < kMaxPowers && power >= low && power > 0; ++i, power /= 2) add_inside(power);
  return values;
}

size_t scalar_choice(unsigned search, unsigned place, size_t count) {
  const unsigned index = search / 2 % kIndexSequenceLength;
  if (search % 2 == 0) return index % count;
  // Each place visits the turns in an order of its own. Orders by multiplication differ in every bit, so two scalars
  // with few values see all pairs of them.
  const unsigned order = place / (kIndexSequenceLength - 1);
  const unsigned own_index =
      field_product(index, place % (kIndexSequenceLength - 1) + 1) ^ (place + 2 * order) % kIndexSequenceLength;
  if (count <= 2 * kIndexSequenceLength) return (kIndexSequenceLength + own_index) % count;
  return kIndexSequenceLength + own_index * (count - kIndexSequenceLength) / kIndexSequenceLength;
}

}  // namespace ptxkit
