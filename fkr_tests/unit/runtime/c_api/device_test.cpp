// Batches in device memory through libptxkit.so, on the driver whose GPU is the emulator.
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <lz4.h>
#include <zstd.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/typed_arrays.hpp"
#include "fkr_tests/unit/runtime/c_api/c_api.hpp"
#include "kernels/typed/typed_format.hpp"
#include "runtime/driver/context.hpp"
#include "runtime/driver/driver.hpp"

namespace ptxkit::testing {
namespace {

using ::testing::HasSubstr;

// Device memory with a copy of `values`.
template <class T>
class OnDevice {
 public:
  OnDevice(const driver::ContextPointer& context, const std::vector<T>& values)
      : stream_(driver::Stream::create(context).value()),
        memory_(driver::DeviceMemory::allocate(context, std::max<size_t>(values.size() * sizeof(T), 1)).value()),
        count_(values.size()) {
    if (values.empty()) return;
    EXPECT_TRUE(memory_.upload({reinterpret_cast<const uint8_t*>(values.data()), count_ * sizeof(T)}, stream_));
    EXPECT_TRUE(stream_.wait());
  }
  std::vector<T> values() const {
    std::vector<T> all(count_);
    EXPECT_TRUE(memory_.download({reinterpret_cast<uint8_t*>(all.data()), count_ * sizeof(T)}, stream_));
    EXPECT_TRUE(stream_.wait());
    return all;
  }
  T* get() const { return reinterpret_cast<T*>(memory_.handle()); }

 private:
  driver::Stream stream_;
  driver::DeviceMemory memory_;
  size_t count_;
};

class DeviceCApi : public ::testing::Test {
 protected:
  DeviceCApi() {
    EXPECT_OK(ptxkit_device_create(0, EMULATED_CUDA, &device_));
    auto opened = driver::Driver::open(EMULATED_CUDA);
    context_ = driver::Context::create(opened.value(), 0).value();
    options_.flags = PTXKIT_REPRODUCIBLE;
  }
  ~DeviceCApi() override { ptxkit_device_destroy(device_); }

  ptxkit_device_requirements requirements(size_t most, size_t count) {
    ptxkit_device_requirements needs{};
    needs.struct_bytes = sizeof needs;
    EXPECT_OK(ptxkit_device_query(&options_, most, count, &needs));
    return needs;
  }

  // Compresses on `stream` and checks the statuses.
  std::vector<Bytes> compressed(const std::vector<Bytes>& items, void* stream) {
    size_t most = 0;
    for (const Bytes& item : items) most = std::max(most, item.size());
    const auto needs = requirements(most, items.size());
    std::vector<OnDevice<uint8_t>> raw, rooms;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    std::vector<size_t> sizes;
    for (const Bytes& item : items) {
      Bytes padded = item;
      padded.resize(item.size() + needs.input_alignment, 0x77);  // what follows is read and ignored
      raw.emplace_back(context_, padded);
      rooms.emplace_back(context_, Bytes(needs.output_bytes + 8, kGuard));
      inputs.push_back(raw.back().get());
      outputs.push_back(rooms.back().get());
      sizes.push_back(item.size());
    }
    const OnDevice<const void*> input_array(context_, inputs);
    const OnDevice<void*> output_array(context_, outputs);
    const OnDevice<size_t> size_array(context_, sizes), used(context_, std::vector<size_t>(items.size(), 77));
    const OnDevice<ptxkit_status> statuses(context_, std::vector<ptxkit_status>(items.size(), 77));
    const OnDevice<uint8_t> temp(context_, Bytes(needs.temp_bytes));
    EXPECT_OK(ptxkit_device_compress(device_, input_array.get(), size_array.get(), most, items.size(), temp.get(),
                                     needs.temp_bytes, output_array.get(), used.get(), &options_, statuses.get(),
                                     stream));
    EXPECT_EQ(statuses.values(), std::vector<ptxkit_status>(items.size(), PTXKIT_OK));
    std::vector<Bytes> results;
    const auto lengths = used.values();
    for (size_t i = 0; i < items.size(); ++i) {
      Bytes room = rooms[i].values();
      for (size_t k = needs.output_bytes; k < room.size(); ++k) EXPECT_EQ(room[k], kGuard);
      room.resize(lengths[i]);
      results.push_back(std::move(room));
    }
    return results;
  }

