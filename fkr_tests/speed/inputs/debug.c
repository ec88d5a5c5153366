// Source of clang.ptx: debug information in sections, calls through .param, recursion, aggregates and function
// pointers.
//   clang-19 --target=nvptx64-nvidia-cuda -march=sm_70 -O0 -g -fdebug-compilation-dir=. -S debug.c -o clang.ptx
#define KERNEL __attribute__((nvptx_kernel))
#define GLOBAL __attribute__((address_space(1)))
#define SHARED __attribute__((address_space(3)))

typedef unsigned int u32;
typedef unsigned long long u64;

struct particle {
  float position[3], velocity[3];
  u32 cell, flags;
};

struct list {
  struct list* next;
  u64 key;
  short small[5];
};

static SHARED float staged[256];
static const double weights[9] = {0.0625, 0.125, 0.0625, 0.125, 0.25, 0.125, 0.0625, 0.125, 0.0625};

static u32 thread(void) {
  return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
}

__attribute__((noinline)) struct particle advance(struct particle p, float step) {
  for (int axis = 0; axis < 3; ++axis) {
    p.position[axis] += step * p.velocity[axis];
    if (p.position[axis] < 0.0f || p.position[axis] > 1.0f) p.velocity[axis] = -p.velocity[axis];
  }
  p.cell = (u32)(p.position[0] * 16.0f) | (u32)(p.position[1] * 16.0f) << 8;
  return p;
}

__attribute__((noinline)) int depth(const struct list* node) {
  return node == 0 ? 0 : 1 + depth(node->next) + node->small[node->key % 5];
}

static int doubled(int x) { return 2 * x; }
static int squared(int x) { return x * x; }

KERNEL void simulate(GLOBAL struct particle* particles, u32 count, float step, int rounds) {
  const u32 i = thread();
  if (i >= count) return;
  struct particle p = particles[i];
  for (int round = 0; round < rounds; ++round) p = advance(p, step);
  particles[i] = p;
}

KERNEL void blur(const GLOBAL float* in, GLOBAL float* out, int width, int height) {
  const int i = (int)thread(), x = i % width, y = i / width;
  double sum = 0;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx)
      if (x + dx >= 0 && x + dx < width && y + dy >= 0 && y + dy < height)
        sum += weights[3 * (dy + 1) + dx + 1] * in[(y + dy) * width + x + dx];
  staged[__nvvm_read_ptx_sreg_tid_x() & 255] = (float)sum;
  __syncthreads();
  out[i] = staged[(__nvvm_read_ptx_sreg_tid_x() + 1) & 255];
}

KERNEL void walk(GLOBAL u64* results, struct list* heads, int which) {
  const u32 i = thread();
  int (*function)(int) = which & 1 ? doubled : squared;
  results[i] = (u64)function(depth(heads + i)) / (heads[i].key | 1);
}
