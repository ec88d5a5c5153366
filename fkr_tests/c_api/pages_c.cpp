#include <ptxkit.h>

#include "fkr_tests/c_api/pages.hpp"

int main() {
  auto raw = pages();
  ptxkit_context_options settings = PTXKIT_CONTEXT_OPTIONS_DEFAULTS;
  settings.policy = PTXKIT_POLICY_CPU;
  settings.cpu_threads = 1;
  ptxkit_context* context = nullptr;
  if (ptxkit_context_create(&settings, &context) != PTXKIT_OK) return 1;
  const size_t room = kPageBytes + kPageBytes / 255 + 16;
  std::vector<uint8_t> packed(kPages * room), back(kPages * kPageBytes);
  std::vector<const void*> inputs, blocks;
  std::vector<void*> outputs, backs;
  for (size_t i = 0; i < kPages; ++i) {
    inputs.push_back(raw[i].data());
    blocks.push_back(packed.data() + i * room);
    outputs.push_back(packed.data() + i * room);
    backs.push_back(back.data() + i * kPageBytes);
  }
  const std::vector<size_t> raw_bytes(kPages, kPageBytes), rooms(kPages, room);
  std::vector<size_t> sizes(kPages), back_bytes(kPages);
  for (int round = 0; round < kRounds; ++round) {
    if (ptxkit_compress_batch(context, nullptr, inputs.data(), raw_bytes.data(), kPages, outputs.data(), rooms.data(),
                              sizes.data(), nullptr) != PTXKIT_OK ||
        ptxkit_decompress_batch(context, nullptr, blocks.data(), sizes.data(), kPages, backs.data(), raw_bytes.data(),
                                back_bytes.data(), nullptr) != PTXKIT_OK)
      return 1;
  }
  ptxkit_context_destroy(context);
  return back_bytes == raw_bytes ? 0 : 1;
}
