// A CUDA program as nvcc builds it, for cuda_program.sh: kernels in a fat binary, the driver behind the functions of
// cuda.h. usage: saxpy FATBIN linked|looked-up; FATBIN is what nvcc -fatbin makes of this file.
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

extern "C" __global__ void saxpy(float* y, const float* x, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

#include "docs/examples/misaligned_cursor.cu"

#if !defined(__CUDA_ARCH__)

static void check(CUresult code, const char* what) {
  if (code == CUDA_SUCCESS) return;
  fprintf(stderr, "%s: error %d\n", what, code);
  exit(1);
}

static char* content(const char* path) {
  FILE* file = fopen(path, "rb");
  char* bytes = static_cast<char*>(calloc(1, 1 << 20));
  if (file == NULL || fread(bytes, 1, 1 << 20, file) == 0) exit(2);
  fclose(file);
  return bytes;
}

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction function;
  check(cuInit(0), "cuInit");
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  const char* image = content(argv[1]);
  if (argv[2][6] == 0) {
    check(cuModuleLoadFatBinary(&module, image), "cuModuleLoadFatBinary");
  } else {
    CUresult (*load)(CUmodule*, const void*) = NULL;
    check(cuGetProcAddress("cuModuleLoadData", reinterpret_cast<void**>(&load), 12000, 0, NULL), "cuGetProcAddress");
    check(load(&module, image), "cuModuleLoadData");
  }
  check(cuModuleGetFunction(&function, module, "saxpy"), "cuModuleGetFunction");

  const int kCount = 1000;
  float x[kCount], y[kCount], a = 3;
  for (int i = 0; i < kCount; ++i) x[i] = i, y[i] = 2 * i;
  CUdeviceptr device_x, device_y;
  check(cuMemAlloc(&device_x, sizeof x), "cuMemAlloc");
  check(cuMemAlloc(&device_y, sizeof y), "cuMemAlloc");
  check(cuMemcpyHtoDAsync(device_x, x, sizeof x, NULL), "cuMemcpyHtoDAsync");
  check(cuMemcpyHtoDAsync(device_y, y, sizeof y, NULL), "cuMemcpyHtoDAsync");
  int n = kCount;
  void* arguments[] = {&device_y, &device_x, &a, &n};
  check(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL), "cuLaunchKernel");
  check(cuMemcpyDtoHAsync(y, device_y, sizeof y, NULL), "cuMemcpyDtoHAsync");
  check(cuStreamSynchronize(NULL), "cuStreamSynchronize");
  int right = 0;
  for (int i = 0; i < kCount; ++i) right += y[i] == 5.0f * i;
  printf("%d of %d values are right\n", right, kCount);
  return 0;
}

#endif
