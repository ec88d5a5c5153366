// A producer and a consumer of one's own: bytes that are made while they are compressed go through a frame and are
// checked while they are decompressed, with the caller's allocator, from two threads that share one Lz4. usage: stream
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "runtime/library/lz4.hpp"

using ptxkit::Result;
using ptxkit::codec::Bytes;
using ptxkit::codec::MutableBytes;

// What the stream holds at a position.
uint8_t byte_at(uint64_t at) { return static_cast<uint8_t>((at / 1000) ^ (at % 7)); }

class Producer final : public ptxkit::format::ByteSource {
 public:
  explicit Producer(uint64_t size_bytes) : size_bytes_(size_bytes) {}
  Result<size_t> read(MutableBytes into) override {
    size_t count = 0;
    while (count < into.size() && at_ < size_bytes_) into[count++] = byte_at(at_++);
    return count;
  }
  const std::string& name() const override { return name_; }

 private:
  uint64_t at_ = 0, size_bytes_;
  std::string name_ = "producer";
};

class Consumer final : public ptxkit::format::ByteSink {
 public:
  Result<void> write(Bytes bytes) override {
    for (const uint8_t byte : bytes) {
      if (byte != byte_at(at_++)) return ptxkit::fail("a wrong byte", "position " + std::to_string(at_ - 1));
    }
    return {};
  }
  uint64_t size_bytes() const { return at_; }

 private:
  uint64_t at_ = 0;
};

int main() {
  std::atomic<size_t> allocated{0};
  auto lz4 = ptxkit::library::Lz4::open({.where = ptxkit::library::Where::cpu, .allocate = [&](size_t size_bytes) {
                                           allocated += size_bytes;
                                           void* const memory = std::aligned_alloc(64, (size_bytes + 63) / 64 * 64);
                                           return std::shared_ptr<uint8_t>(static_cast<uint8_t*>(memory), std::free);
                                         }});
  if (!lz4) return std::fprintf(stderr, "%s\n", lz4.error().message().c_str()), 1;
  std::atomic<int> failures{0};
  const auto job = [&](uint64_t size_bytes) {
    Producer producer(size_bytes);
    ptxkit::format::MemorySink frame;
    const auto packed = lz4->compress(producer, frame);
    ptxkit::format::MemorySource source(frame.bytes(), "frame");
    Consumer consumer;
    const auto unpacked = lz4->decompress(source, consumer);
    for (const auto* totals : {&packed, &unpacked}) {
      if (!*totals) std::fprintf(stderr, "%s\n", totals->error().message().c_str());
    }
    if (!packed || !unpacked || consumer.size_bytes() != size_bytes) ++failures;
  };
  std::thread one(job, 5'000'003), other(job, 3'000'000);
  one.join();
  other.join();
  std::printf("two streams, %zu bytes asked of the allocator\n", allocated.load());
  return failures == 0 && allocated > 0 ? 0 : 1;
}
