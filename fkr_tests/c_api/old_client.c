/* A program that was compiled with the header of 0.1 runs with the library of today. */
#include <stdio.h>
#include <string.h>

#include "ptxkit_0_1.h"

#define CHECK(condition) \
  if (!(condition)) return printf("FAILED: %s: %s\n", #condition, ptxkit_last_error()), 1

static const char kText[] = "the same words, the same words, the same words, the same words, the same words";

int main(void) {
  ptxkit_context_options settings = PTXKIT_CONTEXT_OPTIONS_DEFAULTS;
  ptxkit_context* context;
  settings.policy = PTXKIT_POLICY_CPU;
  CHECK(ptxkit_context_create(&settings, &context) == PTXKIT_OK);
  for (uint32_t framing = PTXKIT_FRAMING_RAW; framing <= PTXKIT_FRAMING_STORED; ++framing) {
    ptxkit_batch_options options = PTXKIT_BATCH_OPTIONS_DEFAULTS;
    char packed[256], back[sizeof kText];
    const void* input = kText;
    void* output = packed;
    size_t input_bytes = sizeof kText, capacity = sizeof packed, used = 0, bound = 0;
    ptxkit_status status = 1;
    options.framing = framing;
    CHECK(ptxkit_compress_bound(&options, sizeof kText, &bound) == PTXKIT_OK && bound <= sizeof packed);
    CHECK(ptxkit_compress_batch(context, &options, &input, &input_bytes, 1, &output, &capacity, &used, &status) ==
              PTXKIT_OK &&
          status == PTXKIT_OK && used < sizeof kText);
    input = packed;
    input_bytes = used;
    output = back;
    capacity = sizeof back;
    CHECK(ptxkit_decompress_batch(context, &options, &input, &input_bytes, 1, &output, &capacity, &used, NULL) ==
          PTXKIT_OK);
    CHECK(used == sizeof kText && memcmp(back, kText, sizeof kText) == 0);
  }
  {
    ptxkit_codec codec;
    ptxkit_codec_info info;
    info.struct_bytes = sizeof info;
    CHECK(ptxkit_codec_find("lzr", &codec) == PTXKIT_OK);
    CHECK(ptxkit_codec_query(codec, &info) == PTXKIT_OK && strcmp(info.name, "lzr") == 0);
    CHECK(ptxkit_codec_find("none", &codec) == PTXKIT_INVALID_VALUE && strstr(ptxkit_last_error(), "none"));
  }
  ptxkit_context_destroy(context);
  puts("passed");
  return 0;
}
