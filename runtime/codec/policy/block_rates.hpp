// How fast blocks of a codec were coded, by side: measured by the runs themselves, kept for the next ones.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "runtime/codec/blocks/block_coder.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {

enum class BlockSide : uint8_t { cpu, device, both };
inline constexpr size_t kBlockSides = 3;
std::string_view name_of(BlockSide side);

// Raw bytes a second of each side; 0 where it has not been measured.
using SideRates = std::array<double, kBlockSides>;

struct BlockRates {
  std::string device;  // BlockCoder::description(): another device or driver has other rates
  unsigned cpu_threads = 0;
  double start_seconds = 0;                // from nothing to a device that has coded a block
  std::map<std::string, SideRates> rates;  // by work, as in "lzr compress", "lzr compress-1", "zstd-2 compress"
};

std::string work_name(const BlockCoding& codec, MatchSearch search);  // of encoding
std::string work_name(const BlockCoding& codec);                      // of decoding

// Beside the rates of LZ4, in a file of its own, so that neither has to be there or whole for the other. Empty for "".
std::string block_rates_path(const std::string& calibration_path);
// Nothing when there is no such file or it holds something else: it is measured anew.
std::optional<BlockRates> load_block_rates(const std::string& path);
Result<void> save_block_rates(const BlockRates& rates, const std::string& path);

}  // namespace ptxkit::codec
