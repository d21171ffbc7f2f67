// What a library is made of: a kernel, a function that others call, and one that calls itself.
#ifdef RECURSIVE
__device__ __noinline__ int depth(int n) { return n < 2 ? n : depth(n - 1) + depth(n - 2); }
extern "C" __global__ void recursive(int* out) { out[0] = depth(out[1]); }
#elif defined(FUNCTION)
__device__ float scaled(float x) { return x * 2.5f + 1; }
#else
extern "C" __global__ void kernel(float* out, float x) { out[threadIdx.x] = x; }
#endif
