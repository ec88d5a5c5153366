// Typed rANS on a GPU: the bytes of the reference, and what it says of damaged items.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "fkr_tests/cases/device_batches.hpp"
#include "fkr_tests/cases/typed_arrays.hpp"
#include "fkr_tests/device/device.hpp"
#include "fkr_tests/fuzz/stream_damage.hpp"

namespace ptxkit {
namespace {

using kernels::TypedLayout;
using testing::Bytes;

// Items on the device, each in memory of its own that ends where the item ends.
struct Items {
  std::vector<uint64_t> addresses, sizes;

  void add(testing::BatchMemory& memory, const Bytes& bytes) {
    Bytes there = bytes;
    if (there.empty()) there.resize(1);
    addresses.push_back(memory.upload(there));
    sizes.push_back(bytes.size());
  }
};

struct Ran {
  std::vector<Bytes> outputs;
  std::vector<int32_t> statuses;
};

Ran encode(const library::DeviceBatches& batches, const std::vector<Bytes>& raws, TypedLayout layout) {
  testing::BatchMemory memory(*testing::device());
  Items items, rooms;
  library::BatchCompression batch;
  for (const Bytes& raw : raws) {
    items.add(memory, raw);
    rooms.add(memory, Bytes(kernels::typed_bound(raw.size(), layout), 0xEE));
    batch.max_input_bytes = std::max<uint64_t>(batch.max_input_bytes, raw.size());
  }
  const auto coding = static_cast<library::Coding>(layout);
  const auto needed =
      library::DeviceBatches::requirements(batch.max_input_bytes, raws.size(), library::Framing::raw, coding).value();
  batch.inputs = memory.upload(items.addresses);
  batch.input_bytes = memory.upload(items.sizes);
  batch.item_count = raws.size();
  batch.temp_bytes = needed.temp_bytes;
  batch.temp = memory.upload(Bytes(needed.temp_bytes));
  batch.outputs = memory.upload(rooms.addresses);
  batch.output_bytes = memory.upload(std::vector<uint64_t>(raws.size()));
  batch.statuses = memory.upload(std::vector<int32_t>(raws.size(), -1));
  batch.coding = coding;
  const auto done = batches.compress(batch, memory.stream().handle());
  EXPECT_TRUE(done) << done.error().message();
  Ran ran{{}, memory.download<int32_t>(batch.statuses, raws.size())};
  const auto sizes = memory.download<uint64_t>(batch.output_bytes, raws.size());
  for (size_t i = 0; i < raws.size(); ++i)
    ran.outputs.push_back(memory.download<uint8_t>(rooms.addresses[i], sizes[i]));
  return ran;
}

Ran decode(const library::DeviceBatches& batches, const std::vector<Bytes>& coded,
           const std::vector<size_t>& capacities) {
  testing::BatchMemory memory(*testing::device());
  Items items, rooms;
  for (size_t i = 0; i < coded.size(); ++i) {
    items.add(memory, coded[i]);
    rooms.add(memory, Bytes(capacities[i], 0xEE));
  }
  library::BatchDecompression batch;
  batch.inputs = memory.upload(items.addresses);
  batch.input_bytes = memory.upload(items.sizes);
  batch.output_capacities = memory.upload(rooms.sizes);
  batch.output_bytes = memory.upload(std::vector<uint64_t>(coded.size()));
  batch.item_count = coded.size();
  batch.outputs = memory.upload(rooms.addresses);
  batch.statuses = memory.upload(std::vector<int32_t>(coded.size(), -1));
  batch.coding = library::Coding::bytes;
  const auto done = batches.decompress(batch, memory.stream().handle());
  EXPECT_TRUE(done) << done.error().message();
  Ran ran{{}, memory.download<int32_t>(batch.statuses, coded.size())};
  const auto sizes = memory.download<uint64_t>(batch.output_bytes, coded.size());
  for (size_t i = 0; i < coded.size(); ++i)
    ran.outputs.push_back(memory.download<uint8_t>(rooms.addresses[i], sizes[i]));
  return ran;
}

void expect_bytes_of_reference(const std::vector<Bytes>& raws, const testing::NamedLayout& of) {
  const auto batches = library::DeviceBatches::open();
  ASSERT_TRUE(batches) << batches.error().message();
  std::vector<Bytes> expected;
  std::vector<size_t> sizes;
  for (const Bytes& raw : raws) {
    expected.push_back(testing::typed_coded(raw, of.layout));
    sizes.push_back(raw.size());
  }
  const Ran encoded = encode(*batches, raws, of.layout), decoded = decode(*batches, expected, sizes);
  for (size_t i = 0; i < raws.size(); ++i) {
    EXPECT_EQ(encoded.statuses[i], 0) << of.name << ", " << raws[i].size();
    EXPECT_EQ(decoded.statuses[i], 0) << of.name << ", " << raws[i].size();
    EXPECT_TRUE(encoded.outputs[i] == expected[i]) << of.name << ", " << raws[i].size();
    EXPECT_TRUE(decoded.outputs[i] == raws[i]) << of.name << ", " << raws[i].size();
  }
}

void expect_status_of_reference(size_t item_count, size_t elements, const testing::NamedLayout& of) {
  const auto batches = library::DeviceBatches::open();
  ASSERT_TRUE(batches) << batches.error().message();
  std::mt19937 random(static_cast<uint32_t>(of.layout));
  const Bytes raw = testing::weight_bytes(elements * kernels::typed_shape(of.layout).element_bytes + 5, of.layout, 6),
              good = testing::typed_coded(raw, of.layout);
  std::vector<Bytes> items, expected;
  std::vector<int32_t> statuses;
  for (size_t i = 0; i < item_count; ++i) {
    Bytes bad = good;
    fuzz::damage(bad, random);
    items.push_back(bad);
    expected.emplace_back(raw.size());
    const auto outcome = kernels::typed_decode_reference(bad, expected.back());
    statuses.push_back(static_cast<int32_t>(outcome.status));
    expected.back().resize(outcome.size_bytes);
  }
  const Ran decoded = decode(*batches, items, std::vector<size_t>(items.size(), raw.size()));
  EXPECT_EQ(decoded.statuses, statuses) << of.name;
  EXPECT_TRUE(decoded.outputs == expected) << of.name;
}

TEST(DeviceTyped, BytesOfTheReference) {
  PTXKIT_REQUIRE_DEVICE();
  for (const auto& of : testing::kNamedLayouts) expect_bytes_of_reference(testing::typed_inputs(of.layout), of);
}

// 16 MiB are many members of one item.
TEST(DeviceTyped, LargeItems) {
  PTXKIT_REQUIRE_DEVICE();
  for (const auto& of : testing::kNamedLayouts) {
    expect_bytes_of_reference({testing::weight_bytes((size_t{16} << 20) + 1001, of.layout, 9)}, of);
  }
}

TEST(DeviceTyped, DamagedItems) {
  PTXKIT_REQUIRE_DEVICE();
  for (const auto& of : testing::kNamedLayouts) expect_status_of_reference(300, 9000, of);
}

// 25,000 damaged forms of 32 items, in one allocation each way: the verdicts and bytes of the reference.
void expect_round_of_reference(const library::DeviceBatches& batches, const testing::NamedLayout& of, uint32_t seed) {
  constexpr size_t kItems = 25'000, kGood = 32;
  std::mt19937 random(seed);
  std::vector<Bytes> good;
  std::vector<size_t> raw_bytes;
  for (size_t i = 0; i < kGood; ++i) {
    raw_bytes.push_back(random() % 6000);
    good.push_back(testing::typed_coded(
        testing::weight_bytes(raw_bytes.back(), of.layout, static_cast<uint32_t>(random())), of.layout));
  }
  Bytes packed, expected;
  std::vector<uint64_t> inputs, input_bytes, outputs, rooms;
  std::vector<int32_t> statuses;
  for (size_t i = 0; i < kItems; ++i) {
    Bytes bad = good[i % kGood];
    // What decides is at the front: header, index, tables.
    if (i % 2 == 0) bad[random() % std::min<size_t>(bad.size(), 700)] ^= static_cast<uint8_t>(1u << random() % 8);
    if (i % 2 != 0) fuzz::damage(bad, random);
    inputs.push_back(packed.size());
    input_bytes.push_back(bad.size());
    packed.insert(packed.end(), bad.begin(), bad.end());
    packed.resize(kernels::typed_aligned(packed.size()));
    outputs.push_back(expected.size());
    rooms.push_back(raw_bytes[i % kGood]);
    Bytes back(rooms.back());
    const auto outcome = kernels::typed_decode_reference(bad, back);
    statuses.push_back(static_cast<int32_t>(outcome.status));
    back.resize(outcome.size_bytes);
    expected.insert(expected.end(), back.begin(), back.end());
    expected.resize(outputs.back() + kernels::typed_aligned(rooms.back()));
  }
  testing::BatchMemory memory(*testing::device());
  const uint64_t from = memory.upload(packed), to = memory.upload(Bytes(expected.size()));
  for (uint64_t& address : inputs) address += from;
  std::vector<uint64_t> addresses;
  for (const uint64_t at : outputs) addresses.push_back(to + at);
  library::BatchDecompression batch;
  batch.inputs = memory.upload(inputs);
  batch.input_bytes = memory.upload(input_bytes);
  batch.output_capacities = memory.upload(rooms);
  batch.output_bytes = memory.upload(std::vector<uint64_t>(kItems));
  batch.item_count = kItems;
  batch.outputs = memory.upload(addresses);
  batch.statuses = memory.upload(std::vector<int32_t>(kItems, -1));
  batch.coding = library::Coding::bytes;
  const auto done = batches.decompress(batch, memory.stream().handle());
  ASSERT_TRUE(done) << done.error().message();
  ASSERT_EQ(memory.download<int32_t>(batch.statuses, kItems), statuses) << of.name << ", seed " << seed;
  const Bytes decoded = memory.download<uint8_t>(to, expected.size());
  for (size_t i = 0; i < kItems; ++i) {
    if (statuses[i] != 0) continue;
    const auto size = static_cast<ptrdiff_t>(rooms[i]), at = static_cast<ptrdiff_t>(outputs[i]);
    ASSERT_TRUE(std::equal(decoded.begin() + at, decoded.begin() + at + size, expected.begin() + at))
        << of.name << ", seed " << seed << ", item " << i;
  }
}

TEST(DeviceTyped, AMillionDamagedItems) {
  PTXKIT_REQUIRE_DEVICE();
  const auto batches = library::DeviceBatches::open();
  ASSERT_TRUE(batches) << batches.error().message();
  for (uint32_t round = 0; round < 6; ++round) {
    for (const auto& of : testing::kNamedLayouts) {
      expect_round_of_reference(*batches, of, 100 * round + static_cast<uint32_t>(of.layout));
      if (HasFatalFailure()) return;
    }
  }
}

// What the emulator runs in a few seconds.
TEST(DeviceShortTyped, BytesOfTheReferenceAndDamagedItems) {
  PTXKIT_REQUIRE_DEVICE();
  for (const auto& of : testing::kNamedLayouts) {
    const size_t unit = size_t{kernels::kTypedUnit} * kernels::typed_shape(of.layout).element_bytes;
    expect_bytes_of_reference({{}, testing::weight_bytes(3 * unit + 1, of.layout, 2)}, of);
    expect_status_of_reference(3, 500, of);
  }
}

}  // namespace
}  // namespace ptxkit
