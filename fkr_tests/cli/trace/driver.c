// A libcuda.so.1 that accepts every module and keeps none, for the test of `ptx-debug trace`.
#include <stddef.h>
#include <string.h>

int cuModuleLoadData(void** module, const void* image) {
  *module = (void*)image;
  return image ? 0 : 1;
}
int cuLibraryLoadData(void** library, const void* code, int* a, void** b, unsigned c, int* d, void** e, unsigned f) {
  (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
  *library = (void*)code;
  return 0;
}
int cuModuleLoad(void** module, const char* path) {
  *module = (void*)path;
  return 0;
}
int cuGetProcAddress_v2(const char* symbol, void** function, int version, unsigned long long flags, int* status) {
  (void)version, (void)flags;
  *status = 0;
  if (!strcmp(symbol, "cuModuleLoadData")) *function = (void*)&cuModuleLoadData;
  if (!strcmp(symbol, "cuLibraryLoadData")) *function = (void*)&cuLibraryLoadData;
  return 0;
}
