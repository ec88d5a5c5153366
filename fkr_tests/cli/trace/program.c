// Loads files into a driver in every way that programs do. usage: trace_program LIBCUDA WAY FILE...; WAY is linked (a
// function of the global scope), dlsym, runtime (cuGetProcAddress), wrapper (a fat binary in its C structure) or file.
// Behind --then stands the program that replaces this one.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int LoadData(void** module, const void* image);
typedef int Load(void** module, const char* path);
typedef int LibraryLoad(void**, const void*, int*, void**, unsigned, int*, void**, unsigned);
typedef int GetProcAddress(const char*, void**, int, unsigned long long, int*);

static char* content(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  char* bytes = calloc(1, 1 << 20);
  if (fread(bytes, 1, (1 << 20) - 1, file) == 0) printf("empty %s\n", path);
  fclose(file);
  return bytes;
}

int main(int argc, char** argv) {
  void* driver = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (!driver) return fprintf(stderr, "%s\n", dlerror()), 1;
  const char* way = argv[2];
  for (int i = 3; i < argc; ++i) {
    if (!strcmp(argv[i], "--then")) return execv(argv[i + 1], argv + i + 1);
    void* module = NULL;
    char* bytes = content(argv[i]);
    int code = 1;
    if (!strcmp(way, "linked")) {
      code = ((LoadData*)dlsym(RTLD_DEFAULT, "cuModuleLoadData"))(&module, bytes);
    } else if (!strcmp(way, "dlsym")) {
      code = ((LoadData*)dlsym(driver, "cuModuleLoadData"))(&module, bytes);
    } else if (!strcmp(way, "file")) {
      code = ((Load*)dlsym(driver, "cuModuleLoad"))(&module, argv[i]);
    } else {
      void* function = NULL;
      int status = 0;
      ((GetProcAddress*)dlsym(driver, "cuGetProcAddress_v2"))("cuLibraryLoadData", &function, 12000, 0, &status);
      struct {
        unsigned magic, version;
        const void* data;
        void* file;
      } wrapper = {0x466243b1, 1, bytes, NULL};
      code = ((LibraryLoad*)function)(&module, strcmp(way, "wrapper") ? (void*)bytes : &wrapper, NULL, NULL, 0, NULL,
                                      NULL, 0);
    }
    printf("%s: %d\n", argv[i], code);
    free(bytes);
  }
  return argc == 3 ? 5 : 0;
}
