// What a codec's kernels take together: the launches of a group of blocks, from the @pz_cost blocks of their texts.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/container/images.hpp"
#include "kernels/images.hpp"
#include "runtime/codec/format/codecs.hpp"
#include "support/result.hpp"

namespace ptxkit::tools {

// Kernels by name, each from one PTX text.
class KernelTexts {
 public:
  // Fails if the text does not parse, has another number of entries than one, or is a second text of its kernel.
  Result<void> add(container::PtxImage text);
  // nullptr if there is none.
  const kernels::KernelImage* find(std::string_view kernel) const;

 private:
  struct Text {
    container::PtxImage image;
    std::string target;
    std::vector<std::string> parameter_names;
    std::vector<kernels::KernelParameter> parameters;
    kernels::KernelImage kernel;
  };
  std::map<std::string, Text, std::less<>> texts_;
};

// A table of the passes that encode and decode `block_count` blocks of `block_bytes` (1 to 2^kPtzMaxBlockBits) each.
// Fails without the text of a kernel that the codec launches.
Result<std::string> pipeline_table(format::PtzCodec codec, const KernelTexts& texts, uint32_t block_count,
                                   uint64_t block_bytes);

}  // namespace ptxkit::tools
