// A compressed stream may begin with the size of its content: then the input must hold exactly as many bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "support/result.hpp"

namespace ptxkit::codec {

// Fails once `read_bytes` of the input `name` do not fit what was announced. `has_ended`: there are no more.
inline Result<void> check_announced(const std::optional<uint64_t>& announced, uint64_t read_bytes, bool has_ended,
                                    const std::string& name) {
  if (!announced || (read_bytes <= *announced && !(has_ended && read_bytes < *announced))) return {};
  return fail(fmt::format("the input changed while it was read: expected {} bytes, found {}{}", *announced,
                          read_bytes > *announced ? "at least " : "", read_bytes),
              name, "compress it again when nothing writes to it");
}

}  // namespace ptxkit::codec
