// Streams and files through libptxkit.so.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <string>

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/unit/runtime/c_api/c_api.hpp"

namespace ptxkit::testing {
namespace {

using ::testing::HasSubstr;

struct Input {
  Bytes bytes;
  size_t at = 0, fails_at = SIZE_MAX, step = SIZE_MAX;

  static int64_t read(void* user, void* into, size_t count) {
    Input& self = *static_cast<Input*>(user);
    if (self.at >= self.fails_at) return -3;
    count = std::min({count, self.bytes.size() - self.at, self.step});
    std::memcpy(into, self.bytes.data() + self.at, count);
    self.at += count;
    return static_cast<int64_t>(count);
  }
};
struct Output {
  Bytes bytes = {};
  size_t fails_at = SIZE_MAX;

  static int write(void* user, const void* from, size_t count) {
    Output& self = *static_cast<Output*>(user);
    if (self.bytes.size() + count > self.fails_at) return 28;
    const auto* const first = static_cast<const uint8_t*>(from);
    self.bytes.insert(self.bytes.end(), first, first + count);
    return 0;
  }
};

class Streams : public CApi {
 protected:
  ptxkit_status compress(Input& input, Output& output) {
    return ptxkit_compress_stream(context_, &options_, Input::read, &input, Output::write, &output, &totals_);
  }
  ptxkit_status decompress(Input& input, Output& output) {
    const ptxkit_stream_options plain = PTXKIT_STREAM_OPTIONS_DEFAULTS;
    return ptxkit_decompress_stream(context_, &plain, Input::read, &input, Output::write, &output, &totals_);
  }

  static ptxkit_context* open_with(const ptxkit_hooks& hooks) {
    ptxkit_context_options settings = PTXKIT_CONTEXT_OPTIONS_DEFAULTS;
    settings.policy = PTXKIT_POLICY_CPU;
    settings.hooks = &hooks;
    ptxkit_context* context = nullptr;
    EXPECT_OK(ptxkit_context_create(&settings, &context));
    return context;
  }

