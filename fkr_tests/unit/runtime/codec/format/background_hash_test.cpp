// Tests the content checksum on its own thread: the value over all pieces in order, and tickets that keep the bytes
// valid.
#include "runtime/codec/format/background_hash.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ptxkit::format {
namespace {

using ByteVector = std::vector<uint8_t>;

ByteVector noise(size_t size) {
  std::minstd_rand random(static_cast<unsigned>(size) + 1);
  ByteVector bytes(size);
  for (auto& byte : bytes) byte = static_cast<uint8_t>(random() >> 7);
  return bytes;
}

TEST(BackgroundHash, IsThatOfAllPiecesInARow) {
  std::minstd_rand random(20261121);
  for (int round = 0; round < 20; ++round) {
    const ByteVector all = noise(random() % (round % 3 == 0 ? 100'000u : 4'000'000u));
    BackgroundHash hash;
    std::vector<BackgroundHash::Ticket> tickets;
    for (size_t at = 0; at < all.size();) {
      const size_t size = std::min<size_t>(all.size() - at, random() % (random() % 4 == 0 ? 300'000 : 3'000));
      tickets.push_back(hash.update(Bytes(all).subspan(at, size)));
      at += size;
    }
    EXPECT_EQ(hash.value(), block_hash(all)) << all.size();
    hash.reset();
    EXPECT_EQ(hash.value(), block_hash({}));
  }
}

// A buffer is reused as soon as the ticket of its last bytes has been waited for.
TEST(BackgroundHash, ATicketSaysWhenTheBytesMayChange) {
  const ByteVector all = noise(30'000'000);
  ByteVector buffers[3];
  BackgroundHash::Ticket hashed[3];
  BackgroundHash hash;
  size_t turn = 0;
  for (size_t at = 0; at < all.size(); at += 500'000, ++turn) {
    hashed[turn % 3].wait();
    buffers[turn % 3].assign(all.begin() + static_cast<ptrdiff_t>(at),
                             all.begin() + static_cast<ptrdiff_t>(at + 500'000));
    const Bytes buffer(buffers[turn % 3]);
    // The later of two tickets covers both.
    hashed[turn % 3] = hash.update(buffer.first(200'000));
    hashed[turn % 3] = hash.update(buffer.subspan(200'000));
  }
  EXPECT_EQ(hash.value(), block_hash(all));
  for (auto& ticket : hashed) ticket.wait();
}

TEST(BackgroundHash, BytesThatDieWaitForTheirTicket) {
  BackgroundHash hash;
  for (int i = 0; i < 10; ++i) {
    const ByteVector bytes = noise(2'000'000);
    const auto ticket = hash.update(bytes);  // destroyed before `bytes`
  }
}

TEST(BackgroundHash, FewBytesAreHashedAtOnce) {
  ByteVector bytes = noise(1 << 20);
  const auto expected = block_hash(bytes);
  BackgroundHash hash;
  const auto ticket = hash.update(bytes);
  std::fill(bytes.begin(), bytes.end(), uint8_t{0});
  EXPECT_EQ(hash.value(), expected);
}

}  // namespace
}  // namespace ptxkit::format
