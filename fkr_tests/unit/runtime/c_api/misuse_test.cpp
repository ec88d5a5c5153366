// A hostile caller: every wrong argument gets a status and a text, and changes nothing.
#include <bit>
#include <string>
#include <thread>

#include <gmock/gmock.h>

#include "fkr_tests/unit/runtime/c_api/c_api.hpp"

namespace ptxkit::testing {
namespace {

using ::testing::HasSubstr;

// Expects the status, and a text of which `words` are part.
#define EXPECT_REFUSED(call, expected, words)           \
  do {                                                  \
    EXPECT_EQ(call, expected) << ptxkit_last_error();   \
    EXPECT_THAT(ptxkit_last_error(), HasSubstr(words)); \
  } while (false)

TEST(Statuses, HaveNamesAndVersions) {
  EXPECT_STREQ(ptxkit_status_name(PTXKIT_OK), "PTXKIT_OK");
  EXPECT_STREQ(ptxkit_status_name(PTXKIT_DEVICE), "PTXKIT_DEVICE");
  EXPECT_STREQ(ptxkit_status_name(-5), "unknown status");
  EXPECT_EQ(ptxkit_version(), 10000u * PTXKIT_VERSION_MAJOR + 100u * PTXKIT_VERSION_MINOR + PTXKIT_VERSION_PATCH);
  EXPECT_EQ(ptxkit_version_string(), std::to_string(PTXKIT_VERSION_MAJOR) + "." + std::to_string(PTXKIT_VERSION_MINOR) +
                                         "." + std::to_string(PTXKIT_VERSION_PATCH));
}

TEST(Statuses, EachThreadHasItsOwnLastError) {
  ptxkit_codec codec = 0;
  EXPECT_EQ(ptxkit_codec_find("zzz", &codec), PTXKIT_INVALID_VALUE);
  std::thread([] { EXPECT_STREQ(ptxkit_last_error(), ""); }).join();
  EXPECT_THAT(ptxkit_last_error(), HasSubstr("'zzz'"));
}

TEST(Codecs, AreFoundByNameAndDescribed) {
  ptxkit_codec codec = 0;
  ASSERT_OK(ptxkit_codec_find("lz4", &codec));
  EXPECT_EQ(codec, PTXKIT_CODEC_LZ4);
  for (size_t i = 0; i < ptxkit_codec_count(); ++i) {
    ASSERT_OK(ptxkit_codec_at(i, &codec));
    ptxkit_codec_info info{};
    info.struct_bytes = sizeof info;
    ASSERT_OK(ptxkit_codec_query(codec, &info));
    ptxkit_codec again = 0;
    ASSERT_OK(ptxkit_codec_find(info.name, &again));
    EXPECT_EQ(again, codec);
    EXPECT_GE(info.default_level, info.least_level);
    EXPECT_LE(info.default_level, info.greatest_level);
    const bool is_stream = codec != PTXKIT_CODEC_ZLIB && codec != PTXKIT_CODEC_DEFLATE;
    EXPECT_EQ((info.operations & PTXKIT_CAN_STREAM) != 0, is_stream) << info.name;
  }
  EXPECT_REFUSED(ptxkit_codec_at(ptxkit_codec_count(), &codec), PTXKIT_INVALID_VALUE, "there is no codec at");
  EXPECT_REFUSED(ptxkit_codec_find("lzq", &codec), PTXKIT_INVALID_VALUE, "did you mean");
  EXPECT_REFUSED(ptxkit_codec_find(nullptr, &codec), PTXKIT_INVALID_VALUE, "name is null");
  EXPECT_REFUSED(ptxkit_codec_find("lz4", nullptr), PTXKIT_INVALID_VALUE, "codec is null");
  ptxkit_codec_info info{};
  EXPECT_REFUSED(ptxkit_codec_query(PTXKIT_CODEC_LZ4, &info), PTXKIT_INVALID_VALUE, "struct_bytes is 0, expected 128");
  info.struct_bytes = sizeof info;
  EXPECT_REFUSED(ptxkit_codec_query(99, &info), PTXKIT_INVALID_VALUE, "there is no codec 99");
  EXPECT_REFUSED(ptxkit_codec_query(1u << 31, &info), PTXKIT_INVALID_VALUE, "there is no codec");
}

TEST(Contexts, RefuseWrongOptions) {
  ptxkit_context* context = reinterpret_cast<ptxkit_context*>(1);
  const auto refused = [&](const char* words, auto change) {
    ptxkit_context_options options = PTXKIT_CONTEXT_OPTIONS_DEFAULTS;
    options.policy = PTXKIT_POLICY_CPU;
    change(options);
    EXPECT_REFUSED(ptxkit_context_create(&options, &context), PTXKIT_INVALID_VALUE, words);
    EXPECT_EQ(context, nullptr);
  };
  EXPECT_REFUSED(ptxkit_context_create(nullptr, nullptr), PTXKIT_INVALID_VALUE, "context is null");
  refused("struct_bytes is 63", [](auto& options) { options.struct_bytes = 63; });
  refused("no policy 4", [](auto& options) { options.policy = 4; });
  refused("no policy 513", [](auto& options) { options.policy = PTXKIT_POLICY_CPU | 512; });
  refused("cpu_threads", [](auto& options) { options.cpu_threads = 1 << 20; });
  refused("devices and device_count", [](auto& options) { options.device_count = 1; });
  static ptxkit_hooks hooks = PTXKIT_HOOKS_DEFAULTS;
  hooks.allocate = [](void*, size_t) -> void* { return nullptr; };
  refused("allocate and release", [](auto& options) { options.hooks = &hooks; });
  static ptxkit_hooks later = PTXKIT_HOOKS_DEFAULTS;
  later.reserved = 1;
  refused("reserved field", [](auto& options) { options.hooks = &later; });
  ptxkit_context_destroy(nullptr);
}

TEST(Contexts, OnlyTheDriverThatIsAskedForIsOpened) {
  ptxkit_context_options options = PTXKIT_CONTEXT_OPTIONS_DEFAULTS;
  options.cuda_library = "/nowhere/libcuda.so.1";
  std::string log;
  ptxkit_hooks hooks = PTXKIT_HOOKS_DEFAULTS;
  hooks.user = &log;
  hooks.log = [](void* user, int is_warning, const char* message) {
    *static_cast<std::string*>(user) += std::string(is_warning ? "warning: " : "") + message + "\n";
  };
  options.hooks = &hooks;
  ptxkit_context* context = nullptr;
  for (const auto policy : {PTXKIT_POLICY_AUTOMATIC, PTXKIT_POLICY_CPU}) {
    options.policy = policy;
    ASSERT_OK(ptxkit_context_create(&options, &context));
    ptxkit_context_destroy(context);
  }
  EXPECT_THAT(log, ::testing::Not(HasSubstr("/nowhere")));
  options.policy = PTXKIT_POLICY_GPU;  // the CPU does the work, and the log says why
  ASSERT_OK(ptxkit_context_create(&options, &context));
  EXPECT_THAT(log, HasSubstr("/nowhere"));
  ptxkit_context_destroy(context);
}

class Misuse : public CApi {
 protected:
  ptxkit_batch_options options_ = PTXKIT_BATCH_OPTIONS_DEFAULTS;
  Bytes raw_ = words(100);
  Bytes room_ = Bytes(200);
  const void* input_ = raw_.data();
  void* output_ = room_.data();
  size_t input_bytes_ = 100, capacity_ = 200, size_ = 5;
  ptxkit_status status_ = 5;

