// The match finder of the F081 story, with its bug: a word is read at a byte position.
extern "C" __global__ void __launch_bounds__(32) find_matches(const unsigned char* page, unsigned* hashes) {
  __shared__ __align__(16) unsigned char staged[4096];
#pragma unroll 1
  for (unsigned i = threadIdx.x; i < 4096; i += 32) staged[i] = page[i];
  __syncthreads();
  if (threadIdx.x != 0) return;
  unsigned count = 0;
#pragma unroll 1
  for (unsigned position = 0; position + 12 <= 4096; position += 3) {
    const unsigned word = *reinterpret_cast<const unsigned*>(staged + position);  // error 716 from the second turn on
    hashes[count++] = word * 2654435761u >> 20;
  }
}
