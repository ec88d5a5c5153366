// Tests the estimate of an encoder's work from a few KiB of data, and the sources that support look_ahead().
#include "runtime/codec/policy/effort.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fkr_tests/cases/corpus.hpp"
#include "runtime/codec/policy/calibrate.hpp"

namespace ptxkit::codec {
namespace {

using ByteVector = std::vector<uint8_t>;

constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20;

Effort effort_of_bytes(const ByteVector& bytes) {
  return effort_of(format::MemorySource(bytes, "bytes"), bytes.size());
}

TEST(Effort, IsNoneForRunsAndNoiseAndAllForText) {
  for (const uint64_t size : {uint64_t{100}, 64 * kKiB, kMiB, 100 * kMiB}) {
    EXPECT_LT(effort_of_bytes(ByteVector(size, 7)).most, 0.2) << size;
  }
  for (const uint64_t size : {4 * kKiB, kMiB, 64 * kMiB}) {
    EXPECT_LT(effort_of(SampleSource(size, Sample::plain), size).most, 0.02) << size;
    EXPECT_GT(effort_of(SampleSource(size, Sample::text), size).mean, 0.95) << size;
  }
  for (const uint64_t size : {kMiB, 16 * kMiB, 4096 * kMiB}) {
    const Effort mixed = effort_of(SampleSource(size), size);
    EXPECT_NEAR(mixed.mean, 1.0 / 3, 0.1) << size;
    EXPECT_GT(mixed.most, 0.95) << size;
  }
  const ByteVector nothing;
  EXPECT_EQ(effort_of_bytes(nothing), Effort());
}

// Rows similar to the previous row have as many transitions as text, but few new bytes.
TEST(Effort, OfRowsIsLittle) {
  ByteVector rows = testing::random_bytes(kMiB, 1);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i % 16 >= 3) rows[i] = static_cast<uint8_t>(i % 16);
  }
  EXPECT_LT(effort_of_bytes(rows).most, 0.2);
}

// A stretch of text among zeros, at any position.
TEST(Effort, FindsTheHardestPlace) {
  for (uint64_t at = 0; at < 8; ++at) {
    ByteVector bytes(2 * kMiB);
    SampleSource(256 * kKiB, Sample::text).read({&bytes[at * 256 * kKiB], 256 * kKiB}).value();
    const Effort effort = effort_of_bytes(bytes);
    EXPECT_GT(effort.most, 0.95) << at;
    EXPECT_NEAR(effort.mean, 1.0 / 8, 0.02) << at;
  }
}

TEST(Effort, LooksAtSixteenPlacesAtMost) {
  class Source final : public format::ByteSource {
   public:
    Result<size_t> read(format::MutableBytes) override { return 0; }
    size_t look_ahead(uint64_t at, format::MutableBytes into) const override {
      places.push_back(at);
      return into.size();
    }
    const std::string& name() const override { return name_; }
    mutable std::vector<uint64_t> places;

   private:
    std::string name_ = "places";
  };
  for (const auto& [size, count] :
       {std::pair(uint64_t{1}, 1u), std::pair(127 * kKiB, 1u), std::pair(128 * kKiB, 2u), std::pair(512 * kKiB, 8u),
        std::pair(4 * kMiB, 8u), std::pair(9 * kMiB, 12u), std::pair(16 * kMiB, 16u), std::pair(4096 * kMiB, 16u)}) {
    const Source source;
    effort_of(source, size);
    EXPECT_EQ(source.places.size(), count) << size;
    EXPECT_TRUE(std::is_sorted(source.places.begin(), source.places.end()));
    if (size >= kKiB) {
      EXPECT_LE(source.places.back() + kKiB, size);
    }
  }
}

TEST(LookAhead, GivesWhatReadWillGive) {
  const ByteVector bytes = testing::mixed_content(300'000);
  const std::string path = ::testing::TempDir() + "look_ahead_" + std::to_string(::getpid());
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::write(file, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  ASSERT_EQ(::lseek(file, 0, SEEK_SET), 0);
  format::DescriptorSource of_file(file, "file");
  format::MemorySource of_memory(bytes, "memory");
  SampleSource sample(bytes.size());
  for (format::ByteSource* source :
       {static_cast<format::ByteSource*>(&of_file), static_cast<format::ByteSource*>(&of_memory),
        static_cast<format::ByteSource*>(&sample)}) {
    ByteVector all, ahead(1000), piece(70'000);
    while (all.size() < bytes.size()) {
      const size_t left = bytes.size() - all.size();
      for (const size_t at : {size_t{0}, size_t{69'000}, left - 10, left, left + 5}) {
        const size_t expected = at >= left ? 0 : std::min(ahead.size(), left - at);
        ASSERT_EQ(source->look_ahead(at, ahead), expected) << source->name() << " " << all.size() << " + " << at;
      }
      ASSERT_EQ(source->look_ahead(500, ahead), std::min<size_t>(1000, left - 500));
      const size_t count = source->read(piece).value();
      all.insert(all.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(count));
      for (size_t i = 0; i < 1000 && 500 + i < count; ++i) ASSERT_EQ(piece[500 + i], ahead[i]);
    }
    if (source != &sample) {
      EXPECT_EQ(all, bytes);
    }
  }
  ::close(file);
  ::unlink(path.c_str());
}

TEST(LookAhead, OfAPipeIsNothing) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "abcd", 4), 4);
  const format::DescriptorSource pipe(ends[0], "pipe");
  uint8_t byte;
  EXPECT_EQ(pipe.look_ahead(0, {&byte, 1}), 0u);
  EXPECT_EQ(effort_of(pipe, 1 << 20), Effort());
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace ptxkit::codec
