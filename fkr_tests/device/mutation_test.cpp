// Millions of damaged blocks through lz4_decompress: each must give the reference's status, size and bytes, and write
// nothing outside its room. $PTXKIT_MUTATIONS is their number (default 1048576). Under memcheck reads outside are found
// too.
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <random>

#include <gtest/gtest.h>
#include <lz4.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/device/device.hpp"
#include "kernels/images.hpp"
#include "kernels/lz4/lz4_decompress_reference.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::testing {
namespace {

constexpr uint32_t kWave = 1u << 15;  // blocks in one launch
constexpr uint8_t kUntouched = 0xee;
constexpr size_t kGap = 16;  // unused bytes between rooms

Bytes liblz4_block(const Bytes& raw) {
  Bytes block(static_cast<size_t>(LZ4_compressBound(static_cast<int>(raw.size()))));
  block.resize(static_cast<size_t>(LZ4_compress_default(reinterpret_cast<const char*>(raw.data()),
                                                        reinterpret_cast<char*>(block.data()),
                                                        static_cast<int>(raw.size()), static_cast<int>(block.size()))));
  return block;
}

struct Sample {
  Bytes block;
  uint32_t capacity;  // the size to which the undamaged block decodes
};

// Blocks of pages and a few of chunks: generated ones and, if there is a corpus, the start of each file.
std::vector<Sample> samples() {
  std::vector<Bytes> sources;
  for (uint32_t seed = 0; seed < 64; ++seed) sources.push_back(matchable_bytes(4096, seed));
  sources.push_back(ramp_bytes(4096));
  sources.emplace_back(4096, uint8_t{'A'});
  sources.push_back(matchable_bytes(65536, 64));
  for (const auto& path : corpus_files()) {
    const Bytes file = read_prefix(path, 64 << 10);
    for (auto at = file.begin(); file.end() - at >= 4096; at += 4096) sources.emplace_back(at, at + 4096);
  }
  std::vector<Sample> all;
  for (const Bytes& source : sources) all.push_back({liblz4_block(source), static_cast<uint32_t>(source.size())});
  return all;
}

// Changes one to four bytes, zeroes two adjacent bytes, cuts the end, or makes the room too small.
Sample damaged(const Sample& sample, std::mt19937& random) {
  Sample result = sample;
  const auto kind = random() % 16;
  if (kind == 0) result.block.resize(random() % result.block.size());
  if (kind == 1) result.capacity = static_cast<uint32_t>(random() % result.capacity);
  if ((kind == 2 || kind == 3) && result.block.size() > 1) {
    const auto at = random() % (result.block.size() - 1);
    result.block[at] = result.block[at + 1] = 0;
  }
  if (kind > 3) {
    for (auto change = 1 + random() % 4; change != 0; --change)
      result.block[random() % result.block.size()] = static_cast<uint8_t>(random());
  }
  return result;
}

template <class T>
std::span<const uint8_t> bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)};
}
template <class T>
std::span<uint8_t> writable_bytes_of(std::vector<T>& values) {
  return {reinterpret_cast<uint8_t*>(values.data()), values.size() * sizeof(T)};
}

class Decoder {
 public:
  explicit Decoder(const driver::ContextPointer& context)
      : context_(context),
        stream_(driver::Stream::create(context).value()),
        kernel_(driver::Kernel::load(context, *kernels::find_kernel_image(kernels::kLz4Decompress,
                                                                          context->info().major, context->info().minor))
                    .value()) {}

