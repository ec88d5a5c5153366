// Result<T>: the return type of every operation that input can make fail (a file, a PTX text, a frame, a driver).
// Misuse of an API is an exception or a failed PTXKIT_CHECK; see check.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace ptxkit {

// The kind of an error, for callers that must tell one from another.
enum class ErrorKind : uint8_t {
  other,
  bad_checksum,
  no_memory,
  io,      // reported by the system for a file, or by a caller's function that reads or writes
  device,  // reported by the driver
};

// What went wrong, where, and what to do about it. Only `what` is required. Lower case without a final period, as in
// compiler diagnostics.
struct Error {
  std::string what;   // "block 3: checksum mismatch, expected 0x1234abcd, found 0x9876fedc"
  std::string where;  // "archive.lz4, byte 65547"
  std::string todo;   // "run `ptx-pack -t` on the original, or decompress with --keep-going"
  ErrorKind kind = ErrorKind::other;

  std::string message() const;  // "where: what; todo"
  // `todo`, or what to do about every error of the kind.
  std::string_view remedy() const noexcept;
};

// Does not allocate: the text fits into the string itself.
inline Error no_memory_left() noexcept { return {"no memory left", {}, {}, ErrorKind::no_memory}; }

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(std::string what, std::string where = {}, std::string todo = {}) {
  return tl::unexpected<Error>(Error{std::move(what), std::move(where), std::move(todo)});
}

inline tl::unexpected<Error> fail_io(std::string what, std::string where = {}) {
  return tl::unexpected<Error>(Error{std::move(what), std::move(where), {}, ErrorKind::io});
}

inline tl::unexpected<Error> fail_checksum(std::string what, std::string where) {
  return tl::unexpected<Error>(Error{std::move(what), std::move(where), {}, ErrorKind::bad_checksum});
}

}  // namespace ptxkit