  // Decompresses on the null stream and compares what is ok with `items`.
  std::vector<ptxkit_status> decompressed(const std::vector<Bytes>& packed, const std::vector<Bytes>& items) {
    std::vector<OnDevice<uint8_t>> stored, rooms;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    std::vector<size_t> sizes, capacities;
    size_t most = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      stored.emplace_back(context_, packed[i]);
      rooms.emplace_back(context_, Bytes(items[i].size() + 8, kGuard));
      inputs.push_back(stored.back().get());
      outputs.push_back(rooms.back().get());
      sizes.push_back(packed[i].size());
      capacities.push_back(items[i].size());
      most = std::max(most, items[i].size());
    }
    const auto needs = requirements(most, items.size());
    const OnDevice<const void*> input_array(context_, inputs);
    const OnDevice<void*> output_array(context_, outputs);
    const OnDevice<size_t> size_array(context_, sizes), capacity_array(context_, capacities),
        used(context_, std::vector<size_t>(items.size(), 77));
    const OnDevice<ptxkit_status> statuses(context_, std::vector<ptxkit_status>(items.size(), 77));
    const OnDevice<uint8_t> temp(context_, Bytes(needs.decompress_temp_bytes));
    EXPECT_OK(ptxkit_device_decompress(device_, input_array.get(), size_array.get(), capacity_array.get(), used.get(),
                                       items.size(), temp.get(), needs.decompress_temp_bytes, output_array.get(),
                                       &options_, statuses.get(), nullptr));
    const auto found = statuses.values();
    const auto lengths = used.values();
    for (size_t i = 0; i < items.size(); ++i) {
      Bytes room = rooms[i].values();
      EXPECT_EQ(room.back(), kGuard);
      room.resize(items[i].size());
      EXPECT_EQ(lengths[i], found[i] == PTXKIT_OK ? items[i].size() : 0);
      EXPECT_TRUE(found[i] != PTXKIT_OK || room == items[i]) << i;
    }
    return found;
  }

