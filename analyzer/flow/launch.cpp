// Limits from the CUDA C++ Programming Guide, table of technical specifications: 1024 threads per block, 64 in z,
// 2^31-1 blocks in x, 65535 in y and z.
#include "analyzer/flow/launch.hpp"

#include <algorithm>

#include "analyzer/flow/bits.hpp"
#include "support/saturating.hpp"

namespace ptxkit::flow {

namespace {

constexpr uint32_t kMaxThreads = 1024, kMaxThreadsInZ = 64;

// Returns false and sets nothing where no device can launch such a block.
bool set_block(LaunchShape& shape, const uint32_t (&block)[3]) {
  const uint32_t threads[] = {std::max(block[0], 1u), std::max(block[1], 1u), std::max(block[2], 1u)};
  const uint64_t count = saturating_product(threads[0], threads[1], threads[2]);
  if (count > kMaxThreads || threads[2] > kMaxThreadsInZ) return false;
  shape.is_exact = true;
  std::copy_n(threads, 3, shape.threads);
  shape.max_threads = static_cast<uint32_t>(count);
  return true;
}

}  // namespace

LaunchShape LaunchShape::of(const ptx::Function& function, const LaunchFacts* facts) {
  LaunchShape shape;
  const auto& req = function.attributes.req_ntid;
  const auto& max = function.attributes.max_ntid;
  if (req[0]) {
    shape.is_possible = set_block(shape, req);
  } else if (max[0]) {
    const uint64_t product = saturating_product(max[0], std::max(max[1], 1u), std::max(max[2], 1u));
    shape.max_threads = static_cast<uint32_t>(std::min<uint64_t>(product, kMaxThreads));
  }
  if (!facts) return shape;
  shape.facts = facts;
  shape.dynamic_shared_bytes = facts->dynamic_shared_bytes;
  std::copy_n(facts->grid, 3, shape.grid);
  if (facts->block[0] && !req[0]) (void)set_block(shape, facts->block);  // engine/launch_file.cpp rejects other blocks
  return shape;
}

const ParameterFacts* LaunchShape::parameter(std::string_view name) const {
  if (!facts) return nullptr;
  const auto found = facts->parameters.find(name);
  return found == facts->parameters.end() ? nullptr : &found->second;
}

uint64_t LaunchShape::size_bytes(std::string_view name) const {
  const ParameterFacts* known = parameter(name);
  return known ? known->size_bytes : 0;
}

uint32_t LaunchShape::max_tid(unsigned dimension) const {
  if (is_exact) return threads[dimension] - 1;
  return std::min(max_threads, dimension == 2 ? 64u : 1024u) - 1;
}

SpecialRange range_of(ptx::SpecialRegister special, uint8_t component, const LaunchShape& shape) {
  using ptx::SpecialRegister;
  const unsigned dimension = component == 'y' ? 1 : component == 'z' ? 2 : 0;
  switch (special) {
    case SpecialRegister::tid:
      return {0, shape.max_tid(dimension)};
    case SpecialRegister::ntid:
      if (shape.is_exact) return {shape.threads[dimension], shape.threads[dimension]};
      return {1, uint64_t{shape.max_tid(dimension)} + 1};
    case SpecialRegister::laneid:
      return {0, std::min(shape.max_threads, 32u) - 1};
    case SpecialRegister::warpid:
      return {0, 63};
    case SpecialRegister::nwarpid:
      return {1, 64};
    case SpecialRegister::ctaid:
      if (shape.grid[dimension]) return {0, uint64_t{shape.grid[dimension]} - 1};
      return {0, dimension == 0 ? 0x7ffffffeull : 65534ull};
    case SpecialRegister::nctaid:
      if (shape.grid[dimension]) return {shape.grid[dimension], shape.grid[dimension]};
      return {1, dimension == 0 ? 0x7fffffffull : 65535ull};
    case SpecialRegister::smid:
      return {0, 4095};
    case SpecialRegister::nsmid:
      return {1, 4096};
    case SpecialRegister::cluster_ctarank:
      return {0, 31};
    case SpecialRegister::cluster_nctarank:
      return {1, 32};
    default:
      return {0, low_mask(ptx::bit_width(ptx::type(special)))};
  }
}

}  // namespace ptxkit::flow
