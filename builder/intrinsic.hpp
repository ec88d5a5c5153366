// The intrinsics of the DSL: one row each in intrinsic.def with its meaning, cost and lowering.
#pragma once

#include "builder/types.hpp"

namespace ptxkit::dsl {

enum class Intrinsic : u8 {
#define PTXKIT_INTRINSIC(name, lowering, together, lanes_per_clock, meaning) name,
#include "builder/intrinsic.def"
#undef PTXKIT_INTRINSIC
};

// Who must arrive together at an intrinsic: nobody, the warp, or the CTA.
enum class Together : u8 { none, warp, cta };

struct IntrinsicRow {
  Intrinsic id;
  const char* name;
  const char* lowering;  // an LLVM intrinsic ("llvm.ctpop"), or the PTX of an inline-assembly template
  Together together;
  unsigned lanes_per_clock;  // throughput of one SM sub-partition pair as NVIDIA's programming guide lists it, per SM
  const char* meaning;
};

const IntrinsicRow& row_of(Intrinsic id);

}  // namespace ptxkit::dsl
