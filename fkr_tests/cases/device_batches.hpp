// Batches through DeviceBatches on any driver, each item in memory of its own.
#pragma once

#include <algorithm>
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

// Compresses items of these sizes and takes them back, on the stream `handle`.
inline void expect_items_come_back(const library::DeviceBatches& batches, const driver::ContextPointer& context,
                                   const std::vector<uint32_t>& item_sizes, library::Framing framing,
                                   library::StreamHandle handle) {
  BatchMemory memory(context);
  std::vector<Bytes> raws;
  std::vector<uint64_t> inputs, input_bytes, packed, outputs;
  uint64_t largest = 0;
  for (const uint32_t size : item_sizes) largest = std::max<uint64_t>(largest, size);
  const auto needed = library::DeviceBatches::requirements(largest, item_sizes.size(), framing).value();
  for (const uint32_t size : item_sizes) {
    raws.push_back(size % 3 == 0 ? random_bytes(size, size) : matchable_bytes(size, size));
    Bytes padded = raws.back();
    padded.resize((size + needed.input_alignment - 1) / needed.input_alignment * needed.input_alignment);
    inputs.push_back(memory.upload(padded));
    input_bytes.push_back(size);
    packed.push_back(memory.upload(Bytes(needed.output_bytes_bound)));
    outputs.push_back(memory.upload(Bytes(size)));
  }
  library::BatchCompression there;
  there.inputs = memory.upload(inputs);
  there.input_bytes = memory.upload(input_bytes);
  there.max_input_bytes = largest;
  there.item_count = raws.size();
  there.temp_bytes = needed.temp_bytes;
  if (needed.temp_bytes != 0) there.temp = memory.upload(Bytes(needed.temp_bytes));
  there.outputs = memory.upload(packed);
  there.output_bytes = memory.upload(std::vector<uint64_t>(raws.size()));
  there.statuses = memory.upload(std::vector<int32_t>(raws.size(), -1));
  there.framing = framing;
  library::BatchDecompression back;
  back.inputs = there.outputs;
  back.input_bytes = there.output_bytes;
  back.output_capacities = there.input_bytes;
  back.output_bytes = memory.upload(std::vector<uint64_t>(raws.size()));
  back.item_count = raws.size();
  back.outputs = memory.upload(outputs);
  back.framing = framing;
  back.temp_bytes = needed.decompress_temp_bytes;
  if (back.temp_bytes != 0) back.temp = memory.upload(Bytes(back.temp_bytes));
  back.statuses = memory.upload(std::vector<int32_t>(raws.size(), -1));
  library::BatchSizes sizes;
  sizes.inputs = there.outputs;
  sizes.input_bytes = there.output_bytes;
  sizes.item_count = raws.size();
  sizes.output_bytes = memory.upload(std::vector<uint64_t>(raws.size()));
  sizes.framing = framing;
  for (const auto& done :
       {batches.compress(there, handle), batches.decompressed_sizes(sizes, handle), batches.decompress(back, handle)}) {
    ASSERT_TRUE(done) << done.error().message();
  }
  ASSERT_EQ(context->api().stream_synchronize(static_cast<driver::CuStream>(handle)), 0);
  const std::vector<int32_t> good(raws.size());
  EXPECT_EQ(memory.download<int32_t>(there.statuses, raws.size()), good);
  EXPECT_EQ(memory.download<int32_t>(back.statuses, raws.size()), good);
  EXPECT_EQ(memory.download<uint64_t>(back.output_bytes, raws.size()), input_bytes);
  EXPECT_EQ(memory.download<uint64_t>(sizes.output_bytes, raws.size()), input_bytes);
  const auto coded_bytes = memory.download<uint64_t>(there.output_bytes, raws.size());
  for (size_t i = 0; i < raws.size(); ++i) {
    EXPECT_TRUE(memory.download<uint8_t>(outputs[i], raws[i].size()) == raws[i]) << i;
    if (framing != library::Framing::raw) continue;
    const Bytes block = memory.download<uint8_t>(packed[i], coded_bytes[i]);
    Bytes by_liblz4(raws[i].size());
    EXPECT_EQ(
        LZ4_decompress_safe(reinterpret_cast<const char*>(block.data()), reinterpret_cast<char*>(by_liblz4.data()),
                            static_cast<int>(block.size()), static_cast<int>(by_liblz4.size())),
        static_cast<int>(raws[i].size()));
    EXPECT_TRUE(by_liblz4 == raws[i]) << i;
  }
}

}  // namespace ptxkit::testing
