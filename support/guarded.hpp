// Converts exceptions into errors at the boundary of code that returns Result: exhausted memory, and exceptions of
// callers' functions.
#pragma once

#include <new>
#include <string>

#include "support/result.hpp"

namespace ptxkit {

// The error for the exception being handled. Call it in a catch block.
inline Error error_of_exception() noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return no_memory_left();
    } catch (const std::exception& error) {
      return Error{std::string("stopped by an exception: ") + error.what(), {}, {}};
    } catch (...) {
      return Error{"stopped by an exception that is no std::exception", {}, {}};
    }
  } catch (const std::bad_alloc&) {  // for the text
    return no_memory_left();
  }
}

// Calls work(), which returns a Result, and turns an exception into an error.
template <class Work>
auto guarded(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (...) {
    return tl::unexpected<Error>(error_of_exception());
  }
}

}  // namespace ptxkit
