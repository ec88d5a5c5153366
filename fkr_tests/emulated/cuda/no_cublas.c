// Symbols of cuBLAS and the driver that ggml's sources refer to. No operation of ggml_operations.cu calls them.
#include <stdlib.h>
#define NEVER_CALLED(name) \
  void name(void) { abort(); }
NEVER_CALLED(cuGetErrorString)
NEVER_CALLED(cublasGetStatusString)
NEVER_CALLED(cublasCreate_v2)
NEVER_CALLED(cublasGemmStridedBatchedEx)
NEVER_CALLED(cublasSetMathMode)
NEVER_CALLED(cublasSetStream_v2)
NEVER_CALLED(cublasSetWorkspace_v2)
NEVER_CALLED(cublasSgemm_v2)
