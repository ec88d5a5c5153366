#include "runtime/codec/blocks/bbw_block.hpp"

#include <algorithm>

#include "kernels/bwt/bwt_reference.hpp"
#include "kernels/bwt/mtf_reference.hpp"
#include "kernels/bwt/zero_runs_reference.hpp"
#include "runtime/codec/blocks/coded_stream.hpp"
#include "runtime/codec/coders/coders.hpp"

namespace ptxkit::codec {
namespace {

using format::Bytes;
using format::MutableBytes;
using kernels::StreamStatus;
using kernels::TransformOutcome;
using ByteVector = std::vector<uint8_t>;

}  // namespace

ByteVector encode_bbw_block(Bytes raw) {
  const auto n = static_cast<uint32_t>(raw.size());
  ByteVector coded(kernels::bwt_block_bytes(n));
  kernels::bwt_reference(raw, coded);
  ByteVector places(n), runs(kernels::zero_runs_bound(n));
  kernels::mtf_encode_reference(Bytes(coded).last(n), places);
  runs.resize(kernels::zero_runs_encode_reference(places, runs).size_bytes);

  coded.resize(kernels::bwt_column_at(n));
  append_u32(coded, static_cast<uint32_t>(runs.size()));
  for (size_t at = 0; at < runs.size(); at += kBbwSectionBytes) {
    append_stream(
        coded, Bytes(runs).subspan(at, std::min(kBbwSectionBytes, runs.size() - at)),
        [](Bytes section, MutableBytes packed) { return cpu::rans_warp_encode(section, packed, kBbwSectionOptions); });
  }
  if (coded.size() >= raw.size()) coded.clear();
  coded.shrink_to_fit();
  return coded;
}

bool decode_bbw_block(Bytes coded, MutableBytes raw) {
  const auto n = static_cast<uint32_t>(raw.size());
  size_t at = kernels::bwt_column_at(n);
  if (coded.size() < at + 4) return false;
  ByteVector block(kernels::bwt_block_bytes(n));
  std::copy_n(coded.begin(), at, block.begin());
  const uint32_t run_bytes = read_u32(&coded[at]);
  at += 4;
  if (run_bytes > kernels::zero_runs_bound(n)) return false;
  ByteVector runs(run_bytes);
  for (size_t from = 0; from < runs.size(); from += kBbwSectionBytes) {
    const size_t size = std::min(kBbwSectionBytes, runs.size() - from);
    if (!take_stream(coded, at, MutableBytes(runs).subspan(from, size), cpu::rans_warp_decode)) return false;
  }
  if (at != coded.size()) return false;
  const MutableBytes column = MutableBytes(block).last(n);
  if (kernels::zero_runs_decode_reference(runs, column) != TransformOutcome{StreamStatus::ok, n}) return false;
  kernels::mtf_decode_reference(column, column);
  return kernels::bwt_inverse_reference(block, raw) == TransformOutcome{StreamStatus::ok, n};
}

}  // namespace ptxkit::codec
