const uint x = blockIdx.x * blockDim.x + threadIdx.x;
const uint y = blockIdx.y * blockDim.y + threadIdx.y;
for (int i = 0; i < K; ++i) tmp += A[x * K + i] * B[i * N + y];
C[x * N + y] = alpha * tmp + beta * C[x * N + y];
