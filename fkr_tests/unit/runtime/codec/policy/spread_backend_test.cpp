// Devices that throw, as one without host memory does: the others do their pieces.
#include "runtime/codec/policy/spread_backend.hpp"

#include <atomic>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/forwarding_backend.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::codec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Throws from the `first_bad`th batch on.
class Throwing final : public ForwardingBackend {
 public:
  Throwing(Executor& executor, int first_bad) : ForwardingBackend(make_cpu_backend(executor)), left_(first_bad) {}
  std::unique_ptr<PendingBatch> begin_compress(std::span<CompressItem> items, Encoder encoder) override {
    if (left_-- <= 0) throw std::bad_alloc();
    return ForwardingBackend::begin_compress(items, encoder);
  }

 private:
  std::atomic<int> left_;
};

struct Batch {
  std::vector<uint8_t> raw = std::vector<uint8_t>(200 * 1000, 'x'), packed = raw;
  std::vector<CompressItem> items = std::vector<CompressItem>(200);

  Batch() {
    for (size_t i = 0; i < items.size(); ++i) {
      items[i].raw = std::span(raw).subspan(i * 1000, 1000);
      items[i].output = std::span(packed).subspan(i * 1000, 1000);
    }
  }
};

Result<void> compress_with(std::vector<int> first_bad, Batch& batch, std::vector<std::string>& notices) {
  Executor executor(2);
  std::vector<std::unique_ptr<Backend>> devices;
  for (const int first : first_bad) devices.push_back(std::make_unique<Throwing>(executor, first));
  std::mutex mutex;
  const auto backend = spread(std::move(devices), [&](const std::string& text, bool) {
    const std::lock_guard lock(mutex);
    notices.push_back(text);
  });
  return backend->compress(batch.items, backend->default_encoder());
}

TEST(SpreadBackend, TheOthersDoThePiecesOfADeviceThatThrows) {
  Batch batch;
  std::vector<std::string> notices;
  ASSERT_TRUE(compress_with({1, 1000}, batch, notices).has_value());
  for (const CompressItem& item : batch.items) {
    ASSERT_EQ(item.status, ItemStatus::ok);
    ASSERT_LT(item.compressed_bytes, 100u);
  }
}

TEST(SpreadBackend, AThrowOfTheLastDeviceIsTheBatchsError) {
  Batch batch;
  std::vector<std::string> notices;
  const auto done = compress_with({0, 2}, batch, notices);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().kind, ErrorKind::no_memory);
  EXPECT_THAT(notices, ElementsAre(HasSubstr("continuing on 1 of 2 GPUs: no memory left")));
}

}  // namespace
}  // namespace ptxkit::codec