  ptxkit_device* device_ = nullptr;
  driver::ContextPointer context_;
  ptxkit_batch_options options_ = PTXKIT_BATCH_OPTIONS_DEFAULTS;
};

// Frames of libzstd, one of them damaged.
TEST_F(DeviceCApi, ZstandardFramesAreDecompressed) {
  options_ = PTXKIT_BATCH_OPTIONS_DEFAULTS;
  options_.codec = PTXKIT_CODEC_ZSTD;
  options_.framing = PTXKIT_FRAMING_FRAME;
  const std::vector<Bytes> items = {words(20'000), random_bytes(500, 1), words(3000), {}};
  std::vector<Bytes> frames;
  for (const Bytes& item : items) {
    Bytes& frame = frames.emplace_back(ZSTD_compressBound(item.size()));
    frame.resize(ZSTD_compress(frame.data(), frame.size(), item.data(), item.size(), 3));
    if (item.size() == 3000) frame[frame.size() / 2] ^= 0x55;
  }
  EXPECT_EQ(decompressed(frames, items),
            (std::vector<ptxkit_status>{PTXKIT_OK, PTXKIT_OK, PTXKIT_CANNOT_DECOMPRESS, PTXKIT_OK}));
}

// libzstd and libdeflate read them on the host, the kernels on the device.
TEST_F(DeviceCApi, ZstandardAndDeflateComeBack) {
  const std::vector<Bytes> items = {{}, words(1), words(5000), random_bytes(600, 1), Bytes(65'536, 'x'), words(65'536)};
  ptxkit_context_options settings = PTXKIT_CONTEXT_OPTIONS_DEFAULTS;
  settings.policy = PTXKIT_POLICY_CPU;
  ptxkit_context* host = nullptr;
  ASSERT_OK(ptxkit_context_create(&settings, &host));
  for (const auto& [codec, framing, level] :
       {std::tuple(PTXKIT_CODEC_ZSTD, PTXKIT_FRAMING_FRAME, 0), std::tuple(PTXKIT_CODEC_ZSTD, PTXKIT_FRAMING_FRAME, 1),
        std::tuple(PTXKIT_CODEC_GZIP, PTXKIT_FRAMING_FRAME, 2), std::tuple(PTXKIT_CODEC_GZIP, PTXKIT_FRAMING_FRAME, 1),
        std::tuple(PTXKIT_CODEC_ZLIB, PTXKIT_FRAMING_FRAME, 0),
        std::tuple(PTXKIT_CODEC_DEFLATE, PTXKIT_FRAMING_RAW, 0)}) {
    SCOPED_TRACE(codec);
    options_ = PTXKIT_BATCH_OPTIONS_DEFAULTS;
    options_.codec = codec;
    options_.framing = framing;
    options_.level = level;
    const auto packed = compressed(items, nullptr);
    EXPECT_LT(packed[5].size(), items[5].size() / 2);
    EXPECT_EQ(decompressed(packed, items), std::vector<ptxkit_status>(items.size(), PTXKIT_OK));
    for (size_t i = 0; i < items.size(); ++i) {
      Bytes back(items[i].size());
      const void* const input = packed[i].data();
      void* const output = back.data();
      const size_t input_bytes = packed[i].size(), capacity = back.size();
      size_t size = 77;
      EXPECT_OK(ptxkit_decompress_batch(host, &options_, &input, &input_bytes, 1, &output, &capacity, &size, nullptr));
      EXPECT_EQ(size, items[i].size());
      EXPECT_TRUE(back == items[i]) << i;
    }
    auto damaged = packed;
    damaged[5].resize(damaged[5].size() / 2);
    EXPECT_EQ(decompressed(damaged, items).back(), PTXKIT_CANNOT_DECOMPRESS);
  }
  ptxkit_context_destroy(host);
}

TEST_F(DeviceCApi, ItemsOfEverySizeBecomeBlocksThatLiblz4Reads) {
  const std::vector<Bytes> items = {
      {},           words(1),     words(13), words(4096), words(65536), words(65537), random_bytes(5000, 1),
      Bytes(70000), words(200000)};
  for (void* const stream : {static_cast<void*>(nullptr), reinterpret_cast<void*>(1), reinterpret_cast<void*>(2)}) {
    const auto packed = compressed(items, stream);
    for (size_t i = 0; i < items.size(); ++i) {
      Bytes back(items[i].size() + 1);
      const int length =
          LZ4_decompress_safe(reinterpret_cast<const char*>(packed[i].data()), reinterpret_cast<char*>(back.data()),
                              static_cast<int>(packed[i].size()), static_cast<int>(back.size()));
      ASSERT_EQ(length, static_cast<int>(items[i].size())) << i;
      back.resize(items[i].size());
      EXPECT_TRUE(back == items[i]) << i;
    }
    if (stream != nullptr) continue;
    // The bytes of the host's reproducible batches.
    ptxkit_context_options settings = PTXKIT_CONTEXT_OPTIONS_DEFAULTS;
    settings.policy = PTXKIT_POLICY_CPU;
    ptxkit_context* host = nullptr;
    ASSERT_OK(ptxkit_context_create(&settings, &host));
    Batch batch(items, bounds_of(items, options_));
    ASSERT_OK(batch.compress(host, &options_));
    const auto on_host = batch.results();
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i] == Bytes(70000)) continue;  // one run there, a run for each 64 KiB here
      EXPECT_TRUE(on_host[i] == packed[i]) << items[i].size();
    }
    ptxkit_context_destroy(host);
  }
}

