// Exceptions at the border of code that returns errors: memory that ran out, and what callers' functions throw.
#pragma once

#include <exception>
#include <new>

#include "support/result.hpp"

namespace ptxkit {

// The error that stands for the exception at hand; call it in a handler.
inline Error error_of_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Error{"no memory left", {}, "use smaller blocks, fewer threads or a memory budget"};
  } catch (const std::exception& error) {
    return Error{std::string("stopped by an exception: ") + error.what(), {}, {}};
  } catch (...) {
    return Error{"stopped by an exception that is no std::exception", {}, {}};
  }
}

// What `work` returns, a Result; an exception that leaves it is an error.
template <class Work>
auto guarded(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (...) {
    return tl::unexpected<Error>(error_of_exception());
  }
}

}  // namespace ptxkit