  ptxkit_stream_options options_ = PTXKIT_STREAM_OPTIONS_DEFAULTS;
  ptxkit_totals totals_{};
};

TEST_F(Streams, EveryCodecComesBackHoweverItIsRead) {
  const Bytes raw = words((1u << 20) + 17);
  for (size_t index = 0; index < ptxkit_codec_count(); ++index) {
    ASSERT_OK(ptxkit_codec_at(index, &options_.codec));
    ptxkit_codec_info info{};
    info.struct_bytes = sizeof info;
    ASSERT_OK(ptxkit_codec_query(options_.codec, &info));
    if ((info.operations & PTXKIT_CAN_STREAM) == 0) continue;
    Input input{raw};
    input.step = 1000;
    Output packed;
    ASSERT_OK(compress(input, packed));
    EXPECT_EQ(totals_.raw_bytes, raw.size());
    EXPECT_EQ(totals_.stored_bytes, packed.bytes.size());
    EXPECT_LT(packed.bytes.size(), raw.size());
    Input back{packed.bytes};
    back.step = 4093;
    Output unpacked;
    ASSERT_OK(decompress(back, unpacked));
    EXPECT_TRUE(unpacked.bytes == raw) << index;
  }
}

TEST_F(Streams, OptionsHaveTheirEffect) {
  const Bytes raw = words(300000);
  std::map<std::string, Bytes> results;
  const auto run = [&](const char* name, auto change) {
    options_ = PTXKIT_STREAM_OPTIONS_DEFAULTS;
    change(options_);
    Input input{raw};
    Output packed;
    ASSERT_OK(compress(input, packed)) << name;
    Input back{packed.bytes};
    Output unpacked;
    ASSERT_OK(decompress(back, unpacked)) << name;
    EXPECT_TRUE(unpacked.bytes == raw) << name;
    results[name] = packed.bytes;
  };
  run("plain", [](auto&) {});
  run("no checksum", [](auto& options) { options.flags = PTXKIT_NO_CONTENT_CHECKSUM; });
  run("block checksums", [](auto& options) { options.flags = PTXKIT_BLOCK_CHECKSUMS; });
  run("small blocks", [](auto& options) { options.block_bytes = 65536; });
  run("linked", [](auto& options) { options.block_bytes = 65536, options.flags = PTXKIT_LINKED_BLOCKS; });
  run("size", [](auto& options) { options.content_bytes = 300000; });
  run("high", [](auto& options) { options.level = 2; });
  run("memory", [](auto& options) { options.memory_bytes = 64 << 20; });
  EXPECT_EQ(results["no checksum"].size() + 4, results["plain"].size());
  EXPECT_EQ(results["block checksums"].size(), results["plain"].size() + 4);
  EXPECT_EQ(results["size"].size(), results["plain"].size() + 8);
  EXPECT_LT(results["linked"].size(), results["small blocks"].size());
  EXPECT_LT(results["high"].size(), results["plain"].size());
}

TEST_F(Streams, OptionsOfZstandardHaveTheirEffect) {
  const Bytes raw = words(3'000'000);
  std::map<std::string, Bytes> results;
  const auto run = [&](const char* name, auto change) {
    options_ = PTXKIT_STREAM_OPTIONS_DEFAULTS;
    options_.codec = PTXKIT_CODEC_ZSTD;
    change(options_);
    Input input{raw};
    Output packed;
    ASSERT_OK(compress(input, packed)) << name;
    EXPECT_EQ(totals_.frame_count, (options_.flags & PTXKIT_SEEKABLE) != 0 ? 6u : 1u) << name;
    Input back{packed.bytes};
    Output unpacked;
    ASSERT_OK(decompress(back, unpacked)) << name;
    EXPECT_TRUE(unpacked.bytes == raw) << name;
    results[name] = packed.bytes;
  };
  run("plain", [](auto&) {});
  run("no checksum", [](auto& options) { options.flags = PTXKIT_NO_CONTENT_CHECKSUM; });
  run("seekable", [](auto& options) { options.flags = PTXKIT_SEEKABLE; });
  run("size", [](auto& options) { options.content_bytes = 3'000'000; });
  run("fast", [](auto& options) { options.level = -3; });
  run("high", [](auto& options) { options.level = 12; });
  run("memory", [](auto& options) { options.memory_bytes = 16 << 20; });
  EXPECT_EQ(results["no checksum"].size() + 4, results["plain"].size());
  EXPECT_EQ(results["size"].size() + 3, results["plain"].size() + 4);  // four bytes of size, no empty block
  EXPECT_GT(results["fast"].size(), results["plain"].size());
  EXPECT_LT(results["high"].size(), results["plain"].size());
  EXPECT_EQ(results["memory"], results["plain"]);
  // A skippable frame says nothing of what follows, so the codec has to.
  Bytes skipped = {0x50, 0x2a, 0x4d, 0x18, 100, 0, 0, 0};
  skipped.resize(108);
  skipped.insert(skipped.end(), results["plain"].begin(), results["plain"].end());
  for (const ptxkit_codec codec : {PTXKIT_CODEC_LZ4, PTXKIT_CODEC_ZSTD}) {
    ptxkit_stream_options options = PTXKIT_STREAM_OPTIONS_DEFAULTS;
    options.codec = codec;
    Input back{skipped};
    Output unpacked;
    EXPECT_EQ(ptxkit_decompress_stream(context_, &options, Input::read, &back, Output::write, &unpacked, nullptr),
              codec == PTXKIT_CODEC_ZSTD ? PTXKIT_OK : PTXKIT_CANNOT_DECOMPRESS);
    EXPECT_EQ(unpacked.bytes == raw, codec == PTXKIT_CODEC_ZSTD);
  }
}

TEST_F(Streams, RefuseWrongOptions) {
  const auto refused = [&](ptxkit_status expected, const char* words, auto change) {
    options_ = PTXKIT_STREAM_OPTIONS_DEFAULTS;
    change(options_);
    Input input{Bytes(100)};
    Output packed;
    EXPECT_EQ(compress(input, packed), expected) << words;
    EXPECT_THAT(ptxkit_last_error(), HasSubstr(words));
    EXPECT_TRUE(packed.bytes.empty());
  };
  refused(PTXKIT_INVALID_VALUE, "block_bytes is 5", [](auto& options) { options.block_bytes = 5; });
  refused(PTXKIT_INVALID_VALUE, "block_bytes is 5",
          [](auto& options) { options.codec = 257, options.block_bytes = 5; });
  refused(PTXKIT_INVALID_VALUE, "unknown flags", [](auto& options) { options.flags = 64; });
  refused(PTXKIT_INVALID_VALUE, "of LZ4 frames only", [](auto& options) { options.codec = 257, options.flags = 8; });
  refused(PTXKIT_INVALID_VALUE, "content_bytes", [](auto& options) { options.codec = 257, options.content_bytes = 8; });
  refused(PTXKIT_INVALID_VALUE, "PTXKIT_SEEKABLE is of Zstandard",
          [](auto& options) { options.flags = PTXKIT_SEEKABLE; });
  refused(PTXKIT_UNSUPPORTED, "there are no streams of zlib", [](auto& options) { options.codec = PTXKIT_CODEC_ZLIB; });
  refused(PTXKIT_INVALID_VALUE, "gzip has no flags 0x20",
          [](auto& options) { options.codec = PTXKIT_CODEC_GZIP, options.flags = PTXKIT_SEEKABLE; });
  refused(PTXKIT_INVALID_VALUE, "zstd has one size",
          [](auto& options) { options.codec = PTXKIT_CODEC_ZSTD, options.block_bytes = 65536; });
  refused(PTXKIT_INVALID_VALUE, "no level 9", [](auto& options) { options.level = 9; });
  refused(PTXKIT_INVALID_VALUE, "reserved", [](auto& options) { options.reserved[1] = 9; });
  refused(PTXKIT_UNSUPPORTED, "linked", [](auto& options) { options.flags = PTXKIT_LINKED_BLOCKS, options.level = 2; });
  options_ = PTXKIT_STREAM_OPTIONS_DEFAULTS;
  options_.level = 1;
  Input input{Bytes(100)};
  Output out;
  EXPECT_EQ(ptxkit_decompress_stream(context_, &options_, Input::read, &input, Output::write, &out, nullptr),
            PTXKIT_INVALID_VALUE);
  EXPECT_EQ(ptxkit_compress_stream(context_, nullptr, nullptr, &input, Output::write, &out, nullptr),
            PTXKIT_INVALID_VALUE);
  EXPECT_EQ(ptxkit_compress_stream(context_, nullptr, Input::read, &input, nullptr, &out, nullptr),
            PTXKIT_INVALID_VALUE);
}

TEST_F(Streams, RefuseWrongHooks) {
  ptxkit_hooks hooks = PTXKIT_HOOKS_DEFAULTS;
  options_.hooks = &hooks;
  hooks.struct_bytes = 8;
  Input input{Bytes(100)};
  Output packed;
  EXPECT_EQ(compress(input, packed), PTXKIT_INVALID_VALUE);
  EXPECT_THAT(ptxkit_last_error(), HasSubstr("struct_bytes is 8, expected 64"));
}

TEST_F(Streams, SizesOfFramesAddUpAndMayBeUnknown) {
  options_.content_bytes = 5000;
  Input input{words(5000)};
  Output sized;
  ASSERT_OK(compress(input, sized));
  Bytes twice = sized.bytes;
  twice.insert(twice.end(), sized.bytes.begin(), sized.bytes.end());
  ptxkit_batch_options frames = PTXKIT_BATCH_OPTIONS_DEFAULTS;
  frames.framing = PTXKIT_FRAMING_FRAME;
  size_t raw_bytes = 0;
  ASSERT_OK(ptxkit_decompressed_size(&frames, twice.data(), twice.size(), &raw_bytes));
  EXPECT_EQ(raw_bytes, 10000u);
  options_.content_bytes = 0;
  Input again{words(5000)};
  Output unsized;
  ASSERT_OK(compress(again, unsized));
  EXPECT_EQ(ptxkit_decompressed_size(&frames, unsized.bytes.data(), unsized.bytes.size(), &raw_bytes),
            PTXKIT_UNSUPPORTED);
  EXPECT_THAT(ptxkit_last_error(), HasSubstr("does not say the size"));
  // A wrong size in the options is an error, not a wrong frame.
  options_.content_bytes = 4999;
  Input longer{words(5000)};
  Output wrong;
  EXPECT_EQ(compress(longer, wrong), PTXKIT_INVALID_VALUE);
  EXPECT_THAT(ptxkit_last_error(), HasSubstr("4999"));
}

TEST_F(Streams, CallbacksThatFailEndTheCall) {
  Input input{words(1 << 20)};
  input.fails_at = 100000;
  Output packed;
  EXPECT_EQ(compress(input, packed), PTXKIT_IO);
  EXPECT_THAT(ptxkit_last_error(), HasSubstr("the read function returned -3"));
  Input whole{words(1 << 20)};
  Output full;
  full.fails_at = 1000;
  EXPECT_EQ(compress(whole, full), PTXKIT_IO);
  EXPECT_THAT(ptxkit_last_error(), HasSubstr("the write function returned 28"));
}

TEST_F(Streams, DamageIsToldFromAWrongChecksum) {
  Input input{random_bytes(5000, 1)};
  Output packed;
  ASSERT_OK(compress(input, packed));
  packed.bytes[100] ^= 1;
  Input changed{packed.bytes};
  Output unpacked;
  EXPECT_EQ(decompress(changed, unpacked), PTXKIT_BAD_CHECKSUM);
  packed.bytes.resize(60);
  Input cut{packed.bytes};
  EXPECT_EQ(decompress(cut, unpacked), PTXKIT_CANNOT_DECOMPRESS);
}

TEST_F(Streams, ProgressIsToldAndCancellationIsHeeded) {
  struct Seen {
    uint64_t raw_bytes = 0;
    int calls = 0, most = 1 << 30;
  } seen;
  ptxkit_hooks hooks = PTXKIT_HOOKS_DEFAULTS;
  hooks.user = &seen;
  hooks.progress = [](void* user, uint64_t raw_bytes, uint64_t) {
    static_cast<Seen*>(user)->raw_bytes = raw_bytes;
    ++static_cast<Seen*>(user)->calls;
  };
  hooks.is_cancelled = [](void* user) -> int {
    return static_cast<Seen*>(user)->calls > static_cast<Seen*>(user)->most;
  };
  options_.hooks = &hooks;
  options_.block_bytes = 65536;
  options_.memory_bytes = 2 << 20;
  Input input{words(16 << 20)};
  Output packed;
  ASSERT_OK(compress(input, packed));
  EXPECT_EQ(seen.raw_bytes, input.bytes.size());
  EXPECT_GT(seen.calls, 3);
  seen = {.most = 1};
  Input again{input.bytes};
  EXPECT_EQ(compress(again, packed), PTXKIT_CANCELLED);
}

TEST_F(Streams, TheCallersMemoryIsUsedAndGivenBack) {
  struct Account {
    std::mutex mutex;
    size_t live = 0, most = 0;
  } account;
  ptxkit_hooks hooks = PTXKIT_HOOKS_DEFAULTS;
  hooks.user = &account;
  hooks.allocate = [](void* user, size_t bytes) -> void* {
    Account& self = *static_cast<Account*>(user);
    const std::lock_guard lock(self.mutex);
    self.most = std::max(self.most, self.live += bytes);
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  };
  hooks.release = [](void* user, void* memory, size_t bytes) {
    Account& self = *static_cast<Account*>(user);
    const std::lock_guard lock(self.mutex);
    self.live -= bytes;
    std::free(memory);
  };
  ptxkit_context* const context = open_with(hooks);
  ASSERT_NE(context, nullptr);
  Input input{words(3 << 20)};
  Output packed;
  EXPECT_OK(ptxkit_compress_stream(context, nullptr, Input::read, &input, Output::write, &packed, nullptr));
  ptxkit_context_destroy(context);
  EXPECT_GT(account.most, 1u << 20);
  EXPECT_EQ(account.live, 0u);
}

TEST_F(Streams, ACallerWithoutMemoryEndsThem) {
  ptxkit_hooks hooks = PTXKIT_HOOKS_DEFAULTS;
  hooks.allocate = [](void*, size_t) -> void* { return nullptr; };
  hooks.release = [](void*, void*, size_t) {};
  ptxkit_context* const context = open_with(hooks);
  ASSERT_NE(context, nullptr);
  Input input{words(3 << 20)};
  Output packed, back;
  EXPECT_EQ(ptxkit_compress_stream(context, nullptr, Input::read, &input, Output::write, &packed, nullptr),
            PTXKIT_NO_MEMORY);
  EXPECT_THAT(ptxkit_last_error(), HasSubstr("the caller's allocator gave no memory"));
  Input again{input.bytes};
  ASSERT_OK(ptxkit_compress_stream(context_, nullptr, Input::read, &again, Output::write, &packed, nullptr));
  Input frame{packed.bytes};
  EXPECT_EQ(ptxkit_decompress_stream(context, nullptr, Input::read, &frame, Output::write, &back, nullptr),
            PTXKIT_NO_MEMORY);
  ptxkit_context_destroy(context);
}

class Files : public Streams {
 protected:
  Files() { std::filesystem::create_directories(folder_); }
  ~Files() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return folder_ / name; }
  static void write(const std::string& path, const Bytes& bytes) {
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  }
  static Bytes read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static mode_t mode_of(const std::string& path) {
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("c_api_" + std::to_string(::getpid()) + "_" + ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(Files, ComeBack) {
  const Bytes raw = words(200000);
  write(path("raw"), raw);
  ASSERT_OK(ptxkit_compress_file(context_, nullptr, path("raw").c_str(), path("raw.lz4").c_str(), &totals_));
  EXPECT_EQ(totals_.raw_bytes, raw.size());
  ASSERT_OK(ptxkit_decompress_file(context_, nullptr, path("raw.lz4").c_str(), path("back").c_str(), nullptr));
  EXPECT_TRUE(read(path("back")) == raw);
}

TEST_F(Files, AFailureLeavesTheOldOutputAndNothingElse) {
  write(path("packed.lz4"), random_bytes(1000, 1));
  write(path("out"), words(10));
  EXPECT_EQ(ptxkit_decompress_file(context_, nullptr, path("packed.lz4").c_str(), path("out").c_str(), nullptr),
            PTXKIT_CANNOT_DECOMPRESS);
  EXPECT_TRUE(read(path("out")) == words(10));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2);
  EXPECT_EQ(ptxkit_compress_file(context_, nullptr, path("nowhere").c_str(), path("out").c_str(), nullptr), PTXKIT_IO);
  EXPECT_THAT(ptxkit_last_error(), HasSubstr("nowhere: cannot read"));
  EXPECT_EQ(ptxkit_compress_file(context_, nullptr, folder_.c_str(), path("out").c_str(), nullptr), PTXKIT_IO);
  EXPECT_EQ(ptxkit_compress_file(context_, nullptr, path("out").c_str(), path("no/where").c_str(), nullptr), PTXKIT_IO);
  EXPECT_EQ(ptxkit_compress_file(context_, nullptr, nullptr, "x", nullptr), PTXKIT_INVALID_VALUE);
}

TEST_F(Files, AnOutputThatCannotBeWrittenIsAnErrorOfIo) {
  write(path("raw"), words(200000));
  ASSERT_OK(ptxkit_compress_file(context_, nullptr, path("raw").c_str(), path("raw.lz4").c_str(), nullptr));
  for (const auto call : {ptxkit_compress_file, ptxkit_decompress_file}) {
    const std::string input = path(call == ptxkit_compress_file ? "raw" : "raw.lz4");
    EXPECT_EQ(call(context_, nullptr, input.c_str(), "/dev/full", nullptr), PTXKIT_IO);
    EXPECT_THAT(ptxkit_last_error(), HasSubstr("/dev/full: cannot write: No space left on device"));
  }
}

TEST_F(Files, OutputsAreNotMoreReadableThanInputs) {
  write(path("raw"), words(1000));
  ASSERT_EQ(::chmod(path("raw").c_str(), 0700), 0);
  ASSERT_OK(ptxkit_compress_file(context_, nullptr, path("raw").c_str(), path("new").c_str(), nullptr));
  EXPECT_EQ(mode_of(path("new")), 0600u);
  ASSERT_OK(ptxkit_decompress_file(context_, nullptr, path("new").c_str(), path("back").c_str(), nullptr));
  EXPECT_EQ(mode_of(path("back")), 0600u);
  // A file that is replaced keeps its own.
  ASSERT_EQ(::chmod(path("raw").c_str(), 0644), 0);
  ASSERT_OK(ptxkit_compress_file(context_, nullptr, path("raw").c_str(), path("new").c_str(), nullptr));
  EXPECT_EQ(mode_of(path("new")), 0600u);
}

TEST_F(Files, TheOutputIsNotTheInput) {
  write(path("raw"), words(1000));
  std::filesystem::create_hard_link(path("raw"), path("linked"));
  std::filesystem::create_symlink(path("raw"), path("link"));
  const auto before = read(path("raw"));
  for (const char* name : {"raw", "./raw", "linked", "link"}) {
    EXPECT_EQ(ptxkit_compress_file(context_, nullptr, path("raw").c_str(), path(name).c_str(), nullptr),
              PTXKIT_INVALID_VALUE)
        << name;
    EXPECT_EQ(read(path("raw")), before);
  }
  EXPECT_EQ(ptxkit_compress_file(context_, nullptr, path("raw").c_str(), "", nullptr), PTXKIT_IO);
}

TEST_F(Files, TheGroupGetsWhatAnAccessControlListGivesIt) {
  // linux/posix_acl_xattr.h, as version and entries: user::rw-, user:1:rw-, group::r--, mask::rw-, other::---.
  const uint16_t list[] = {2, 0,      0x01,   6,    0xffff, 0xffff, 0x02,   6,    1, 0,      0x04,
                           4, 0xffff, 0xffff, 0x10, 6,      0xffff, 0xffff, 0x20, 0, 0xffff, 0xffff};
  write(path("raw"), words(1000));
  if (::setxattr(path("raw").c_str(), "system.posix_acl_access", list, sizeof list, 0) != 0)
    GTEST_SKIP() << "no access control lists here: " << std::strerror(errno);
  ASSERT_EQ(mode_of(path("raw")), 0660u);
  const mode_t mask = ::umask(0);
  ASSERT_OK(ptxkit_compress_file(context_, nullptr, path("raw").c_str(), path("new").c_str(), nullptr));
  EXPECT_EQ(mode_of(path("new")), 0640u);
  // A file that is replaced gets the rights that its group had.
  ASSERT_OK(ptxkit_decompress_file(context_, nullptr, path("new").c_str(), path("raw").c_str(), nullptr));
  EXPECT_EQ(mode_of(path("raw")), 0640u);
  ::umask(mask);
}

}  // namespace
}  // namespace ptxkit::testing