  ptxkit_status compress() {
    return ptxkit_compress_batch(context_, &options_, &input_, &input_bytes_, 1, &output_, &capacity_, &size_,
                                 &status_);
  }
};

TEST_F(Misuse, OfOptions) {
  EXPECT_OK(compress());
  const auto refused = [&](ptxkit_status expected, const char* words, auto change) {
    options_ = PTXKIT_BATCH_OPTIONS_DEFAULTS;
    change(options_);
    EXPECT_REFUSED(compress(), expected, words);
    size_t bound = 0;
    EXPECT_EQ(ptxkit_compress_bound(&options_, 1, &bound), expected);
  };
  refused(PTXKIT_INVALID_VALUE, "struct_bytes", [](auto& options) { options.struct_bytes = 0; });
  refused(PTXKIT_INVALID_VALUE, "no codec 99", [](auto& options) { options.codec = 99; });
  refused(PTXKIT_INVALID_VALUE, "no framing 5", [](auto& options) { options.framing = 5; });
  refused(PTXKIT_INVALID_VALUE, "no framing", [](auto& options) { options.framing = 1u << 31; });
  refused(PTXKIT_INVALID_VALUE, "no level 3", [](auto& options) { options.level = 3; });
  refused(PTXKIT_INVALID_VALUE, "no level -1", [](auto& options) { options.level = -1; });
  refused(PTXKIT_INVALID_VALUE, "lz4 has no flags 0x8", [](auto& options) { options.flags = PTXKIT_LINKED_BLOCKS; });
  refused(PTXKIT_INVALID_VALUE, "gzip has no flags 0x1", [](auto& options) {
    options.codec = PTXKIT_CODEC_GZIP, options.framing = PTXKIT_FRAMING_FRAME, options.flags = PTXKIT_REPRODUCIBLE;
  });
  refused(PTXKIT_INVALID_VALUE, "zstd has no level 23", [](auto& options) {
    options.codec = PTXKIT_CODEC_ZSTD, options.framing = PTXKIT_FRAMING_FRAME, options.level = 23;
  });
  refused(PTXKIT_INVALID_VALUE, "reserved", [](auto& options) { options.reserved[8] = 1; });
  refused(PTXKIT_UNSUPPORTED, "lzr has no framing 0", [](auto& options) { options.codec = 257; });
}

TEST_F(Misuse, OfArrays) {
  const auto batch = [&](auto... arguments) { return ptxkit_compress_batch(arguments...); };
  EXPECT_REFUSED(batch(nullptr, &options_, &input_, &input_bytes_, 1, &output_, &capacity_, &size_, &status_),
                 PTXKIT_INVALID_VALUE, "context is null");
  EXPECT_REFUSED(batch(context_, &options_, nullptr, &input_bytes_, 1, &output_, &capacity_, &size_, &status_),
                 PTXKIT_INVALID_VALUE, "inputs is null");
  EXPECT_REFUSED(batch(context_, &options_, &input_, nullptr, 1, &output_, &capacity_, &size_, &status_),
                 PTXKIT_INVALID_VALUE, "input_bytes is null");
  EXPECT_REFUSED(batch(context_, &options_, &input_, &input_bytes_, 1, nullptr, &capacity_, &size_, &status_),
                 PTXKIT_INVALID_VALUE, "outputs is null");
  EXPECT_REFUSED(batch(context_, &options_, &input_, &input_bytes_, 1, &output_, nullptr, &size_, &status_),
                 PTXKIT_INVALID_VALUE, "output_capacities is null");
  EXPECT_REFUSED(batch(context_, &options_, &input_, &input_bytes_, 1, &output_, &capacity_, nullptr, &status_),
                 PTXKIT_INVALID_VALUE, "output_bytes is null");
  EXPECT_OK(ptxkit_compress_batch(context_, nullptr, &input_, &input_bytes_, 1, &output_, &capacity_, &size_, nullptr));
  EXPECT_OK(ptxkit_compress_batch(context_, &options_, nullptr, nullptr, 0, nullptr, nullptr, nullptr, nullptr));
  for (const size_t count : {SIZE_MAX, SIZE_MAX / 2 + 1, SIZE_MAX / 16, SIZE_MAX / 96 + 1}) {
    EXPECT_REFUSED(batch(context_, &options_, &input_, &input_bytes_, count, &output_, &capacity_, &size_, &status_),
                   PTXKIT_INVALID_VALUE, "count is");
    EXPECT_REFUSED(ptxkit_decompress_batch(context_, &options_, &input_, &input_bytes_, count, &output_, &capacity_,
                                           &size_, &status_),
                   PTXKIT_INVALID_VALUE, "count is");
  }
}

TEST_F(Misuse, OfItems) {
  input_ = nullptr;
  EXPECT_REFUSED(compress(), PTXKIT_INVALID_VALUE, "item 0 of 1");
  EXPECT_EQ(status_, PTXKIT_INVALID_VALUE);
  EXPECT_EQ(size_, 0u);
  input_bytes_ = 0;
  EXPECT_OK(compress());  // an empty item needs no address
  input_ = raw_.data();
  input_bytes_ = SIZE_MAX;
  EXPECT_EQ(compress(), PTXKIT_INVALID_VALUE);
  for (size_t i = 0; i < ptxkit_codec_count(); ++i) {
    ptxkit_codec_info info{};
    info.struct_bytes = sizeof info;
    ASSERT_OK(ptxkit_codec_at(i, &options_.codec));
    ASSERT_OK(ptxkit_codec_query(options_.codec, &info));
    options_.framing = static_cast<ptxkit_framing>(std::countr_zero(info.framings));
    input_bytes_ = info.largest_host_item + 1;
    EXPECT_EQ(compress(), PTXKIT_ITEM_TOO_LARGE) << info.name;
    EXPECT_EQ(status_, PTXKIT_ITEM_TOO_LARGE) << info.name;
  }
  options_ = PTXKIT_BATCH_OPTIONS_DEFAULTS;
  input_bytes_ = 100;
  output_ = nullptr;
  EXPECT_EQ(compress(), PTXKIT_INVALID_VALUE);
  size_t bound = 0;
  EXPECT_REFUSED(ptxkit_compress_bound(&options_, 0x7E000001, &bound), PTXKIT_ITEM_TOO_LARGE, "2113929216");
  EXPECT_REFUSED(ptxkit_compress_bound(&options_, 1, nullptr), PTXKIT_INVALID_VALUE, "bound is null");
  EXPECT_REFUSED(ptxkit_decompressed_size(&options_, nullptr, 1, &bound), PTXKIT_INVALID_VALUE, "input is null");
}

TEST_F(Misuse, OverlapsAreFoundInAnyOrder) {
  Bytes memory(1000);
  const void* const inputs[] = {memory.data(), memory.data()};  // shared inputs are fine
  const size_t input_bytes[] = {100, 50};
  size_t sizes[2];
  const auto run = [&](size_t first, size_t second, size_t room) {
    void* const outputs[] = {memory.data() + first, memory.data() + second};
    const size_t capacities[] = {room, room};
    return ptxkit_compress_batch(context_, &options_, inputs, input_bytes, 2, outputs, capacities, sizes, nullptr);
  };
  EXPECT_OK(run(100, 300, 200));
  EXPECT_OK(run(300, 100, 200));
  EXPECT_REFUSED(run(100, 299, 200), PTXKIT_INVALID_VALUE, "overlaps");
  EXPECT_REFUSED(run(500, 301, 200), PTXKIT_INVALID_VALUE, "overlaps");
  EXPECT_REFUSED(run(99, 400, 200), PTXKIT_INVALID_VALUE, "overlaps");
  EXPECT_REFUSED(run(400, 0, 200), PTXKIT_INVALID_VALUE, "overlaps");
}

}  // namespace
}  // namespace ptxkit::testing
