// The intrinsics of the DSL. intrinsic.def has one row for each, with its lowering, cost and meaning.
#pragma once

#include "builder/types.hpp"

namespace ptxkit::dsl {

enum class Intrinsic : u8 {
#define PTXKIT_INTRINSIC(name, lowering, together, lanes_per_clock, meaning) name,
#include "builder/intrinsic.def"
#undef PTXKIT_INTRINSIC
};

// The threads that must execute an intrinsic together: none, the warp, or the CTA.
enum class Together : u8 { none, warp, cta };

struct IntrinsicRow {
  Intrinsic id;
  const char* name;
  const char* lowering;  // an LLVM intrinsic ("llvm.ctpop"), or an inline-assembly template in PTX
  Together together;
  unsigned lanes_per_clock;  // throughput of an SM in lanes per clock, from NVIDIA's programming guide; 0: not listed
  const char* meaning;
};

const IntrinsicRow& row_of(Intrinsic id);

}  // namespace ptxkit::dsl