TEST_F(DeviceCApi, BlocksComeBackAndBadOnesHarmNoOther) {
  for (const auto framing : {PTXKIT_FRAMING_RAW, PTXKIT_FRAMING_NUMCODECS}) {
    options_.framing = framing;
    const std::vector<Bytes> items = {words(5000), words(300), words(70000), words(100)};
    std::vector<Bytes> packed = compressed(items, nullptr);
    packed[1].resize(packed[1].size() / 2);
    std::vector<OnDevice<uint8_t>> stored, rooms;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    std::vector<size_t> sizes, capacities = {5000, 300, 69999, 100};
    for (size_t i = 0; i < items.size(); ++i) {
      stored.emplace_back(context_, packed[i]);
      rooms.emplace_back(context_, Bytes(capacities[i] + 8, kGuard));
      inputs.push_back(stored[i].get());
      outputs.push_back(rooms[i].get());
      sizes.push_back(packed[i].size());
    }
    const OnDevice<const void*> input_array(context_, inputs);
    const OnDevice<void*> output_array(context_, outputs);
    const OnDevice<size_t> size_array(context_, sizes), capacity_array(context_, capacities),
        used(context_, std::vector<size_t>(4, 77));
    const OnDevice<ptxkit_status> statuses(context_, std::vector<ptxkit_status>(4, 77));
    ASSERT_OK(ptxkit_device_decompress(device_, input_array.get(), size_array.get(), capacity_array.get(), used.get(),
                                       4, nullptr, 0, output_array.get(), &options_, statuses.get(), nullptr));
    EXPECT_EQ(statuses.values(),
              (std::vector<ptxkit_status>{PTXKIT_OK, PTXKIT_CANNOT_DECOMPRESS, PTXKIT_OUTPUT_TOO_SMALL, PTXKIT_OK}));
    EXPECT_EQ(used.values(), (std::vector<size_t>{5000, 0, 0, 100}));
    // The sizes, which need no room.
    const OnDevice<size_t> found(context_, std::vector<size_t>(4, 77));
    ASSERT_OK(ptxkit_device_decompressed_sizes(device_, input_array.get(), size_array.get(), found.get(), 4, &options_,
                                               statuses.get(), nullptr));
    const auto claims_of_header = framing != PTXKIT_FRAMING_RAW;
    EXPECT_EQ(found.values(), (std::vector<size_t>{5000, claims_of_header ? size_t{300} : 0, 70000, 100}));
    EXPECT_EQ(statuses.values()[1], claims_of_header ? PTXKIT_OK : PTXKIT_CANNOT_DECOMPRESS);
    for (const size_t i : {size_t{0}, size_t{3}}) {
      Bytes room = rooms[i].values();
      EXPECT_EQ(room[capacities[i]], kGuard);
      room.resize(capacities[i]);
      EXPECT_TRUE(room == items[i]);
    }
  }
}

TEST_F(DeviceCApi, FramesAndChunksAreThoseOfTheHost) {
  const std::vector<Bytes> items = {{},
                                    words(1),
                                    words(13),
                                    words(4096),
                                    words(65536),
                                    words(65537),
                                    random_bytes(5000, 1),
                                    Bytes(70000),
                                    words(200000),
                                    Bytes(12),
                                    Bytes(13),
                                    random_bytes(150000, 2),
                                    Bytes(65536, 7),
                                    words(69632),
                                    words(69633)};
  ptxkit_context_options settings = PTXKIT_CONTEXT_OPTIONS_DEFAULTS;
  settings.policy = PTXKIT_POLICY_CPU;
  ptxkit_context* host = nullptr;
  ASSERT_OK(ptxkit_context_create(&settings, &host));
  for (const auto framing : {PTXKIT_FRAMING_FRAME, PTXKIT_FRAMING_HDF5}) {
    options_.framing = framing;
    const auto packed = compressed(items, nullptr);
    Batch batch(items, bounds_of(items, options_));
    ASSERT_OK(batch.compress(host, &options_));
    const auto on_host = batch.results();
    for (size_t i = 0; i < items.size(); ++i) EXPECT_TRUE(on_host[i] == packed[i]) << i << " " << items[i].size();
    // Small items alone have small slots.
    EXPECT_TRUE(compressed({words(100), random_bytes(50, 3)}, nullptr).size() == 2);
  }
  ptxkit_context_destroy(host);
}

