// C = A B^T on the tensor cores of Blackwell: a 128 x 64 tile in tensor memory, tcgen05.mma, 64 deep a stage.
// A is m x k and B n x k, row by row, sizes multiples of the tile. Compiled and read here; not run by any test.
#include <cstdint>

using half = uint16_t;  // only moved here, never computed with

constexpr int ROWS = 128, COLUMNS = 64, DEPTH = 64, CORE = 64;  // halves in a core matrix: 8 rows of 16 bytes
constexpr uint32_t INSTRUCTION = 1u << 4 | (COLUMNS / 8) << 17 | (ROWS / 16) << 24;  // fp32 out of fp16 and fp16

// Core matrices lie one behind the other along k (128 bytes), rows of them 1 KiB apart; no swizzle.
__device__ uint64_t descriptor(const half* at) {
    uint64_t address = static_cast<uint64_t>(__cvta_generic_to_shared(at));
    return (address & 0x3FFFF) >> 4 | uint64_t(128 >> 4) << 16 | uint64_t(1024 >> 4) << 32 | uint64_t(1) << 46;
}

template <int COUNT> __device__ void stage(half* to, const half* from, int pitch) {
#pragma unroll
    for (int turn = 0; turn < COUNT * DEPTH / 8 / 128; ++turn) {
        int chunk = turn * 128 + threadIdx.x, row = chunk / 8, core = chunk % 8;
        *reinterpret_cast<uint4*>(to + (row / 8 * 8 + core) * CORE + row % 8 * 8) =
            *reinterpret_cast<const uint4*>(from + (size_t)row * pitch + core * 8);
    }
}

__device__ void multiply(uint32_t d, uint64_t a, uint64_t b, int add) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(d),
        "l"(a), "l"(b), "r"(INSTRUCTION), "r"(add)
        : "memory");
}

__device__ void wait(uint32_t barrier, int phase) {
    asm volatile(
        "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra again; }" ::"r"(
            barrier),
        "r"(phase)
        : "memory");
}

extern "C" __global__ void __launch_bounds__(128)
gemm_tcgen05(const half* __restrict__ a, const half* __restrict__ b, float* __restrict__ c, int n, int k) {
    __shared__ alignas(128) half left[ROWS * DEPTH], right[COLUMNS * DEPTH];
    __shared__ alignas(8) uint64_t arrived;
    __shared__ uint32_t tensor;
    const half* rows = a + (size_t)blockIdx.y * ROWS * k;
    const half* columns = b + (size_t)blockIdx.x * COLUMNS * k;
    uint32_t barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&arrived));
    uint32_t holder = static_cast<uint32_t>(__cvta_generic_to_shared(&tensor));
    if (threadIdx.x < 32) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;" ::"r"(holder) : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    }
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
    __syncthreads();
    uint32_t d = tensor;
    int phase = 0;
#pragma unroll 1
    for (int first = 0; first < k; first += DEPTH, phase ^= 1) {
        stage<ROWS>(left, rows + first, k);
        stage<COLUMNS>(right, columns + first, k);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
#pragma unroll
            for (int step = 0; step < DEPTH / 16; ++step)
                multiply(d, descriptor(left + step * 2 * CORE), descriptor(right + step * 2 * CORE), first + step);
            asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier)
                         : "memory");
        }
        wait(barrier, phase);
        __syncthreads();
    }
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    uint32_t lane = d + (threadIdx.x / 32 * 32 << 16);
    float* out = c + ((size_t)blockIdx.y * ROWS + threadIdx.x) * n + blockIdx.x * COLUMNS;
#pragma unroll
    for (int column = 0; column < COLUMNS; column += 8) {
        float r[8];
        asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                     : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]), "=f"(r[4]), "=f"(r[5]), "=f"(r[6]), "=f"(r[7])
                     : "r"(lane + column));
        asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
        *reinterpret_cast<float4*>(out + column) = make_float4(r[0], r[1], r[2], r[3]);
        *reinterpret_cast<float4*>(out + column + 4) = make_float4(r[4], r[5], r[6], r[7]);
    }
    __syncthreads();
    if (threadIdx.x < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" ::"r"(d));
}
