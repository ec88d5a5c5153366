// The host's 16-bit floating point (IEEE 754 binary16), for conversions only.
#pragma once

namespace ptxkit {

#if defined(__aarch64__)
using Half = __fp16;  // GCC 12 has no _Float16 in C++ there
#else
using Half = _Float16;
#endif

}  // namespace ptxkit