// Frames and chunks that the host made, with one that is cut, one without room, and one of several blocks.
TEST_F(DeviceCApi, FramesAndChunksComeBack) {
  ptxkit_context_options settings = PTXKIT_CONTEXT_OPTIONS_DEFAULTS;
  settings.policy = PTXKIT_POLICY_CPU;
  ptxkit_context* host = nullptr;
  ASSERT_OK(ptxkit_context_create(&settings, &host));
  for (const auto framing : {PTXKIT_FRAMING_FRAME, PTXKIT_FRAMING_HDF5}) {
    options_.framing = framing;
    const std::vector<Bytes> items = {words(5000), words(300), words(70000), random_bytes(200000, 1), {}};
    Batch batch(items, bounds_of(items, options_));
    ASSERT_OK(batch.compress(host, &options_));
    std::vector<Bytes> packed = batch.results();
    packed[1].pop_back();
    std::vector<OnDevice<uint8_t>> stored, rooms;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    std::vector<size_t> sizes, capacities = {5000, 300, 69999, 200001, 0};
    for (size_t i = 0; i < items.size(); ++i) {
      stored.emplace_back(context_, packed[i]);
      rooms.emplace_back(context_, Bytes(capacities[i] + 8, kGuard));
      inputs.push_back(stored[i].get());
      outputs.push_back(rooms[i].get());
      sizes.push_back(packed[i].size());
    }
    const auto needs = requirements(200001, items.size());
    EXPECT_EQ(needs.decompress_temp_bytes, items.size() * (24 + 4 * 12));
    const OnDevice<uint8_t> temp(context_, Bytes(needs.decompress_temp_bytes));
    const OnDevice<const void*> input_array(context_, inputs);
    const OnDevice<void*> output_array(context_, outputs);
    const OnDevice<size_t> size_array(context_, sizes), capacity_array(context_, capacities),
        used(context_, std::vector<size_t>(items.size(), 77));
    const OnDevice<ptxkit_status> statuses(context_, std::vector<ptxkit_status>(items.size(), 77));
    const auto decompress = [&](void* memory, size_t bytes) {
      return ptxkit_device_decompress(device_, input_array.get(), size_array.get(), capacity_array.get(), used.get(),
                                      items.size(), memory, bytes, output_array.get(), &options_, statuses.get(),
                                      nullptr);
    };
    for (const size_t bytes : {needs.decompress_temp_bytes, needs.decompress_temp_bytes / 2}) {
      ASSERT_OK(decompress(temp.get(), bytes));
      EXPECT_EQ(statuses.values(), (std::vector<ptxkit_status>{PTXKIT_OK, PTXKIT_CANNOT_DECOMPRESS,
                                                               PTXKIT_OUTPUT_TOO_SMALL, PTXKIT_OK, PTXKIT_OK}));
      EXPECT_EQ(used.values(), (std::vector<size_t>{5000, 0, 0, 200000, 0}));
      for (const size_t i : {size_t{0}, size_t{3}}) {
        Bytes room = rooms[i].values();
        EXPECT_EQ(room[capacities[i]], kGuard);
        room.resize(items[i].size());
        EXPECT_TRUE(room == items[i]);
      }
    }
    EXPECT_EQ(decompress(nullptr, 0), PTXKIT_INVALID_VALUE);
    EXPECT_THAT(ptxkit_last_error(), HasSubstr("temp: expected 120 bytes, found 0 at 0x0"));
    EXPECT_EQ(decompress(temp.get() + 8, needs.decompress_temp_bytes - 8), PTXKIT_INVALID_VALUE);
    EXPECT_THAT(ptxkit_last_error(), HasSubstr("temp: expected an address aligned to 16 bytes"));
    ASSERT_OK(ptxkit_device_decompressed_sizes(device_, input_array.get(), size_array.get(), used.get(), items.size(),
                                               &options_, statuses.get(), nullptr));
    EXPECT_EQ(used.values(), (std::vector<size_t>{5000, 0, 70000, 200000, 0}));
  }
  ptxkit_context_destroy(host);
}

