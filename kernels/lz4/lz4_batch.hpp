// What the kernels of batches share.
#pragma once

#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using WarpU64 = dsl::Expr<dsl::u64, dsl::Rate::warp>;

// The status of an item: that of the first check that failed.
class BatchOutcome {
 public:
  explicit BatchOutcome(dsl::Kernel& k) : status_(k, static_cast<uint32_t>(BatchStatus::ok)) {}

  void fail_if(const WarpBool& condition, BatchStatus status) {
    status_ = select(is_ok() & condition, static_cast<uint32_t>(status), *status_);
  }
  WarpBool is_ok() const { return *status_ == static_cast<uint32_t>(BatchStatus::ok); }
  WarpU32 status() const { return *status_; }

 private:
  WarpVar status_;
};

}  // namespace ptxkit::kernels
