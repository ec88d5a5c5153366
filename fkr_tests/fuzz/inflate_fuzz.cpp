// Fuzzes the scalar Deflate decoder, which is the specification of the kernel. The first byte chooses the framing.
// libdeflate and zlib are the oracles: what the decoder takes, both take with the same bytes, and what it refuses, one
// of them refuses.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "fkr_tests/cases/deflate_verdicts.hpp"
#include "kernels/deflate/inflate_reference.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ptxkit;
  using kernels::DeflateFraming;
  if (size == 0) return 0;
  constexpr std::array kFramings = {DeflateFraming::raw, DeflateFraming::zlib, DeflateFraming::gzip};
  constexpr size_t kRoom = 1 << 16;
  const DeflateFraming framing = kFramings[data[0] % kFramings.size()];
  const std::vector<uint8_t> item(data + 1, data + size);
  std::vector<uint8_t> raw(kRoom);
  const auto outcome = kernels::inflate_reference(item, raw, framing);
  raw.resize(outcome.size_bytes);

  const auto libdeflates = testing::libdeflate_verdict(item, kRoom, framing);
  const auto zlibs = testing::zlib_verdict(item, kRoom, framing);
  const bool is_ok = outcome.status == kernels::BatchStatus::ok;
  if (is_ok == (libdeflates && zlibs) && (!is_ok || (*libdeflates == raw && *zlibs == raw))) return 0;
  std::fprintf(stderr, "framing %u, ours: '%s', %zu bytes; libdeflate %s it, zlib %s it\n",
               static_cast<unsigned>(framing), std::string(outcome.reason).c_str(), raw.size(),
               libdeflates ? "takes" : "refuses", zlibs ? "takes" : "refuses");
  std::abort();
}
