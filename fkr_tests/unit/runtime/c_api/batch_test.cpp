// Batches in host memory through libptxkit.so: every framing and codec, both ways, against liblz4, and with damage.
#include <algorithm>

#include <lz4.h>
#include <lz4frame.h>
#include <zlib.h>
#include <zstd.h>

#include "fkr_tests/unit/runtime/c_api/c_api.hpp"

namespace ptxkit::testing {
namespace {

struct Variant {
  ptxkit_framing framing;
  int32_t level;
  uint32_t flags;
};

class Framings : public CApi, public ::testing::WithParamInterface<Variant> {
 protected:
  Framings() {
    options_.framing = GetParam().framing;
    options_.level = GetParam().level;
    options_.flags = GetParam().flags;
  }
  std::vector<Bytes> compressed(const std::vector<Bytes>& items) {
    Batch batch(items, bounds_of(items, options_));
    EXPECT_OK(batch.compress(context_, &options_));
    EXPECT_EQ(batch.statuses, std::vector<ptxkit_status>(items.size(), PTXKIT_OK));
    return batch.results();
  }
  void expect_round_trip(const std::vector<Bytes>& items) {
    const std::vector<Bytes> packed = compressed(items);
    for (size_t i = 0; i < items.size(); ++i) expect_is_standard(packed[i], items[i]);
    Batch back(packed, sizes_of(items));
    EXPECT_OK(back.decompress(context_, &options_));
    EXPECT_TRUE(back.results() == items);
  }
  // What other programs read of it.
  void expect_is_standard(const Bytes& packed, const Bytes& raw) {
    switch (options_.framing) {
      case PTXKIT_FRAMING_RAW:
        return expect_block(packed, 0, raw);
      case PTXKIT_FRAMING_NUMCODECS: {
        uint32_t size = 0;
        std::memcpy(&size, packed.data(), 4);
        EXPECT_EQ(size, raw.size());
        return expect_block(packed, 4, raw);
      }
      case PTXKIT_FRAMING_FRAME: {
        LZ4F_dctx* frame = nullptr;
        ASSERT_EQ(LZ4F_createDecompressionContext(&frame, LZ4F_VERSION), 0u);
        Bytes back(raw.size() + 1);
        size_t out = back.size(), in = packed.size();
        EXPECT_EQ(LZ4F_decompress(frame, back.data(), &out, packed.data(), &in, nullptr), 0u);
        LZ4F_freeDecompressionContext(frame);
        EXPECT_EQ(in, packed.size());
        back.resize(out);
        EXPECT_TRUE(back == raw);
        return;
      }
      case PTXKIT_FRAMING_HDF5:
        return expect_hdf5(packed, raw);
      default:
        EXPECT_LE(packed.size(), raw.size() + 1);
    }
  }
  static void expect_block(const Bytes& packed, size_t begin, const Bytes& raw) {
    Bytes back(raw.size() + 1);
    const int length =
        LZ4_decompress_safe(reinterpret_cast<const char*>(packed.data() + begin), reinterpret_cast<char*>(back.data()),
                            static_cast<int>(packed.size() - begin), static_cast<int>(back.size()));
    ASSERT_EQ(length, static_cast<int>(raw.size()));
    back.resize(raw.size());
    EXPECT_TRUE(back == raw);
  }
  // As the filter of HDF5 reads a chunk.
  static void expect_hdf5(const Bytes& packed, const Bytes& raw) {
    const auto number = [&](size_t at, size_t bytes) {
      uint64_t value = 0;
      for (size_t i = 0; i < bytes; ++i) value = value << 8 | packed[at + i];
      return value;
    };
    ASSERT_EQ(number(0, 8), raw.size());
    const uint64_t block_bytes = number(8, 4);
    Bytes back;
    size_t at = 12;
    while (back.size() < raw.size()) {
      const size_t room = std::min<size_t>(block_bytes, raw.size() - back.size()), stored = number(at, 4);
      at += 4;
      const size_t begin = back.size();
      back.resize(begin + room);
      if (stored == room) {
        std::copy_n(packed.begin() + static_cast<ptrdiff_t>(at), room, back.begin() + static_cast<ptrdiff_t>(begin));
      } else {
        ASSERT_EQ(LZ4_decompress_safe(reinterpret_cast<const char*>(packed.data() + at),
                                      reinterpret_cast<char*>(back.data() + begin), static_cast<int>(stored),
                                      static_cast<int>(room)),
                  static_cast<int>(room));
      }
      at += stored;
    }
    EXPECT_EQ(at, packed.size());
    EXPECT_TRUE(back == raw);
  }

