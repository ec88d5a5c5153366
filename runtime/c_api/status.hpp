// How functions of the C ABI fail: a status, and a text for ptxkit_last_error().
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

#include "runtime/c_api/ptxkit.h"
#include "support/guarded.hpp"
#include "support/result.hpp"

namespace ptxkit::c_api {

struct Failure {
  ptxkit_status status = PTXKIT_INTERNAL;
  Error error;
};
template <class T = void>
using Answer = tl::expected<T, Failure>;

inline tl::unexpected<Failure> refuse(ptxkit_status status, std::string what, std::string todo = {}) {
  return tl::unexpected<Failure>(Failure{status, {std::move(what), {}, std::move(todo)}});
}
// An error from inside: its kind decides where it can, otherwise `status`.
tl::unexpected<Failure> refuse(ptxkit_status status, Error error);

// Keeps the text for ptxkit_last_error() and returns the status. Never throws or allocates.
ptxkit_status report(const char* function, const Failure& failure) noexcept;

// Runs the body of a function of the ABI: work() -> Answer<>. No exception leaves it.
template <class Work>
ptxkit_status call(const char* function, Work&& work) noexcept {
  try {
    const Answer<> answer = work();
    return answer ? PTXKIT_OK : report(function, answer.error());
  } catch (...) {
    Error error = error_of_exception();
    const ptxkit_status status = error.kind == ErrorKind::no_memory ? PTXKIT_NO_MEMORY : PTXKIT_INTERNAL;
    return report(function, {status, std::move(error)});
  }
}

template <class T>
Answer<> require(T* pointer, const char* name) {
  if (pointer != nullptr) return {};
  return refuse(PTXKIT_INVALID_VALUE, std::string(name) + " is null");
}

template <class T>
bool is_zero(const T& value) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&value);
  return std::all_of(bytes, bytes + sizeof value, [](unsigned char byte) { return byte == 0; });
}

// The options that the caller gave, or `defaults`. Checks the size and that reserved fields are zero.
template <class Options, class... Reserved>
Answer<Options> read_options(const Options* given, const Options& defaults, Reserved... reserved) {
  if (given == nullptr) return defaults;
  if (given->struct_bytes != sizeof(Options)) {
    return refuse(PTXKIT_INVALID_VALUE,
                  "options: struct_bytes is " + std::to_string(given->struct_bytes) + ", expected " +
                      std::to_string(sizeof(Options)),
                  "begin with the *_DEFAULTS macro");
  }
  if (!(is_zero(given->*reserved) && ...)) {
    return refuse(PTXKIT_INVALID_VALUE, "options: a reserved field is not zero",
                  "begin with the *_DEFAULTS macro; is the program for a later version of this library?");
  }
  return *given;
}

// A copy that ptxkit_string_free() frees. Throws std::bad_alloc.
char* new_string(std::string_view text);

}  // namespace ptxkit::c_api