// Typed rANS: the bytes of the reference, each of the types, odd sizes, and bad items beside good ones.
TEST_F(DeviceCApi, TypedItemsAreThoseOfTheReferenceAndComeBack) {
  using kernels::TypedLayout;
  options_.codec = PTXKIT_CODEC_RANS;
  for (const auto& [dtype, stride, layout] : {std::tuple{PTXKIT_DTYPE_BF16, 0u, TypedLayout::bfloat16},
                                              {PTXKIT_DTYPE_FP8_E5M2, 0u, TypedLayout::bytes},
                                              {PTXKIT_DTYPE_BYTES, 4u, TypedLayout::stride4}}) {
    options_.dtype = dtype;
    options_.stride = stride;
    const std::vector<Bytes> items = {{}, weight_bytes(70001, layout, 1), every_pattern(), words(300), words(5000)};
    const std::vector<Bytes> packed = compressed(items, nullptr);
    std::vector<OnDevice<uint8_t>> stored, rooms;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    std::vector<size_t> sizes, capacities;
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_TRUE(packed[i] == typed_coded(items[i], layout)) << dtype << " " << i;
      stored.emplace_back(context_, packed[i]);
      rooms.emplace_back(context_, Bytes(items[i].size() + 8, kGuard));
      inputs.push_back(stored[i].get());
      outputs.push_back(rooms[i].get());
      sizes.push_back(packed[i].size());
      capacities.push_back(items[i].size());
    }
    --sizes[3];                       // cut
    inputs[4] = stored[4].get() + 8;  // of an item to decode, too
    const OnDevice<const void*> input_array(context_, inputs);
    const OnDevice<void*> output_array(context_, outputs);
    const OnDevice<size_t> size_array(context_, sizes), capacity_array(context_, capacities),
        used(context_, std::vector<size_t>(items.size(), 77));
    const OnDevice<ptxkit_status> statuses(context_, std::vector<ptxkit_status>(items.size(), 77));
    ASSERT_OK(ptxkit_device_decompress(device_, input_array.get(), size_array.get(), capacity_array.get(), used.get(),
                                       items.size(), nullptr, 0, output_array.get(), &options_, statuses.get(),
                                       nullptr));
    EXPECT_EQ(statuses.values(), (std::vector<ptxkit_status>{PTXKIT_OK, PTXKIT_OK, PTXKIT_OK, PTXKIT_CANNOT_DECOMPRESS,
                                                             PTXKIT_MISALIGNED}));
    EXPECT_EQ(used.values(), (std::vector<size_t>{0, 70001, 131072, 0, 0}));
    for (size_t i = 0; i < 3; ++i) {
      Bytes room = rooms[i].values();
      EXPECT_EQ(room[capacities[i]], kGuard);
      room.resize(items[i].size());
      EXPECT_TRUE(room == items[i]) << dtype << " " << i;
    }
    EXPECT_EQ(ptxkit_device_decompressed_sizes(device_, input_array.get(), size_array.get(), used.get(), items.size(),
                                               &options_, statuses.get(), nullptr),
              PTXKIT_UNSUPPORTED);
    EXPECT_THAT(ptxkit_last_error(), HasSubstr("u64 at byte 8"));
  }
}

