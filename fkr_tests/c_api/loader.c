/* A program that opens the library at run time, twice, closes it, opens it again, and forks.
   usage: loader LIBRARY */
#include <dlfcn.h>
#include <ptxkit.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition) \
  if (!(condition)) return printf("FAILED: %s\n", #condition), 1

static int use(void* library) {
  ptxkit_status (*create)(const ptxkit_context_options*, ptxkit_context**);
  ptxkit_status (*bound_of)(const ptxkit_batch_options*, size_t, size_t*);
  void (*destroy)(ptxkit_context*);
  ptxkit_context_options settings = PTXKIT_CONTEXT_OPTIONS_DEFAULTS;
  ptxkit_context* context = NULL;
  size_t bound = 0;
  settings.policy = PTXKIT_POLICY_CPU;
  settings.cpu_threads = 3;
  *(void**)&create = dlsym(library, "ptxkit_context_create");
  *(void**)&bound_of = dlsym(library, "ptxkit_compress_bound");
  *(void**)&destroy = dlsym(library, "ptxkit_context_destroy");
  CHECK(create && destroy && bound_of && create(&settings, &context) == PTXKIT_OK);
  CHECK(bound_of(NULL, 4096, &bound) == PTXKIT_OK && bound > 4096);
  destroy(context);
  return 0;
}

int main(int count, char** words) {
  void *first, *second;
  pid_t child;
  int status = 0, round;
  CHECK(count == 2);
  first = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  second = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (first == NULL || second == NULL) return printf("FAILED: %s\n", dlerror()), 1;
  CHECK(use(first) == 0 && use(second) == 0);
  child = fork();
  if (child == 0) _exit(use(first));
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(dlclose(first) == 0 && use(second) == 0 && dlclose(second) == 0);
  for (round = 0; round < 20; ++round) {
    void* again = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(again != NULL && use(again) == 0 && dlclose(again) == 0);
  }
  CHECK(dlopen(words[1], RTLD_NOW | RTLD_NOLOAD) == NULL); /* nothing kept it loaded */
  puts("passed");
  return 0;
}
