// A byte string is zero if its first byte is zero and every byte equals the one before it: one memcmp of the string
// with itself, shifted by one byte.
#include "kernels/pages/zero_page_reference.hpp"

#include <cstring>

namespace ptxkit::kernels {

bool is_zero(std::span<const uint8_t> bytes) {
  return bytes.empty() || (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

PageFlag zero_page_reference(std::span<const uint8_t> bytes) {
  return is_zero(bytes) ? PageFlag::zero : PageFlag::compressed;
}

}  // namespace ptxkit::kernels