TEST_F(DeviceCApi, RefusesWhatCannotBeRight) {
  const auto refused = [&](ptxkit_status status, ptxkit_status expected, const char* text) {
    EXPECT_EQ(status, expected);
    EXPECT_THAT(ptxkit_last_error(), HasSubstr(text));
  };
  const auto compress = [&](ptxkit_device* device, const void* const* inputs, size_t most, size_t count) {
    return ptxkit_device_compress(device, inputs, nullptr, most, count, nullptr, 0, nullptr, nullptr, &options_,
                                  nullptr, nullptr);
  };
  refused(compress(nullptr, nullptr, 1, 1), PTXKIT_INVALID_VALUE, "device is null");
  refused(compress(device_, nullptr, 1, 1), PTXKIT_INVALID_VALUE, "inputs");
  EXPECT_OK(compress(device_, nullptr, 1, 0));
  const auto sizes = [&](ptxkit_device* device, const void* const* inputs, size_t count) {
    return ptxkit_device_decompressed_sizes(device, inputs, nullptr, nullptr, count, &options_, nullptr, nullptr);
  };
  refused(sizes(nullptr, nullptr, 1), PTXKIT_INVALID_VALUE, "device is null");
  refused(sizes(device_, nullptr, 1), PTXKIT_INVALID_VALUE, "inputs: expected an array in device memory");
  EXPECT_OK(sizes(device_, nullptr, 0));
  ptxkit_device_requirements needs{};
  refused(ptxkit_device_query(&options_, 1, 1, &needs), PTXKIT_INVALID_VALUE, "struct_bytes is 0, expected 64");
  refused(ptxkit_device_query(&options_, 1, 1, nullptr), PTXKIT_INVALID_VALUE, "requirements is null");
  needs.struct_bytes = sizeof needs;
  refused(ptxkit_device_query(&options_, size_t{1} << 31, 1, &needs), PTXKIT_ITEM_TOO_LARGE, "");
  options_.framing = PTXKIT_FRAMING_STORED;
  refused(ptxkit_device_query(&options_, 1, 1, &needs), PTXKIT_UNSUPPORTED, "no framing 4");
  options_.framing = 9;
  refused(ptxkit_device_query(&options_, 1, 1, &needs), PTXKIT_INVALID_VALUE, "no framing 9");
  options_ = PTXKIT_BATCH_OPTIONS_DEFAULTS;
  options_.level = 2;
  refused(ptxkit_device_query(&options_, 1, 1, &needs), PTXKIT_UNSUPPORTED, "level 1 alone");
  options_.level = 0;
  options_.codec = 257;
  refused(ptxkit_device_query(&options_, 1, 1, &needs), PTXKIT_UNSUPPORTED, "lzr has no batches in device memory");
  for (size_t index = 0; index < ptxkit_codec_count(); ++index) {
    ASSERT_OK(ptxkit_codec_at(index, &options_.codec));
    if (options_.codec <= PTXKIT_CODEC_DEFLATE || options_.codec == PTXKIT_CODEC_RANS) continue;
    refused(ptxkit_device_query(&options_, 1, 1, &needs), PTXKIT_UNSUPPORTED, " has no batches in device memory");
  }
  options_ = PTXKIT_BATCH_OPTIONS_DEFAULTS;
  options_.dtype = PTXKIT_DTYPE_BF16;
  refused(ptxkit_device_query(&options_, 1, 1, &needs), PTXKIT_INVALID_VALUE, "codec 1 has no dtype");
  options_.codec = PTXKIT_CODEC_RANS;
  EXPECT_OK(ptxkit_device_query(&options_, 1, 1, &needs));
  EXPECT_EQ(needs.input_alignment, 16u);
  EXPECT_EQ(needs.output_alignment, 16u);
  options_.framing = PTXKIT_FRAMING_FRAME;
  refused(ptxkit_device_query(&options_, 1, 1, &needs), PTXKIT_UNSUPPORTED, "rans has no framing 1");
  options_ = PTXKIT_BATCH_OPTIONS_DEFAULTS;
  options_.codec = PTXKIT_CODEC_ZSTD;
  refused(ptxkit_device_query(&options_, 1, 1, &needs), PTXKIT_UNSUPPORTED, "zstd has no framing 0");
  options_.framing = PTXKIT_FRAMING_FRAME;
  EXPECT_OK(ptxkit_device_query(&options_, 1, 1, &needs));
  EXPECT_EQ(needs.decompress_temp_bytes, 80u);
  refused(sizes(device_, nullptr, 0), PTXKIT_UNSUPPORTED, "only lz4 has a call for raw sizes");
  options_.level = 3;
  EXPECT_OK(ptxkit_device_query(&options_, 1, 1, &needs));
  refused(compress(device_, nullptr, 1, 0), PTXKIT_UNSUPPORTED, "zstd has levels 1 and 2 in device memory, found 3");
  options_.level = 0;
  options_.codec = PTXKIT_CODEC_DEFLATE;
  refused(ptxkit_device_query(&options_, 1, 1, &needs), PTXKIT_UNSUPPORTED,
          "deflate has no framing 1; take PTXKIT_FRAMING_RAW");
  options_.codec = PTXKIT_CODEC_GZIP;
  EXPECT_OK(ptxkit_device_query(&options_, 65'537, 1, &needs));
  EXPECT_EQ(needs.output_bytes, 0u);  // of items that are not compressed
  ptxkit_device* none = nullptr;
  refused(ptxkit_device_create(9, EMULATED_CUDA, &none), PTXKIT_NO_DEVICE, "there is no device 9");
  refused(ptxkit_device_create(-1, EMULATED_CUDA, &none), PTXKIT_NO_DEVICE, "there is no device -1");
  refused(ptxkit_device_create(0, "/nowhere", &none), PTXKIT_NO_DEVICE, "/nowhere");
  refused(ptxkit_device_create(0, nullptr, nullptr), PTXKIT_INVALID_VALUE, "device is null");
  ptxkit_device_destroy(nullptr);
}

}  // namespace
}  // namespace ptxkit::testing
