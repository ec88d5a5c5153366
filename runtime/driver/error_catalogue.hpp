// The meaning, likely cause and next step for every error code of the CUDA driver: a table (errors.def) and its
// look-up.
//
// The driver's own strings stop at "misaligned address". A user whose kernel failed needs the likely cause and the next
// step, so every device error that this project reports has both.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "support/result.hpp"

namespace ptxkit::driver {

// The extent of the damage. After `context`, `device` and `installation` errors a retry on the same context cannot
// succeed.
enum class ErrorScope : uint8_t { call, context, device, installation };

struct ErrorEntry {
  int code;
  std::string_view name;
  ErrorScope scope;
  std::string_view meaning;
  std::string_view cause;
  std::string_view next_step;
};

// All entries, in ascending order of code.
std::span<const ErrorEntry> error_catalogue();

// The entry of `code`, or that of CUDA_ERROR_UNKNOWN if the table does not have it.
const ErrorEntry& explain(int code);

// "cuStreamSynchronize: error 716, CUDA_ERROR_MISALIGNED_ADDRESS: a load or store was not aligned to its width (often:
// ...)", with the next step as the Error's `todo`. `call` names the operation, `where` the device or the kernel.
Error driver_error(int code, std::string_view call, std::string_view where = {});

}  // namespace ptxkit::driver
