/* A cache of memory pages: a thousand pages are compressed in one call, kept at their size, and read back.
   cc -std=c99 page_cache.c $(pkg-config --cflags --libs ptxkit) */
#include <ptxkit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kPages = 1000, kPageBytes = 4096 };

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, ptxkit_last_error());
  return 1;
}

int main(void) {
  static unsigned char pages[kPages][kPageBytes], back[kPages][kPageBytes];
  ptxkit_context* context;
  ptxkit_batch_options options = PTXKIT_BATCH_OPTIONS_DEFAULTS;
  const void* inputs[kPages];
  void* outputs[kPages];
  size_t input_bytes[kPages], capacities[kPages], sizes[kPages], bound, total = 0, i, k;
  unsigned char* rooms;

  for (i = 0; i < kPages; ++i) /* pages of zeros, of one byte, of counters */
    for (k = 0; k < kPageBytes; ++k) pages[i][k] = (unsigned char)(i % 3 == 0 ? 0 : i % 3 == 1 ? 0xff : k / 16 * i);

  if (ptxkit_context_create(NULL, &context)) return failed("create");
  options.framing = PTXKIT_FRAMING_STORED; /* never more than a byte over the page */
  if (ptxkit_compress_bound(&options, kPageBytes, &bound)) return failed("bound");
  rooms = malloc(kPages * bound);
  if (rooms == NULL) return 1;
  for (i = 0; i < kPages; ++i) {
    inputs[i] = pages[i];
    input_bytes[i] = kPageBytes;
    outputs[i] = rooms + i * bound;
    capacities[i] = bound;
  }
  if (ptxkit_compress_batch(context, &options, inputs, input_bytes, kPages, outputs, capacities, sizes, NULL))
    return failed("compress");

  for (i = 0; i < kPages; ++i) {
    total += sizes[i];
    inputs[i] = outputs[i];
    input_bytes[i] = sizes[i];
    outputs[i] = back[i];
    capacities[i] = kPageBytes; /* of stored items, exactly the raw size */
  }
  if (ptxkit_decompress_batch(context, &options, inputs, input_bytes, kPages, outputs, capacities, sizes, NULL))
    return failed("decompress");
  if (memcmp(pages, back, sizeof pages) != 0) return puts("the pages differ"), 1;
  printf("%d pages of %d bytes kept in %zu bytes\n", kPages, kPageBytes, total);
  free(rooms);
  ptxkit_context_destroy(context);
  return 0;
}
