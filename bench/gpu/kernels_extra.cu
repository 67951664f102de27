// Kernels with one planted fault each, to be profiled with Nsight Compute (see kernels_extra.sh).
//
// The planted cause stands in the comment above each kernel. The names say nothing about the cause on purpose: what
// is tested is whether the counters give the answer. Every kernel is launched once, in the order of main().
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                        \
    do {                                                                                                   \
        cudaError_t status = (call);                                                                       \
        if (status != cudaSuccess) {                                                                       \
            std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(status));           \
            std::exit(1);                                                                                  \
        }                                                                                                  \
    } while (0)

// shared-bank-conflicts: all lanes of a warp hit one bank (stride of 32 words).
__global__ void k01_column_walk(float* out, int rounds) {
    __shared__ float tile[32 * 32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) tile[i] = float(i);
    __syncthreads();
    float sum = 0.f;
    for (int r = 0; r < rounds; ++r) sum += tile[lane * 32 + ((warp + r) & 31)];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// the same work with a padded row: no conflicts (healthy twin of k01).
__global__ void k02_column_walk_padded(float* out, int rounds) {
    __shared__ float tile[32 * 33];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int i = threadIdx.x; i < 32 * 33; i += blockDim.x) tile[i] = float(i);
    __syncthreads();
    float sum = 0.f;
    for (int r = 0; r < rounds; ++r) sum += tile[lane * 33 + ((warp + r) & 31)];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// atomic-contention: every thread adds to one of four addresses.
__global__ void k03_count(unsigned* bins, const unsigned* keys, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[keys[i] & 3], keys[i] >> 7);
}

// fp64-in-hot-path: a literal without f turns the loop into doubles.
__global__ void k04_polynomial(float* x, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    for (int r = 0; r < rounds; ++r) v = float(v * 1.0000001 + 0.3333333);
    x[i] = v;
}

// block-imbalance: a few blocks do two hundred times the work of the others.
__global__ void k05_ragged(float* x, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int mine = (blockIdx.x % 132) < 6 ? rounds * 200 : rounds;
    float v = x[i];
    for (int r = 0; r < mine; ++r) v = v * 1.0000001f + 0.5f;
    x[i] = v;
}

// tensor-cores-starved: WMMA straight from global memory, one warp a tile, nothing staged or prefetched.
__global__ void k06_wmma_direct(const half* a, const half* b, float* c, int n) {
    using namespace nvcuda;
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int row = (warp / (n / 16)) * 16, col = (warp % (n / 16)) * 16;
    if (row >= n) return;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
    wmma::fill_fragment(acc, 0.f);
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(fa, a + size_t(row) * n + k, n);
        wmma::load_matrix_sync(fb, b + size_t(k) * n + col, n);
        wmma::mma_sync(acc, fa, fb, acc);
    }
    wmma::store_matrix_sync(c + size_t(row) * n + col, acc, n, wmma::mem_row_major);
}

// L2-absorbed strided access: sectors are wasted, but the working set stays in the caches and the FMAs bound it.
__global__ void k07_strided_small(const float* x, float* out, int words, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.f;
    for (int r = 0; r < rounds; ++r) {
        float v = x[(size_t(i) * 17 + r * 64) % words];
#pragma unroll
        for (int k = 0; k < 96; ++k) sum = sum * 1.0000001f + v;
    }
    out[i] = sum;
}

// a predicated tail: one lane in eight of the last blocks is masked; costs nothing (healthy, DRAM roof).
__global__ void k08_masked_axpy(const float4* x, float4* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 5) {
        float4 v = x[i], w = y[i];
        y[i] = make_float4(v.x * 2.f + w.x, v.y * 2.f + w.y, v.z * 2.f + w.z, v.w * 2.f + w.w);
    }
}

// many registers, no spill, and the FMA pipe full (healthy compute roof at low occupancy).
__global__ void __launch_bounds__(128) k09_wide_accumulate(float* out, int rounds, float seed) {
    float acc[96];
#pragma unroll
    for (int k = 0; k < 96; ++k) acc[k] = seed * k;
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
        for (int k = 0; k < 96; ++k) acc[k] = acc[k] * 1.0000001f + seed;
    }
    float sum = 0.f;
