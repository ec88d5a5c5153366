// Fuzzes typed rANS: any bytes as an item, and any bytes as an array. The first byte selects a layout, the second the
// room of the decoder. With clang: -fsanitize=fuzzer,address; with any compiler: typed_smoke.cpp runs it on seeded
// mutations.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "kernels/abi.hpp"
#include "kernels/typed/typed_format.hpp"
#include "kernels/typed/typed_reference.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ptxkit::kernels;
  if (size < 2) return 0;
  // A copy of the exact size, so that a sanitizer sees an access one byte too far.
  const std::vector<uint8_t> bytes(data + 2, data + size);
  std::vector<uint8_t> room(size_t{512} * data[1]);
  const TypedOutcome decoded = typed_decode_reference(bytes, room);
  const auto layout = static_cast<TypedLayout>(1 + data[0] % kTypedLayouts);
  std::vector<uint8_t> coded(typed_bound(bytes.size(), layout)), back(bytes.size());
  const TypedOutcome encoded = typed_encode_reference(bytes, coded, layout);
  coded.resize(encoded.size_bytes);
  if (decoded.size_bytes <= room.size() && encoded.status == BatchStatus::ok &&
      typed_decode_reference(coded, back) == TypedOutcome{BatchStatus::ok, bytes.size()} && back == bytes) {
    return 0;
  }
  std::fprintf(stderr, "%zu bytes of layout %u do not come back\n", bytes.size(), static_cast<uint32_t>(layout));
  std::abort();
}
