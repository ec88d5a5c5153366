// Deflate in device memory.
#include <vector>

#include <fmt/format.h>

#include "kernels/abi.hpp"
#include "kernels/deflate/deflate_encode_format.hpp"
#include "kernels/deflate/inflate_format.hpp"
#include "runtime/library/coding_launches.hpp"

namespace ptxkit::library {
namespace {

using kernels::DeflateFraming;

DeflateFraming deflate_framing_of(Coding coding) {
  if (coding == Coding::deflate) return DeflateFraming::raw;
  return coding == Coding::zlib ? DeflateFraming::zlib : DeflateFraming::gzip;
}

Result<void> check_deflate_framing(Coding coding, Framing framing) {
  if (coding == Coding::deflate) {
    if (framing != Framing::raw) return fail("framing: Deflate has RAW alone");
  } else if (framing != Framing::frame) {
    return fail("framing: gzip and zlib have FRAME alone");
  }
  return {};
}

bool is_encoded(uint64_t max_input_bytes, Coding coding) {
  return max_input_bytes <= kernels::deflate_max_item_bytes(deflate_framing_of(coding));
}

// What encoding takes of temporary memory: for each item its tokens and its matches.
struct DeflateEncodeTemp {
  DeflateEncodeTemp(DeviceAddress begin, uint64_t max_input_bytes, uint64_t items) : parts(begin) {
    const auto bytes = static_cast<uint32_t>(max_input_bytes);
    tokens = parts.take(items * kernels::deflate_token_words(bytes) * sizeof(uint32_t));
    matches = parts.take(items * kernels::deflate_list_words(bytes) * sizeof(uint32_t));
    match_counts = parts.take(items * sizeof(uint32_t));
  }
  static uint64_t bytes(uint64_t max_input_bytes, uint64_t items) {
    return DeflateEncodeTemp(0, max_input_bytes, items).parts.end;
  }

  TempParts parts;
  DeviceAddress tokens, matches, match_counts;
};

// The launches for the items of a round.
void add_deflate_round(const BatchCompression& round, std::vector<BatchLaunch>& launches) {
  const DeflateEncodeTemp temp(round.temp, round.max_input_bytes, round.item_count);
  const auto arguments = arguments_of(
      round, {address(temp.matches), address(temp.match_counts), address(temp.tokens), number(round.max_input_bytes),
              number(deflate_framing_of(round.coding)), number(round.item_count)});
  launches.push_back(launch(round.is_fast ? kernels::kDeflateMatch : kernels::kDeflateMatchHigh,
                            kernels::kDeflateMatchShape, round.item_count, arguments));
  launches.push_back(launch(kernels::kDeflateEncode, kernels::kDeflateEncodeShape, round.item_count, arguments));
}

}  // namespace

Result<BatchRequirements> deflate_requirements(uint64_t max_input_bytes, uint64_t item_count, Framing framing,
                                               Coding coding) {
  if (auto good = check_deflate_framing(coding, framing); !good) return tl::unexpected(good.error());
  BatchRequirements needs{.input_alignment = kernels::kStrideUnitBytes,
                          .output_alignment = 1,
                          .temp_alignment = kernels::kStrideUnitBytes,
                          .temp_bytes = 0,
                          .output_bytes_bound = 0,
                          .decompress_temp_bytes = 0};
  if (is_encoded(max_input_bytes, coding)) {
    needs.temp_bytes = DeflateEncodeTemp::bytes(max_input_bytes, items_of_a_round(item_count, 1));
    needs.output_bytes_bound = kernels::deflate_batch_bound(max_input_bytes, deflate_framing_of(coding));
  }
  return needs;
}

Launches deflate_launches(const BatchCompression& batch) {
  if (!is_encoded(batch.max_input_bytes, batch.coding)) {
    return fail(fmt::format("max_input_bytes: expected at most {} of Deflate, found {}",
                            kernels::deflate_max_item_bytes(deflate_framing_of(batch.coding)), batch.max_input_bytes),
                {}, "cut the items in several");
  }
  return launches_in_rounds(
      batch, [&](uint64_t items) { return DeflateEncodeTemp::bytes(batch.max_input_bytes, items); }, add_deflate_round);
}

Launches deflate_launches(const BatchDecompression& batch) {
  if (auto good = check_deflate_framing(batch.coding, batch.framing); !good) return tl::unexpected(good.error());
  return std::vector{launch(kernels::kInflateBatch, kernels::kInflateShape, batch.item_count,
                            arguments_of(batch, {number(deflate_framing_of(batch.coding)), number(batch.item_count)}))};
}

}  // namespace ptxkit::library
