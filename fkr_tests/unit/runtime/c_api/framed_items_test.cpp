// Damaged items of framings frame and hdf5: the reference of the kernels that decode them in device memory judges them
// as the batches in host memory do, which other code reads.
#include <map>
#include <random>

#include <lz4frame.h>

#include "fkr_tests/fuzz/stream_damage.hpp"
#include "fkr_tests/unit/runtime/c_api/c_api.hpp"
#include "kernels/lz4/lz4_batch_reference.hpp"

namespace ptxkit::testing {
namespace {

constexpr size_t kItems = 100'000, kBatchItems = 5000, kRoom = 600;

class FramedItems : public CApi {
 protected:
  static Bytes frame(const Bytes& raw, std::mt19937& random) {
    LZ4F_preferences_t wanted = {};
    wanted.frameInfo.blockSizeID = static_cast<LZ4F_blockSizeID_t>(4 + random() % 4);
    wanted.frameInfo.blockMode = random() % 2 != 0 ? LZ4F_blockLinked : LZ4F_blockIndependent;
    wanted.frameInfo.contentChecksumFlag = static_cast<LZ4F_contentChecksum_t>(random() % 2);
    wanted.frameInfo.blockChecksumFlag = static_cast<LZ4F_blockChecksum_t>(random() % 2);
    if (random() % 2 != 0) wanted.frameInfo.contentSize = raw.size();
    LZ4F_cctx* context = nullptr;
    EXPECT_FALSE(LZ4F_isError(LZ4F_createCompressionContext(&context, LZ4F_VERSION)));
    Bytes out(3000);
    size_t used = LZ4F_compressBegin(context, out.data(), out.size(), &wanted);
    size_t at = 0;
    while (at < raw.size()) {  // a flush ends a block
      const size_t step = std::min<size_t>(raw.size() - at, 1 + random() % 300);
      used += LZ4F_compressUpdate(context, out.data() + used, out.size() - used, raw.data() + at, step, nullptr);
      used += LZ4F_flush(context, out.data() + used, out.size() - used, nullptr);
      at += step;
    }
    used += LZ4F_compressEnd(context, out.data() + used, out.size() - used, nullptr);
    LZ4F_freeCompressionContext(context);
    out.resize(used);
    return out;
  }

  Bytes chunk(const Bytes& raw) {
    ptxkit_batch_options options = PTXKIT_BATCH_OPTIONS_DEFAULTS;
    options.framing = PTXKIT_FRAMING_HDF5;
    Batch batch({raw}, {raw.size() + 100});
    EXPECT_OK(batch.compress(context_, &options));
    return batch.results()[0];
  }

  Bytes damaged(uint32_t framing, std::mt19937& random) {
    Bytes raw =
        random() % 2 != 0 ? words(random() % 400) : random_bytes(random() % 400, static_cast<uint32_t>(random()));
    Bytes item = framing == PTXKIT_FRAMING_HDF5 ? chunk(raw) : frame(raw, random);
    if (framing == PTXKIT_FRAMING_FRAME && random() % 8 == 0) {
      const Bytes more = frame(words(random() % 100), random);
      item.insert(item.end(), more.begin(), more.end());
    }
    if (framing == PTXKIT_FRAMING_HDF5 && random() % 2 == 0 && raw.size() > 1) {
      item[11] = static_cast<uint8_t>(random());  // another size of blocks
      item[10] = static_cast<uint8_t>(random() % 2);
    }
    fuzz::damage(item, random);
    return item;
  }
};

TEST_F(FramedItems, DamagedOnesAreJudgedAlike) {
  for (const auto& [framing, of_kernels] : {std::pair(PTXKIT_FRAMING_FRAME, kernels::BatchFraming::frame),
                                            std::pair(PTXKIT_FRAMING_HDF5, kernels::BatchFraming::hdf5)}) {
    ptxkit_batch_options options = PTXKIT_BATCH_OPTIONS_DEFAULTS;
    options.framing = framing;
    std::map<ptxkit_status, size_t> seen;
    std::mt19937 random(framing);
    for (size_t begin = 0; begin < kItems / 2; begin += kBatchItems) {
      std::vector<Bytes> items;
      std::vector<size_t> rooms;
      for (size_t i = 0; i < kBatchItems; ++i) {
        items.push_back(damaged(framing, random));
        rooms.push_back(random() % kRoom);
      }
      Batch batch(items, rooms);
      ptxkit_decompress_batch(context_, &options, batch.input_pointers.data(), batch.input_bytes.data(), items.size(),
                              batch.output_pointers.data(), batch.capacities.data(), batch.sizes.data(),
                              batch.statuses.data());
      const auto by_host = batch.results();
      for (size_t i = 0; i < items.size(); ++i) {
        Bytes back(rooms[i]);
        const kernels::BatchItem item = kernels::lz4_batch_decompress_reference(items[i], back, of_kernels);
        back.resize(item.size_bytes);
        const auto status = static_cast<ptxkit_status>(item.status);
        ++seen[status];
        ASSERT_EQ(status == PTXKIT_OK, batch.statuses[i] == PTXKIT_OK)
            << framing << " " << begin + i << ": " << status << ", " << batch.statuses[i];
        // Of several faults of a frame the host names the first in the stream, the kernels one of a header.
        if (framing == PTXKIT_FRAMING_HDF5) {
          ASSERT_EQ(status, batch.statuses[i]) << begin + i;
        }
        if (status == PTXKIT_OK) {
          ASSERT_TRUE(back == by_host[i]) << begin + i;
        }
        size_t raw_bytes = 0;
        const auto by_header = ptxkit_decompressed_size(&options, items[i].data(), items[i].size(), &raw_bytes);
        const kernels::BatchItem size = kernels::lz4_batch_size_reference(items[i], of_kernels);
        // The host verifies the blocks' checksums for that, the kernel reads headers only.
        if (by_header == PTXKIT_BAD_CHECKSUM && size.status == kernels::BatchStatus::ok) continue;
        ASSERT_EQ(size.status == kernels::BatchStatus::ok, by_header == PTXKIT_OK) << begin + i;
        if (by_header == PTXKIT_OK) {
          ASSERT_EQ(size.size_bytes, raw_bytes) << begin + i;
        }
      }
    }
    EXPECT_GT(seen[PTXKIT_OK], 1000u);
    EXPECT_GT(seen[PTXKIT_CANNOT_DECOMPRESS], 1000u);
    EXPECT_GT(seen[PTXKIT_OUTPUT_TOO_SMALL], 1000u);
    EXPECT_EQ(seen[PTXKIT_BAD_CHECKSUM] > 1000, framing == PTXKIT_FRAMING_FRAME);
  }
}

}  // namespace
}  // namespace ptxkit::testing
