// Batches through DeviceBatches on any driver, each item in memory of its own.
#pragma once

#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <lz4.h>

#include "fkr_tests/cases/corpus.hpp"
#include "runtime/driver/context.hpp"
#include "runtime/library/device_batches.hpp"

namespace ptxkit::testing {

// Arrays and items of a batch.
class BatchMemory {
 public:
  explicit BatchMemory(const driver::ContextPointer& context)
      : context_(context), stream_(driver::Stream::create(context).value()) {}

  template <class T>
  uint64_t upload(const std::vector<T>& values) {
    const std::span bytes(reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T));
    memories_.push_back(driver::DeviceMemory::allocate(context_, bytes.size()).value());
    EXPECT_TRUE(memories_.back().upload(bytes, stream_));
    EXPECT_TRUE(stream_.wait());
    return memories_.back().handle();
  }
  template <class T>
  std::vector<T> download(uint64_t address, size_t count) {
    std::vector<T> values(count);
    const std::span bytes(reinterpret_cast<uint8_t*>(values.data()), count * sizeof(T));
    for (const driver::DeviceMemory& memory : memories_) {
      if (memory.handle() != address) continue;
      EXPECT_TRUE(memory.download(bytes, stream_));
    }
    const auto waited = stream_.wait();
    EXPECT_TRUE(waited) << waited.error().message();
    return values;
  }
  const driver::Stream& stream() const { return stream_; }

 private:
  driver::ContextPointer context_;
  driver::Stream stream_;
  std::vector<driver::DeviceMemory> memories_;
};

// Blocks of liblz4, of items of these sizes.
inline void expect_items_come_back(const library::DeviceBatches& batches, const driver::ContextPointer& context,
                                   const std::vector<uint32_t>& item_sizes) {
  BatchMemory memory(context);
  std::vector<Bytes> raws;
  std::vector<uint64_t> inputs, input_bytes, outputs, capacities;
  for (const uint32_t size : item_sizes) {
    raws.push_back(matchable_bytes(size, size));
    Bytes block(static_cast<size_t>(LZ4_compressBound(static_cast<int>(size))));
    block.resize(static_cast<size_t>(LZ4_compress_default(reinterpret_cast<const char*>(raws.back().data()),
                                                          reinterpret_cast<char*>(block.data()), static_cast<int>(size),
                                                          static_cast<int>(block.size()))));
    inputs.push_back(memory.upload(block));
    input_bytes.push_back(block.size());
    outputs.push_back(memory.upload(Bytes(size)));
    capacities.push_back(size);
  }
  library::BatchDecompression batch;
  batch.inputs = memory.upload(inputs);
  batch.input_bytes = memory.upload(input_bytes);
  batch.output_capacities = memory.upload(capacities);
  batch.output_bytes = memory.upload(std::vector<uint64_t>(raws.size()));
  batch.item_count = raws.size();
  batch.outputs = memory.upload(outputs);
  batch.statuses = memory.upload(std::vector<int32_t>(raws.size(), -1));
  const auto done = batches.decompress(batch, memory.stream().handle());
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(memory.download<uint64_t>(batch.output_bytes, raws.size()), capacities);
  EXPECT_EQ(memory.download<int32_t>(batch.statuses, raws.size()), std::vector<int32_t>(raws.size()));
  for (size_t i = 0; i < raws.size(); ++i) {
    EXPECT_TRUE(memory.download<uint8_t>(outputs[i], raws[i].size()) == raws[i]) << i;
  }
}

}  // namespace ptxkit::testing
