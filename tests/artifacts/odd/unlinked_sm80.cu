// nvcc -arch=sm_80 -rdc=true -cubin: before Hopper, relocations of data have no addends and stand in a section of their own
__shared__ float of_file[256];
extern "C" __global__ void tile_of_file(const float* a, float* b) {
  of_file[threadIdx.x] = a[threadIdx.x]; __syncthreads(); b[threadIdx.x] = of_file[255 - threadIdx.x];
}
extern "C" __global__ void own_tile(const float* a, float* b) {
  __shared__ float t[64];
  t[threadIdx.x] = a[threadIdx.x]; __syncthreads(); b[threadIdx.x] = t[63 - threadIdx.x];
}
extern __device__ int elsewhere(int);
extern "C" __global__ void caller_of_file(int* p) { of_file[threadIdx.x] = 1; p[threadIdx.x] = elsewhere(p[0]); }
