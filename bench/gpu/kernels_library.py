"""Library products to profile beside kernels_extra.cu: healthy, thin, and fp32 on CUDA cores.

Run under Nsight Compute by kernels_extra.sh; needs a GPU and torch.
"""

from __future__ import annotations

import torch


def main() -> None:
    """One launch each, after a warm-up outside the profiled range."""
    wide = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    thin = torch.randn(16, 8192, device="cuda", dtype=torch.bfloat16)
    single = torch.randn(4096, 4096, device="cuda")
    double = single.double()
    torch.backends.cuda.matmul.allow_tf32 = False
    for _ in range(2):  # the second turn is the one kept: the first chooses algorithms
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStart()
        torch.mm(wide, wide)  # the tensor roof: healthy
        torch.mm(thin, wide)  # weights stream from DRAM: the memory roof
        torch.mm(single, single)  # tensor-cores-unused
        torch.mm(double[:2048, :2048], double[:2048, :2048])  # fp64 by choice
        torch.softmax(wide, dim=-1)  # the memory roof
        single.cumsum(0)
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStop()


if __name__ == "__main__":
    main()
