// gzip as kernels. An item is a member of BGZF.
#include <string_view>
#include <vector>

#include "kernels/abi.hpp"
#include "kernels/deflate/deflate_encode_format.hpp"
#include "kernels/deflate/inflate_format.hpp"
#include "runtime/codec/device/batch_pipeline.hpp"

namespace ptxkit::codec {
namespace {

struct EncodeRegions : BatchEncodeRegions {
  enum Own : size_t { matches = first_own, match_counts, tokens };
};
constexpr RegionName kEncodeRegions[] = {{"matches", true}, {"match counts", true}, {"tokens", true}};

class GzipPipeline final : public BatchPipeline {
 public:
  GzipPipeline(Machine& machine, Executor& executor, const GzipCoding& coding)
      : BatchPipeline(machine, executor, kEncodeRegions, {}), coding_(coding) {}

 protected:
  using E = EncodeRegions;
  using D = BatchDecodeRegions;

  std::vector<KernelCall> encode_calls(uint32_t count, size_t raw_stride) const override {
    using namespace kernels;
    const auto call = [&](std::string_view kernel, const LaunchShape& shape) {
      return KernelCall{
          kernel,
          {count * raw_stride, count},
          count,
          shape.block_threads,
          {},
          {buffer(E::raw_at), buffer(E::raw_sizes), buffer(E::coded_at), buffer(E::coded_sizes), buffer(E::statuses),
           buffer(E::matches), buffer(E::match_counts), buffer(E::tokens), number(static_cast<uint32_t>(raw_stride)),
           number(static_cast<uint32_t>(DeflateFraming::bgzf)), number(count)},
          {},
          {{E::raw, "inputs[]"}, {E::coded, "outputs[]"}}};
    };
    return {call(coding_.level <= 1 ? kDeflateMatch : kDeflateMatchHigh, kDeflateMatchShape),
            call(kDeflateEncode, kDeflateEncodeShape)};
  }

  std::vector<KernelCall> decode_calls(const BatchDecodeSizes& sizes) const override {
    using namespace kernels;
    const auto count = static_cast<uint32_t>(sizes.items);
    return {
        {kInflateBatch,
         {count * sizes.largest_raw_bytes, count, sizes.coded_bytes},
         count,
         kInflateShape.block_threads,
         {},
         {buffer(D::coded_at), buffer(D::coded_sizes), buffer(D::raw_at), buffer(D::raw_rooms), buffer(D::raw_sizes),
          buffer(D::statuses), number(static_cast<uint32_t>(DeflateFraming::gzip)), number(count)},
         {},
         {{D::coded, "inputs[]"}, {D::raw, "outputs[]"}}}};
  }

  bool take_block(Bytes member, BlockToEncode& block) const override {
    block.coded.assign(member.begin(), member.end());
    return !member.empty();
  }

  Result<void> check_encoding() const override {
    if (has_kernels(coding_)) return {};
    return fail("there are no kernels for this level of gzip", {}, "use --backend cpu, or another level");
  }

 private:
  GzipCoding coding_;
};

}  // namespace

std::unique_ptr<BlockPipeline> make_gzip_pipeline(Machine& machine, Executor& executor, const GzipCoding& coding) {
  return std::make_unique<GzipPipeline>(machine, executor, coding);
}

}  // namespace ptxkit::codec