  ptxkit_batch_options options_ = PTXKIT_BATCH_OPTIONS_DEFAULTS;
};

TEST_P(Framings, ItemsComeBackAndOtherReadersTakeThem) { expect_round_trip(many_items()); }

TEST_P(Framings, ItemsOfSeveralPieces) {
  // The scalar encoder of level 2 would take a minute for the large items.
  expect_round_trip(options_.level == 2 ? std::vector<Bytes>{Bytes((size_t{4} << 20) + 1)} : large_items());
}

TEST_P(Framings, RawSizesAreToldBeforehand) {
  const std::vector<Bytes> items = many_items(), packed = compressed(items);
  for (size_t i = 0; i < items.size(); ++i) {
    size_t raw_bytes = 0;
    const auto status = ptxkit_decompressed_size(&options_, packed[i].data(), packed[i].size(), &raw_bytes);
    if (options_.framing == PTXKIT_FRAMING_STORED) {
      EXPECT_EQ(status, PTXKIT_UNSUPPORTED);
    } else {
      EXPECT_OK(status);
      EXPECT_EQ(raw_bytes, items[i].size());
    }
  }
}

TEST_P(Framings, ATightOutputIsEnoughAndOneByteLessIsNot) {
  const std::vector<Bytes> items = many_items(), packed = compressed(items);
  std::vector<size_t> exact = sizes_of(packed), short_by_one = exact;
  for (size_t& room : short_by_one) room -= room != 0;
  Batch enough(items, exact);
  EXPECT_OK(enough.compress(context_, &options_));
  EXPECT_TRUE(enough.results() == packed);
  Batch less(items, short_by_one);
  EXPECT_EQ(less.compress(context_, &options_), PTXKIT_OUTPUT_TOO_SMALL);
  (void)less.results();
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(less.statuses[i], PTXKIT_OUTPUT_TOO_SMALL) << i;
    EXPECT_EQ(less.sizes[i], 0u);
  }
}

TEST_P(Framings, RawBytesBeyondTheOutputAreAnErrorOfThatItemAlone) {
  const std::vector<Bytes> items = {words(5000), words(3000), Bytes(2000)};
  const std::vector<Bytes> packed = compressed(items);
  Batch back(packed, {5000, 2999, 2000});
  const ptxkit_status status = back.decompress(context_, &options_);
  const bool is_stored = options_.framing == PTXKIT_FRAMING_STORED;  // the room is the item's size
  EXPECT_EQ(status, is_stored ? PTXKIT_CANNOT_DECOMPRESS : PTXKIT_OUTPUT_TOO_SMALL) << ptxkit_last_error();
  EXPECT_EQ(back.statuses, (std::vector<ptxkit_status>{PTXKIT_OK, status, PTXKIT_OK}));
  EXPECT_EQ(back.sizes, (std::vector<size_t>{5000, 0, 2000}));
  const auto results = back.results();
  EXPECT_TRUE(results[0] == items[0] && results[2] == items[2]);
}

TEST_P(Framings, DamageNeverLeavesTheOutput) {
  const Bytes packed = compressed({words(9000)})[0];
  std::mt19937 random(1);
  size_t refused = 0;
  for (int round = 0; round < 400; ++round) {
    Bytes damaged = packed;
    if (round % 3 == 0) damaged.resize(random() % packed.size());
    for (uint32_t change = 0; change < random() % 4 + 1 && !damaged.empty(); ++change)
      damaged[random() % std::min<size_t>(damaged.size(), round % 2 ? 40 : damaged.size())] =
          static_cast<uint8_t>(random());
    Batch back({damaged}, {9000});
    refused += back.decompress(context_, &options_) != PTXKIT_OK;
    (void)back.results();
    size_t raw_bytes = 0;
    (void)ptxkit_decompressed_size(&options_, damaged.data(), damaged.size(), &raw_bytes);
  }
  EXPECT_GT(refused, 100u);
}

INSTANTIATE_TEST_SUITE_P(Lz4, Framings,
                         ::testing::Values(Variant{PTXKIT_FRAMING_RAW, 0, 0}, Variant{PTXKIT_FRAMING_RAW, 2, 0},
                                           Variant{PTXKIT_FRAMING_RAW, 1, PTXKIT_REPRODUCIBLE},
                                           Variant{PTXKIT_FRAMING_FRAME, 0, 0}, Variant{PTXKIT_FRAMING_NUMCODECS, 0, 0},
                                           Variant{PTXKIT_FRAMING_HDF5, 0, 0}, Variant{PTXKIT_FRAMING_STORED, 0, 0}));

TEST_F(CApi, EveryContainerCodecTakesBatches) {
  for (size_t index = 0; index < ptxkit_codec_count(); ++index) {
    ptxkit_batch_options options = PTXKIT_BATCH_OPTIONS_DEFAULTS;
    ASSERT_OK(ptxkit_codec_at(index, &options.codec));
    ptxkit_codec_info info{};
    info.struct_bytes = sizeof info;
    ASSERT_OK(ptxkit_codec_query(options.codec, &info));
    options.framing = (info.framings >> PTXKIT_FRAMING_FRAME & 1) != 0 ? PTXKIT_FRAMING_FRAME : PTXKIT_FRAMING_RAW;
    const bool says_size = options.codec < PTXKIT_CODEC_GZIP || options.codec > PTXKIT_CODEC_DEFLATE;
    for (options.level = std::max(-2, info.least_level); options.level <= info.greatest_level; ++options.level) {
      const std::vector<Bytes> items = {{}, words(1), words(70000), random_bytes(300000, 1), Bytes(5000)};
      Batch batch(items, bounds_of(items, options));
      ASSERT_OK(batch.compress(context_, &options)) << info.name << " " << options.level;
      const auto packed = batch.results();
      EXPECT_LT(packed[2].size(), items[2].size());
      Batch back(packed, sizes_of(items));
      ASSERT_OK(back.decompress(context_, &options)) << info.name;
      EXPECT_TRUE(back.results() == items) << info.name;
      size_t raw_bytes = 0;
      EXPECT_EQ(ptxkit_decompressed_size(&options, packed[2].data(), packed[2].size(), &raw_bytes),
                says_size ? PTXKIT_OK : PTXKIT_UNSUPPORTED);
      EXPECT_EQ(raw_bytes, says_size ? items[2].size() : 0);
    }
  }
}

TEST_F(CApi, ADamagedChecksumIsToldFromDamagedBytes) {
  ptxkit_batch_options options = PTXKIT_BATCH_OPTIONS_DEFAULTS;
  ASSERT_OK(ptxkit_codec_find("lzr", &options.codec));
  options.framing = PTXKIT_FRAMING_FRAME;
  const std::vector<Bytes> items = {random_bytes(3000, 2)};  // stored as it is, so that any byte may change
  Batch batch(items, bounds_of(items, options));
  ASSERT_OK(batch.compress(context_, &options));
  Bytes packed = batch.results()[0];
  packed[200] ^= 1;
  Batch back({packed}, {3000});
  EXPECT_EQ(back.decompress(context_, &options), PTXKIT_BAD_CHECKSUM);
  packed[0] ^= 1;
  Batch alien({packed}, {3000});
  EXPECT_EQ(alien.decompress(context_, &options), PTXKIT_CANNOT_DECOMPRESS);
}

TEST_F(CApi, MemoryOfAContextIsReleasedOnce) {
  void *memory = nullptr, *other = nullptr;
  ASSERT_OK(ptxkit_host_memory_create(context_, 100'000, &memory));
  ASSERT_OK(ptxkit_host_memory_create(context_, 0, &other));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 16, 0u);
  std::memset(memory, 7, 100'000);
  EXPECT_OK(ptxkit_host_memory_destroy(context_, memory));
  EXPECT_EQ(ptxkit_host_memory_destroy(context_, memory), PTXKIT_INVALID_VALUE);
  EXPECT_STREQ(std::string(ptxkit_last_error()).substr(0, 30).c_str(), "ptxkit_host_memory_destroy: 0x");
  EXPECT_OK(ptxkit_host_memory_destroy(context_, nullptr));
  EXPECT_EQ(ptxkit_host_memory_create(context_, 1, nullptr), PTXKIT_INVALID_VALUE);
}

TEST_F(CApi, MemoryThatCannotBeIsRefused) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer ends a process that asks for too much memory";
#endif
  void* memory = nullptr;
  EXPECT_EQ(ptxkit_host_memory_create(context_, ~size_t{0}, &memory), PTXKIT_NO_MEMORY);
  EXPECT_EQ(memory, nullptr);
}

TEST_F(CApi, WithoutADeviceItsTimesAreZero) {
  ptxkit_device_times times = {};
  EXPECT_EQ(ptxkit_context_device_times(context_, &times), PTXKIT_INVALID_VALUE);
  times.struct_bytes = sizeof times;
  ASSERT_OK(ptxkit_context_device_times(context_, &times));
  EXPECT_EQ(times.copy_to_device + times.kernel + times.copy_to_host, 0);
}

// As in files: zeros behind gzip members are padding, other bytes are not, and no other format has any.
TEST_F(CApi, ZerosBehindGzipMembersArePadding) {
  const std::vector<Bytes> items = {{}, words(1000)};
  for (const ptxkit_codec codec : {PTXKIT_CODEC_GZIP, PTXKIT_CODEC_ZLIB, PTXKIT_CODEC_DEFLATE}) {
    ptxkit_batch_options options = PTXKIT_BATCH_OPTIONS_DEFAULTS;
    options.codec = codec;
    options.framing = codec == PTXKIT_CODEC_DEFLATE ? PTXKIT_FRAMING_RAW : PTXKIT_FRAMING_FRAME;
    Batch batch(items, bounds_of(items, options));
    ASSERT_OK(batch.compress(context_, &options));
    for (const size_t zero_count : {1, 7, 512}) {
      std::vector<Bytes> packed = batch.results();
      for (Bytes& item : packed) item.resize(item.size() + zero_count);
      Batch padded(packed, sizes_of(items));
      EXPECT_EQ(padded.decompress(context_, &options),
                codec == PTXKIT_CODEC_GZIP ? PTXKIT_OK : PTXKIT_CANNOT_DECOMPRESS);
      if (codec == PTXKIT_CODEC_GZIP) {
        EXPECT_TRUE(padded.results() == items);
      }
      for (Bytes& item : packed) item.push_back(1);
      Batch garbage(packed, sizes_of(items));
      EXPECT_EQ(garbage.decompress(context_, &options), PTXKIT_CANNOT_DECOMPRESS);
    }
  }
}

// Each item of a batch by the library that the format is from.
TEST_F(CApi, StandardItemsAreThoseOfTheirLibraries) {
  const std::vector<Bytes> items = {{}, words(1), words(70000), random_bytes(300000, 1), Bytes(3'000'000)};
  for (const ptxkit_codec codec : {PTXKIT_CODEC_ZSTD, PTXKIT_CODEC_GZIP, PTXKIT_CODEC_ZLIB, PTXKIT_CODEC_DEFLATE}) {
    ptxkit_batch_options options = PTXKIT_BATCH_OPTIONS_DEFAULTS;
    options.codec = codec;
    options.framing = codec == PTXKIT_CODEC_DEFLATE ? PTXKIT_FRAMING_RAW : PTXKIT_FRAMING_FRAME;
    Batch batch(items, bounds_of(items, options));
    ASSERT_OK(batch.compress(context_, &options));
    std::vector<Bytes> packed = batch.results();
    for (size_t i = 0; i < items.size(); ++i) {
      Bytes back(items[i].size() + 1);
      if (codec == PTXKIT_CODEC_ZSTD) {
        EXPECT_EQ(ZSTD_getFrameContentSize(packed[i].data(), packed[i].size()), items[i].size());
        back.resize(ZSTD_decompress(back.data(), back.size(), packed[i].data(), packed[i].size()));
      } else {
        z_stream stream{};
        inflateInit2(&stream, codec == PTXKIT_CODEC_GZIP ? 31 : codec == PTXKIT_CODEC_ZLIB ? 15 : -15);
        stream.next_in = packed[i].data();
        stream.avail_in = static_cast<uInt>(packed[i].size());
        stream.next_out = back.data();
        stream.avail_out = static_cast<uInt>(back.size());
        EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
        back.resize(stream.total_out);
        inflateEnd(&stream);
      }
      EXPECT_TRUE(back == items[i]) << codec << " " << i;
    }
    // A damaged item has a status, and changes no other.
    packed[3].resize(1000);
    Batch back(packed, sizes_of(items));
    EXPECT_EQ(back.decompress(context_, &options), PTXKIT_CANNOT_DECOMPRESS);
    EXPECT_EQ(back.statuses[2], PTXKIT_OK);
    EXPECT_EQ(back.statuses[3], PTXKIT_CANNOT_DECOMPRESS);
    EXPECT_EQ(back.statuses[4], PTXKIT_OK);
    EXPECT_TRUE(back.results()[4] == items[4]);
    Batch small({packed[4]}, {1000});
    EXPECT_EQ(small.decompress(context_, &options), PTXKIT_OUTPUT_TOO_SMALL);
  }
  ptxkit_batch_options options = PTXKIT_BATCH_OPTIONS_DEFAULTS;
  options.codec = PTXKIT_CODEC_ZSTD;
  options.framing = PTXKIT_FRAMING_FRAME;
  Batch plain(items, bounds_of(items, options));
  ASSERT_OK(plain.compress(context_, &options));
  options.flags = PTXKIT_CONTENT_CHECKSUM;
  Batch checked(items, bounds_of(items, options));
  ASSERT_OK(checked.compress(context_, &options));
  EXPECT_EQ(checked.results()[3].size(), plain.results()[3].size() + 4);
  Bytes bad = checked.results()[3];
  bad[1000] ^= 1;  // of noise, which is stored
  Batch back({bad}, {300000});
  EXPECT_EQ(back.decompress(context_, &options), PTXKIT_BAD_CHECKSUM);
}

TEST_F(CApi, TheEmulatedGpuGivesTheBytesOfTheCpu) {
  ptxkit_context_options settings = PTXKIT_CONTEXT_OPTIONS_DEFAULTS;
  settings.policy = PTXKIT_POLICY_GPU | PTXKIT_MEASURE_DEVICE_TIMES;
  settings.cpu_threads = 2;
  settings.cuda_library = EMULATED_CUDA;
  ptxkit_context* gpu = nullptr;
  ASSERT_OK(ptxkit_context_create(&settings, &gpu));
  ptxkit_batch_options options = PTXKIT_BATCH_OPTIONS_DEFAULTS;
  options.flags = PTXKIT_REPRODUCIBLE;
  const std::vector<Bytes> items = {words(100), words(4096), words(70000), Bytes(4096), random_bytes(5000, 1)};
  Batch on_cpu(items, bounds_of(items, options)), on_gpu(items, bounds_of(items, options));
  ASSERT_OK(on_cpu.compress(context_, &options));
  ASSERT_OK(on_gpu.compress(gpu, &options));
  EXPECT_TRUE(on_cpu.results() == on_gpu.results());
  ptxkit_device_times times = {};
  times.struct_bytes = sizeof times;
  ASSERT_OK(ptxkit_context_device_times(gpu, &times));
  EXPECT_GT(times.copy_to_device, 0);
  EXPECT_GT(times.kernel, 0);
  EXPECT_GT(times.copy_to_host, 0);
  Batch back(on_cpu.results(), sizes_of(items));
  ASSERT_OK(back.decompress(gpu, &options));
  EXPECT_TRUE(back.results() == items);
  Text text;
  ASSERT_OK(ptxkit_context_describe(gpu, text));
  EXPECT_NE(text.str().find("Emulated GPU"), std::string::npos) << text.str();
  ptxkit_context_destroy(gpu);
}

}  // namespace
}  // namespace ptxkit::testing