#pragma unroll
    for (int k = 0; k < 96; ++k) sum += acc[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// latency-bound-low-occupancy by shared memory: one block of 128 threads per SM, dependent global loads.
__global__ void k10_pointer_chase(const int* next, int* out, int hops) {
    extern __shared__ int scratch[];
    scratch[threadIdx.x] = threadIdx.x;
    __syncthreads();
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    for (int h = 0; h < hops; ++h) at = next[at];
    out[blockIdx.x * blockDim.x + threadIdx.x] = at + scratch[0];
}

// uncoalesced-access: a naive transpose with column reads far beyond the caches.
__global__ void k11_flip(const float* in, float* out, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    out[size_t(x) * n + y] = in[size_t(y) * n + x];
}

// register-spills: a big per-thread array indexed at run time lives in local memory.
__global__ void k12_lookup(float* out, const int* index, int rounds) {
    float table[128];
    for (int k = 0; k < 128; ++k) table[k] = float(k) * 0.5f + threadIdx.x;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int at = index[i & 1023];
    for (int r = 0; r < rounds; ++r) {
        table[at & 127] += 1.f;
        at = at * 1664525 + 1013904223;
        table[(at >> 8) & 127] += table[at & 127];
    }
    float sum = 0.f;
    for (int k = 0; k < 128; ++k) sum += table[k];
    out[i] = sum;
}

// tensor-cores-unused: fp32 matrix product on CUDA cores with register blocking (a decent SIMT kernel).
__global__ void k13_product(const float* a, const float* b, float* c, int n) {
    __shared__ float ta[64][17], tb[16][64];
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float acc[4][4] = {};
    for (int k0 = 0; k0 < n; k0 += 16) {
        for (int i = threadIdx.x; i < 64 * 16; i += 256) {
            ta[i / 16][i % 16] = a[size_t(blockIdx.y * 64 + i / 16) * n + k0 + i % 16];
            tb[i / 64][i % 64] = b[size_t(k0 + i / 64) * n + blockIdx.x * 64 + i % 64];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) acc[i][j] += ta[ty * 4 + i][k] * tb[k][tx * 4 + j];
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
            c[size_t(blockIdx.y * 64 + ty * 4 + i) * n + blockIdx.x * 64 + tx * 4 + j] = acc[i][j];
}

// warp-divergence: each lane runs its own number of turns.
__global__ void k14_escape(float* out, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i * 1e-6f;
    int mine = (i * 2654435761u) % rounds;
    for (int r = 0; r < mine; ++r) v = sinf(v) + 0.1f;
    out[i] = v;
}

int main() {
    const int n = 4096;
    const size_t words = size_t(n) * n * 4;  // 64 Mi floats
    float *x, *y;
    CHECK(cudaMalloc(&x, words * 4));
    CHECK(cudaMalloc(&y, words * 4));
    CHECK(cudaMemset(x, 1, words * 4));
    CHECK(cudaMemset(y, 0, words * 4));
    int* chain = nullptr;
    const int links = 1 << 26;
    CHECK(cudaMalloc(&chain, size_t(links) * 4));
    {
        int* host = static_cast<int*>(std::malloc(size_t(links) * 4));
        for (int i = 0; i < links; ++i) host[i] = int((i * 2654435761ull + 12345) & (links - 1));
        CHECK(cudaMemcpy(chain, host, size_t(links) * 4, cudaMemcpyHostToDevice));
        std::free(host);
    }

    k01_column_walk<<<132 * 8, 256>>>(y, 20000);
    k02_column_walk_padded<<<132 * 8, 256>>>(y, 20000);
    k03_count<<<132 * 16, 256>>>(reinterpret_cast<unsigned*>(y), reinterpret_cast<unsigned*>(chain), 1 << 25);
    k04_polynomial<<<(1 << 22) / 256, 256>>>(x, 1 << 22, 200);
    k05_ragged<<<132 * 8, 256>>>(x, 200);
    k06_wmma_direct<<<(n / 16) * (n / 16) / 4, 128>>>(reinterpret_cast<half*>(x), reinterpret_cast<half*>(y) + n, y, n);
    k07_strided_small<<<132 * 64, 256>>>(x, y, 1 << 18, 64);
    k08_masked_axpy<<<(1 << 24) / 256, 256>>>(reinterpret_cast<float4*>(x), reinterpret_cast<float4*>(y), 1 << 24);
    k09_wide_accumulate<<<132 * 32, 128>>>(y, 2000, 1.5f);
    CHECK(cudaFuncSetAttribute(k10_pointer_chase, cudaFuncAttributeMaxDynamicSharedMemorySize, 160 * 1024));
    k10_pointer_chase<<<132 * 4, 128, 160 * 1024>>>(chain, reinterpret_cast<int*>(y), 2000);
    k11_flip<<<dim3(8192 / 32, 8192 / 8), dim3(32, 8)>>>(x, y, 8192);
    k12_lookup<<<132 * 16, 256>>>(y, chain, 400);
    k13_product<<<dim3(n / 64, n / 64), 256>>>(x, x + size_t(n) * n, y, n);
    k14_escape<<<132 * 32, 256>>>(y, 4000);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    std::puts("done");
    return 0;
}
