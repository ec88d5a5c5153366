// Typed rANS in host memory through libptxkit.so: every type of element, odd sizes, every bit pattern, bad items.
#include <vector>

#include <gmock/gmock.h>
#include <ptxkit.hpp>

#include "fkr_tests/cases/typed_arrays.hpp"
#include "fkr_tests/unit/runtime/c_api/c_api.hpp"
#include "kernels/typed/typed_format.hpp"

namespace ptxkit::testing {
namespace {

using kernels::TypedLayout;
using ::testing::HasSubstr;

struct Elements {
  uint32_t dtype, stride;
  TypedLayout layout;
};
constexpr Elements kElements[] = {
    {PTXKIT_DTYPE_BYTES, 0, TypedLayout::bytes},    {PTXKIT_DTYPE_BYTES, 1, TypedLayout::bytes},
    {PTXKIT_DTYPE_BYTES, 2, TypedLayout::stride2},  {PTXKIT_DTYPE_BYTES, 4, TypedLayout::stride4},
    {PTXKIT_DTYPE_BYTES, 8, TypedLayout::stride8},  {PTXKIT_DTYPE_BF16, 0, TypedLayout::bfloat16},
    {PTXKIT_DTYPE_FP16, 0, TypedLayout::float16},   {PTXKIT_DTYPE_FP32, 0, TypedLayout::float32},
    {PTXKIT_DTYPE_FP8_E4M3, 0, TypedLayout::bytes}, {PTXKIT_DTYPE_FP8_E5M2, 0, TypedLayout::bytes},
    {PTXKIT_DTYPE_INT8, 0, TypedLayout::bytes}};

class TypedCApi : public CApi {
 protected:
  ptxkit_batch_options options_ = api::batch_options(PTXKIT_CODEC_RANS);
};

TEST_F(TypedCApi, ItemsAreThoseOfTheReferenceAndComeBack) {
  for (const auto& [dtype, stride, layout] : kElements) {
    options_ = api::batch_options(PTXKIT_CODEC_RANS, PTXKIT_FRAMING_RAW, dtype, stride);
    const std::vector<Bytes> items = typed_inputs(layout);
    Batch batch(items, bounds_of(items, options_));
    ASSERT_OK(batch.compress(context_, &options_));
    const std::vector<Bytes> packed = batch.results();
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_TRUE(packed[i] == typed_coded(items[i], layout)) << dtype << " " << stride << " " << i;
      size_t raw_bytes = 77;
      EXPECT_OK(ptxkit_decompressed_size(&options_, packed[i].data(), packed[i].size(), &raw_bytes));
      EXPECT_EQ(raw_bytes, items[i].size());
    }
    // The item says its elements: options for decoding need none.
    options_.dtype = options_.stride = 0;
    Batch back(packed, sizes_of(items));
    ASSERT_OK(back.decompress(context_, &options_));
    EXPECT_TRUE(back.results() == items) << dtype << " " << stride;
  }
}

TEST_F(TypedCApi, ATightOutputIsEnoughAndOneByteLessIsAnErrorOfThatItemAlone) {
  options_.dtype = PTXKIT_DTYPE_BF16;
  const std::vector<Bytes> items = {weight_bytes(70001, TypedLayout::bfloat16, 1), {}, words(300)};
  Batch first(items, bounds_of(items, options_));
  ASSERT_OK(first.compress(context_, &options_));
  const std::vector<Bytes> packed = first.results();
  Batch tight(items, sizes_of(packed));
  ASSERT_OK(tight.compress(context_, &options_));
  EXPECT_TRUE(tight.results() == packed);
  auto rooms = sizes_of(packed);
  --rooms[0];
  Batch less(items, rooms);
  EXPECT_EQ(less.compress(context_, &options_), PTXKIT_OUTPUT_TOO_SMALL);
  EXPECT_EQ(less.statuses, (std::vector<ptxkit_status>{PTXKIT_OUTPUT_TOO_SMALL, PTXKIT_OK, PTXKIT_OK}));
  EXPECT_TRUE(less.results()[2] == packed[2]);
}

TEST_F(TypedCApi, BadItemsHarmNoOther) {
  const Bytes raw = weight_bytes(70000, TypedLayout::float32, 2);
  const Bytes good = typed_coded(raw, TypedLayout::float32);
  Bytes cut = good, other_layout = good, other_magic = good;
  cut.pop_back();
  other_layout[4] = 99;
  other_magic[0] ^= 1;
  Batch batch({cut, other_layout, good, other_magic, good}, {70000, 70000, 69999, 70000, 70000});
  EXPECT_EQ(batch.decompress(context_, &options_), PTXKIT_CANNOT_DECOMPRESS);
  EXPECT_THAT(ptxkit_last_error(), HasSubstr("item 0 of 5"));
  EXPECT_EQ(batch.statuses, (std::vector<ptxkit_status>{PTXKIT_CANNOT_DECOMPRESS, PTXKIT_UNSUPPORTED,
                                                        PTXKIT_OUTPUT_TOO_SMALL, PTXKIT_CANNOT_DECOMPRESS, PTXKIT_OK}));
  EXPECT_TRUE(batch.results()[4] == raw);
  size_t raw_bytes = 0;
  EXPECT_EQ(ptxkit_decompressed_size(&options_, good.data(), 15, &raw_bytes), PTXKIT_CANNOT_DECOMPRESS);
  EXPECT_THAT(ptxkit_last_error(), HasSubstr("none of typed rANS"));
}

TEST_F(TypedCApi, RefusesOptionsThatCannotBeRight) {
  size_t bound = 0;
  const auto refused = [&](ptxkit_batch_options options, ptxkit_status status, const char* text) {
    EXPECT_EQ(ptxkit_compress_bound(&options, 1, &bound), status) << text;
    EXPECT_THAT(ptxkit_last_error(), HasSubstr(text));
  };
  const auto rans = [](uint32_t dtype, uint32_t stride, ptxkit_framing framing = PTXKIT_FRAMING_RAW) {
    return api::batch_options(PTXKIT_CODEC_RANS, framing, dtype, stride);
  };
  refused(rans(7, 0), PTXKIT_INVALID_VALUE, "there is no dtype 7");
  refused(rans(PTXKIT_DTYPE_BYTES, 3), PTXKIT_INVALID_VALUE, "no stride of 3 bytes, expected 1, 2, 4 or 8");
  refused(rans(PTXKIT_DTYPE_BF16, 2), PTXKIT_INVALID_VALUE, "dtype 1 has no stride, found 2");
  refused(rans(0, 0, PTXKIT_FRAMING_HDF5), PTXKIT_UNSUPPORTED, "rans has no framing 3");
  refused(api::batch_options(PTXKIT_CODEC_LZ4, PTXKIT_FRAMING_RAW, PTXKIT_DTYPE_BF16), PTXKIT_INVALID_VALUE,
          "codec 1 has no dtype and no stride, found 1 and 0");
  auto level = rans(0, 0);
  level.level = 2;
  refused(level, PTXKIT_INVALID_VALUE, "rans has no level 2");
  options_.dtype = PTXKIT_DTYPE_FP16;
  EXPECT_EQ(ptxkit_compress_bound(&options_, size_t{0x7E000001}, &bound), PTXKIT_ITEM_TOO_LARGE);
  const auto read = [](void*, void*, size_t) -> int64_t { return 0; };
  const auto write = [](void*, const void*, size_t) { return 0; };
  auto stream = api::stream_options(PTXKIT_CODEC_RANS, PTXKIT_DTYPE_BF16, 2);
  EXPECT_EQ(ptxkit_compress_stream(context_, &stream, read, nullptr, write, nullptr, nullptr), PTXKIT_INVALID_VALUE);
  EXPECT_THAT(ptxkit_last_error(), HasSubstr("dtype 1 has no stride, found 2"));
  stream = api::stream_options(PTXKIT_CODEC_LZ4, PTXKIT_DTYPE_BF16);
  EXPECT_EQ(ptxkit_compress_stream(context_, &stream, read, nullptr, write, nullptr, nullptr), PTXKIT_INVALID_VALUE);
  EXPECT_THAT(ptxkit_last_error(), HasSubstr("codec 1 has no dtype and no stride"));
  EXPECT_EQ(ptxkit_decompress_stream(context_, &stream, read, nullptr, write, nullptr, nullptr), PTXKIT_INVALID_VALUE);
  EXPECT_THAT(ptxkit_last_error(), HasSubstr("dtype and stride are of compression only"));
}

// A stream, an item of framing FRAME, and what the codec of blocks makes of the same bytes are one container.
TEST_F(TypedCApi, StreamsAndFramesAreContainers) {
  const Bytes raw = weight_bytes(3'000'001, TypedLayout::bfloat16, 3);
  const auto options = api::stream_options(PTXKIT_CODEC_RANS, PTXKIT_DTYPE_BF16);
  struct Place {
    const Bytes& from;
    size_t at = 0;
    Bytes to = {};
  };
  const auto read = [](void* user, void* into, size_t count) -> int64_t {
    auto& place = *static_cast<Place*>(user);
    count = std::min(count, place.from.size() - place.at);
    std::copy_n(place.from.begin() + static_cast<ptrdiff_t>(place.at), count, static_cast<uint8_t*>(into));
    place.at += count;
    return static_cast<int64_t>(count);
  };
  const auto write = [](void* user, const void* bytes, size_t count) {
    const auto* const first = static_cast<const uint8_t*>(bytes);
    auto& to = static_cast<Place*>(user)->to;
    to.insert(to.end(), first, first + count);
    return 0;
  };
  Place packed{raw};
  ASSERT_OK(ptxkit_compress_stream(context_, &options, read, &packed, write, &packed, nullptr));
  EXPECT_EQ(packed.to[5], 5u);
  EXPECT_EQ(packed.to[7], static_cast<uint8_t>(TypedLayout::bfloat16));
  EXPECT_LT(packed.to.size(), raw.size() * 7 / 10);
  Place back{packed.to};
  const ptxkit_stream_options plain = PTXKIT_STREAM_OPTIONS_DEFAULTS;
  ASSERT_OK(ptxkit_decompress_stream(context_, &plain, read, &back, write, &back, nullptr));
  EXPECT_TRUE(back.to == raw);

  const auto framed = api::batch_options(PTXKIT_CODEC_RANS, PTXKIT_FRAMING_FRAME, PTXKIT_DTYPE_BF16);
  size_t bound = 0, raw_bytes = 0;
  ASSERT_OK(ptxkit_compress_bound(&framed, raw.size(), &bound));
  Batch batch({raw}, {bound});
  ASSERT_OK(batch.compress(context_, &framed));
  EXPECT_TRUE(batch.results()[0] == packed.to);
  ASSERT_OK(ptxkit_decompressed_size(&framed, packed.to.data(), packed.to.size(), &raw_bytes));
  EXPECT_EQ(raw_bytes, raw.size());
  Batch back_again({packed.to}, {raw.size()});
  ASSERT_OK(back_again.decompress(context_, &framed));
  EXPECT_TRUE(back_again.results()[0] == raw);
}

}  // namespace
}  // namespace ptxkit::testing
