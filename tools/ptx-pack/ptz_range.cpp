#include "tools/ptx-pack/ptz_range.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/mman.h>

#include "runtime/codec/ptz_stream.hpp"

namespace ptxkit::pack {
namespace {

// A file as memory, read where it is looked at.
class Mapping {
 public:
  explicit Mapping(const InputFile& input)
      : size_bytes_(static_cast<std::size_t>(input.info().st_size)),
        first_(size_bytes_ == 0 ? nullptr
                                : ::mmap(nullptr, size_bytes_, PROT_READ, MAP_PRIVATE, input.descriptor(), 0)) {}
  ~Mapping() {
    if (is_good() && first_ != nullptr) ::munmap(first_, size_bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  bool is_good() const { return first_ != MAP_FAILED; }
  format::Bytes bytes() const { return {static_cast<const std::uint8_t*>(first_), size_bytes_}; }

 private:
  std::size_t size_bytes_;
  void* first_;
};

}  // namespace

Result<void> extract_from_ptz(const InputFile& input, const ByteRange& range, format::ByteSink& sink) {
  const Mapping file(input);
  if (!file.is_good()) return fail(fmt::format("cannot read: {}", std::strerror(errno)), input.name());
  const auto archive = format::PtzArchive::open(file.bytes(), input.name());
  if (!archive) return tl::unexpected(archive.error());
  std::uint64_t raw_bytes = 0;
  for (std::size_t i = 0; i < archive->block_count(); ++i) raw_bytes += archive->block(i).raw_bytes;
  const bool is_to_the_end = range.end == std::numeric_limits<std::uint64_t>::max();
  if (is_to_the_end ? range.begin >= raw_bytes : range.end > raw_bytes) {
    return fail(fmt::format("the range begins or ends beyond the {} bytes that there are", raw_bytes), input.name());
  }
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < archive->block_count() && at < range.end; ++i) {
    const std::uint64_t end = at + archive->block(i).raw_bytes;
    if (end > range.begin) {
      const auto raw = codec::read_ptz_block(*archive, i, input.name());
      if (!raw) return tl::unexpected(raw.error());
      const std::uint64_t first = std::max(range.begin, at) - at, last = std::min(range.end, end) - at;
      if (auto written = sink.write(format::Bytes(*raw).subspan(first, last - first)); !written) return written;
    }
    at = end;
  }
  return {};
}

}  // namespace ptxkit::pack