  // Decodes a wave and compares it with the reference. Counts the statuses in `met`.
  void check(const std::vector<Sample>& wave, codec::Executor& executor, std::map<kernels::Lz4Status, size_t>& met) {
    const auto count = static_cast<uint32_t>(wave.size());
    Bytes packed;
    std::vector<uint64_t> block_offsets, room_offsets;
    std::vector<uint32_t> sizes, capacities, found_sizes(count), statuses(count);
    uint64_t room_bytes = kGap;
    for (const Sample& each : wave) {
      block_offsets.push_back(packed.size());
      sizes.push_back(static_cast<uint32_t>(each.block.size()));
      packed.insert(packed.end(), each.block.begin(), each.block.end());
      room_offsets.push_back(room_bytes);
      capacities.push_back(each.capacity);
      room_bytes += each.capacity + kGap;
    }
    Bytes rooms(room_bytes);
    const auto src = upload(packed), src_offsets = upload(block_offsets), src_sizes = upload(sizes),
               dst = memory(room_bytes), dst_offsets = upload(room_offsets), dst_capacities = upload(capacities),
               dst_sizes = memory(count * 4), codes = memory(count * 4);
    ASSERT_TRUE(dst.fill(kUntouched, stream_));
    using driver::LaunchArgument;
    const auto pointer = [](const driver::DeviceMemory& to) { return LaunchArgument::of(to.as<uint8_t>()); };
    const LaunchArgument arguments[] = {pointer(src),       pointer(src_offsets), pointer(src_sizes),
                                        pointer(dst),       pointer(dst_offsets), pointer(dst_capacities),
                                        pointer(dst_sizes), pointer(codes),       LaunchArgument::of(count)};
    const kernels::LaunchShape& shape = kernels::kLz4DecompressShape;
    ASSERT_TRUE(kernel_.launch(stream_, shape.grid_blocks(count), shape.block_threads, arguments));
    ASSERT_TRUE(dst.download(rooms, stream_));
    ASSERT_TRUE(dst_sizes.download(writable_bytes_of(found_sizes), stream_));
    ASSERT_TRUE(codes.download(writable_bytes_of(statuses), stream_));
    const auto done = stream_.wait();
    ASSERT_TRUE(done.has_value()) << done.error().message();

    std::atomic<uint32_t> wrong{0}, touched{0}, first_wrong{count};
    std::mutex counting;
    executor.for_each(count, [&](size_t i, unsigned) {
      Bytes expected(capacities[i]);
      const auto reference = kernels::lz4_decompress_reference(wave[i].block, expected);
      const auto room = rooms.begin() + static_cast<ptrdiff_t>(room_offsets[i]);
      const bool same = statuses[i] == static_cast<uint32_t>(reference.status) &&
                        found_sizes[i] == reference.size_bytes &&
                        std::equal(expected.begin(), expected.begin() + reference.size_bytes, room);
      const auto behind = room + static_cast<ptrdiff_t>(capacities[i]);
      const auto is_untouched = [](uint8_t byte) { return byte == kUntouched; };
      if (!same) {
        ++wrong;
        first_wrong = static_cast<uint32_t>(i);
      }
      if (!std::all_of(room - kGap, room, is_untouched) || !std::all_of(behind, behind + kGap, is_untouched)) ++touched;
      const std::lock_guard lock(counting);
      ++met[reference.status];
    });
    EXPECT_EQ(wrong, 0u) << "not as the reference, block " << first_wrong << " for one";
    EXPECT_EQ(touched, 0u) << "written outside their rooms";
  }

 private:
  driver::DeviceMemory memory(size_t size_bytes) const {
    return driver::DeviceMemory::allocate(context_, std::max<size_t>(size_bytes, 1)).value();
  }
  template <class T>
  driver::DeviceMemory upload(const std::vector<T>& values) const {
    auto to = memory(values.size() * sizeof(T));
    EXPECT_TRUE(to.upload(bytes_of(values), stream_));
    return to;
  }

  driver::ContextPointer context_;
  driver::Stream stream_;
  driver::Kernel kernel_;
};

TEST(DeviceMutations, EveryDamagedBlockHasTheStatusAndTheBytesOfTheReference) {
  PTXKIT_REQUIRE_DEVICE();
  const char* wanted = std::getenv("PTXKIT_MUTATIONS");
  const auto total = wanted != nullptr ? static_cast<uint32_t>(std::atoi(wanted)) : 1u << 20;
  const std::vector<Sample> originals = samples();
  codec::Executor executor;
  Decoder decoder(*device());
  std::map<kernels::Lz4Status, size_t> met;
  for (uint32_t begun = 0; begun < total && !HasFailure(); begun += kWave) {
    std::mt19937 random(begun);
    std::vector<Sample> wave;
    for (uint32_t i = 0; i < std::min(kWave, total - begun); ++i)
      wave.push_back(damaged(originals[random() % originals.size()], random));
    decoder.check(wave, executor, met);
  }
  for (const auto& [status, count] : met) std::printf("%zu: %s\n", count, kernels::status_text(status).data());
  EXPECT_GE(met.size(), 5u) << "the damage should provoke every status of a block that is not too large";
}

}  // namespace
}  // namespace ptxkit::testing
