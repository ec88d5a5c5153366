// See fatbin.hpp. Sizes in headers are untrusted and are checked against the actual data.
#include "analyzer/container/fatbin.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

#include "analyzer/container/bytes.hpp"

namespace ptxkit::container {
namespace {

constexpr uint64_t kLz4LargestRatio = 255;  // output bytes per input byte: a length byte adds at most 255

Result<std::string> lz4_text(const FatbinEntry& entry) {
  const uint64_t size = entry.uncompressed_bytes;
  if (size > (entry.payload.size() + 1) * kLz4LargestRatio)
    return fail(
        fmt::format("the header promises {} bytes, more than {} bytes of LZ4 can hold", size, entry.payload.size()));
  std::string text(size, '\0');
  const int decoded = LZ4_decompress_safe(entry.payload.data(), text.data(), static_cast<int>(entry.payload.size()),
                                          static_cast<int>(text.size()));
  if (decoded < 0) return fail("the LZ4 data is damaged");
  if (static_cast<uint64_t>(decoded) != size)
    return fail(fmt::format("the LZ4 data holds {} bytes, the header promises {}", decoded, size));
  return text;
}

// The buffer grows with the actual output: a few bytes of Zstandard may claim a gigabyte.
Result<std::string> zstd_text(const FatbinEntry& entry) {
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  const std::unique_ptr<ZSTD_DStream, Free> stream(ZSTD_createDStream());
  if (!stream) return fail("no memory for the Zstandard decoder");
  ZSTD_inBuffer in{entry.payload.data(), entry.payload.size(), 0};
  std::string text;
  for (size_t left = 1; left != 0;) {
    const size_t known = text.size();
    text.resize(known + ZSTD_DStreamOutSize());
    ZSTD_outBuffer out{text.data() + known, text.size() - known, 0};
    left = ZSTD_decompressStream(stream.get(), &out, &in);
    text.resize(known + out.pos);
    if (ZSTD_isError(left)) return fail(fmt::format("the Zstandard data is damaged: {}", ZSTD_getErrorName(left)));
    if (text.size() > entry.uncompressed_bytes)
      return fail(fmt::format("the Zstandard data holds more than the {} bytes that the header promises",
                              entry.uncompressed_bytes));
    if (left != 0 && out.pos == 0 && in.pos == in.size) return fail("the Zstandard data is cut off");
  }
  if (text.size() != entry.uncompressed_bytes)
    return fail(fmt::format("the Zstandard data holds {} bytes, the header promises {}", text.size(),
                            entry.uncompressed_bytes));
  return text;
}

std::string target_name(uint32_t sm, uint64_t flags) {
  return fmt::format("sm_{}{}", sm, flags & kFlagArchitectureSpecific ? "a" : flags & kFlagFamilySpecific ? "f" : "");
}

}  // namespace

Result<uint64_t> fatbin_size(std::string_view bytes) {
  const auto magic = field<uint32_t>(bytes, 0);
  if (!magic || *magic != kFatbinMagic) return fail("expected a fat binary, which begins with 50 ed 55 ba", "byte 0");
  const auto header_bytes = field<uint16_t>(bytes, 6);
  const auto content_bytes = field<uint64_t>(bytes, 8);
  if (!header_bytes || !content_bytes) return fail("the header of the fat binary is cut off", "byte 0");
  if (*header_bytes < kFatbinHeaderBytes)
    return fail(
        fmt::format("the fat binary's header claims {} bytes, fewer than {}", *header_bytes, kFatbinHeaderBytes),
        "byte 6");
  if (*header_bytes > bytes.size() || *content_bytes > bytes.size() - *header_bytes)
    return fail(fmt::format("the fat binary claims {} bytes behind its header, {} are there", *content_bytes,
                            bytes.size() - std::min<uint64_t>(*header_bytes, bytes.size())),
                "byte 8", "is the file cut off?");
  return *header_bytes + *content_bytes;
}

Result<std::vector<FatbinEntry>> fatbin_entries(std::string_view container) {
  if (const auto size = fatbin_size(container); !size) return tl::unexpected(size.error());
  std::vector<FatbinEntry> entries;
  for (uint64_t at = *field<uint16_t>(container, 6); at < container.size();) {
    const auto damaged = [&](std::string what) {
      return fail(std::move(what), fmt::format("entry {} at byte {}", entries.size(), at));
    };
    const auto header = range(container, at, kFatbinEntryBytes);
    if (!header) return damaged("the entry's header is cut off");
    const uint64_t header_bytes = *field<uint32_t>(*header, 4);
    const uint64_t padded_bytes = *field<uint64_t>(*header, 8);
    const uint64_t compressed_bytes = *field<uint32_t>(*header, 16);
    if (header_bytes < kFatbinEntryBytes)
      return damaged(fmt::format("the entry's header claims {} bytes, fewer than {}", header_bytes, kFatbinEntryBytes));
    const auto payload =
        header_bytes <= container.size() - at ? range(container, at + header_bytes, padded_bytes) : std::nullopt;
    if (!payload)
      return damaged(fmt::format("the entry claims {} bytes, {} are there", padded_bytes,
                                 container.size() - std::min<uint64_t>(at + header_bytes, container.size())));
    FatbinEntry entry;
    entry.kind = FatbinEntry::Kind{*field<uint16_t>(*header, 0)};
    entry.flags = *field<uint64_t>(*header, 40);
    entry.target = target_name(*field<uint32_t>(*header, 28), entry.flags);
    entry.payload = *payload;
    if (entry.flags & (kFlagLz4 | kFlagZstd)) {
      entry.uncompressed_bytes = *field<uint64_t>(*header, 56);
      if (compressed_bytes > padded_bytes)
        return damaged(fmt::format("the entry claims {} compressed bytes in {}", compressed_bytes, padded_bytes));
      entry.payload = payload->substr(0, compressed_bytes);
    }
    entries.push_back(std::move(entry));
    at += header_bytes + padded_bytes;
  }
  return entries;
}

Result<std::string> ptx_text(const FatbinEntry& entry) {
  if (entry.flags & kFlagUnknownCompression && !(entry.flags & (kFlagLz4 | kFlagZstd)))
    return fail("the PTX is compressed the way toolkits before CUDA 6 did, which this program does not know", {},
                "extract it with cuobjdump -xptx");
  if (std::max<uint64_t>(entry.uncompressed_bytes, entry.payload.size()) > kLargestTextBytes)
    return fail(fmt::format("{} bytes of PTX, more than {} are not read",
                            std::max<uint64_t>(entry.uncompressed_bytes, entry.payload.size()), kLargestTextBytes));
  auto text = entry.flags & kFlagZstd  ? zstd_text(entry)
              : entry.flags & kFlagLz4 ? lz4_text(entry)
                                       : Result<std::string>(std::string(entry.payload));
  if (text) text->resize(text->find_last_not_of('\0') + 1);
  return text;
}

}  // namespace ptxkit::container
