/* A file to an LZ4 frame and back, within 64 MiB however large it is; progress goes to standard error, and a file named
   STOP in the working folder ends it.
   cc -std=c99 file.c $(pkg-config --cflags --libs ptxkit) && ./a.out INPUT PACKED UNPACKED */
#include <ptxkit.h>
#include <stdio.h>

static void show(void* user, uint64_t raw_bytes, uint64_t stored_bytes) {
  (void)user;
  fprintf(stderr, "%llu raw bytes, %llu stored\n", (unsigned long long)raw_bytes, (unsigned long long)stored_bytes);
}

static int asks_to_stop(void* user) {
  FILE* stop = fopen("STOP", "r");
  (void)user;
  if (stop == NULL) return 0;
  fclose(stop);
  return 1;
}

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, ptxkit_last_error());
  return 1;
}

int main(int count, char** arguments) {
  ptxkit_context* context;
  ptxkit_hooks hooks = PTXKIT_HOOKS_DEFAULTS;
  ptxkit_stream_options options = PTXKIT_STREAM_OPTIONS_DEFAULTS;
  ptxkit_totals there, back;
  int result;

  if (count != 4) return fprintf(stderr, "usage: file INPUT PACKED UNPACKED\n"), 2;
  if (ptxkit_context_create(NULL, &context)) return failed("create");
  hooks.progress = show;
  hooks.is_cancelled = asks_to_stop;
  options.hooks = &hooks;
  options.memory_bytes = 64u << 20;
  result = 0;
  if (ptxkit_compress_file(context, &options, arguments[1], arguments[2], &there)) {
    result = failed("compress");
  } else if (ptxkit_decompress_file(context, &options, arguments[2], arguments[3], &back)) {
    result = failed("decompress");
  } else {
    printf("%llu raw bytes, %llu in the frame\n", (unsigned long long)back.raw_bytes,
           (unsigned long long)there.stored_bytes);
  }
  ptxkit_context_destroy(context);
  return result;
}
