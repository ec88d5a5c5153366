#include "runtime/codec/policy/block_rates.hpp"

#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/format/codecs.hpp"
#include "support/file.hpp"

namespace ptxkit::codec {
namespace {

constexpr const char* kHeading = "ptxkit block rates 1";
constexpr size_t kMostFileBytes = 64u << 10;

// "lzr", "zstd", "gzip-1".
std::string name_of(const BlockCoding& codec) {
  if (const auto* ptz = std::get_if<format::PtzCoding>(&codec)) return format::name_of(*ptz);
  const auto* zstd = std::get_if<ZstdCoding>(&codec);
  const int level = zstd != nullptr ? zstd->level : std::get<GzipCoding>(codec).level;
  const std::string_view name = zstd != nullptr ? "zstd" : "gzip";
  return level == 0 ? std::string(name) : fmt::format("{}-{}", name, level);
}

}  // namespace

std::string_view name_of(BlockSide side) {
  return side == BlockSide::cpu ? "the CPU" : side == BlockSide::device ? "the GPU" : "both";
}

std::string work_name(const BlockCoding& codec, MatchSearch search) {
  return fmt::format("{} compress{}", name_of(codec), search == MatchSearch::tables ? "-1" : "");
}
std::string work_name(const BlockCoding& codec) { return fmt::format("{} decompress", name_of(codec)); }

std::string block_rates_path(const std::string& calibration_path) {
  return calibration_path.empty() ? std::string() : calibration_path + ".blocks";
}

// "lzr compress 5.7e+08 1.9e+09 0": a work, and bytes a second on the CPU, on the device and on both.
std::optional<BlockRates> load_block_rates(const std::string& path) {
  if (path.empty()) return std::nullopt;
  const auto content = read_regular_file(path, kMostFileBytes);
  if (!content) return std::nullopt;
  std::istringstream lines(*content);
  BlockRates found;
  std::string heading, codec, work;
  if (!std::getline(lines, heading) || heading != kHeading || !std::getline(lines, found.device)) return std::nullopt;
  if (!(lines >> found.cpu_threads >> found.start_seconds) || !(found.start_seconds > 0)) return std::nullopt;
  while (lines >> codec && codec != "end") {
    SideRates rates;
    if (!(lines >> work >> rates[0] >> rates[1] >> rates[2])) return std::nullopt;
    for (const double rate : rates) {
      if (!(rate >= 0)) return std::nullopt;
    }
    found.rates[fmt::format("{} {}", codec, work)] = rates;
  }
  return codec == "end" && !(lines >> codec) ? std::optional(std::move(found)) : std::nullopt;
}

Result<void> save_block_rates(const BlockRates& rates, const std::string& path) {
  std::error_code ignored;  // write_file says what is wrong with the folder
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::filesystem::create_directories(folder, ignored);
  }
  std::string text = fmt::format("{}\n{}\n{} {:.6g}\n", kHeading, rates.device, rates.cpu_threads, rates.start_seconds);
  for (const auto& [work, of] : rates.rates)
    text += fmt::format("{} {:.6g} {:.6g} {:.6g}\n", work, of[0], of[1], of[2]);
  return write_file(path, text + "end\n");
}

}  // namespace ptxkit::codec
