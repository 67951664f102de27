import cupy as cp
import nvtx

@cp.fuse
def cp_sum(points):
    return cp.sum(points, axis=1)

@cp.fuse
def f1(points, len1D):
    return cp.sum(points, axis=1) > len1D

@cp.fuse
def f2(points, len1D):
    return cp.sum(points, axis=1) + len1D

if __name__ == "__main__":
    N = 357899
    cp.random.seed(55581)
    points = cp.random.random((N, 2))
    len1D = cp.random.random((N,))
    with nvtx.annotate("warmup"):
        cp_sum(points); f1(points, len1D); f2(points, len1D)
        cp_sum(points) > len1D
    with nvtx.annotate("run"):
        cp_sum(points); f1(points, len1D); f2(points, len1D)
        cp_sum(points) > len1D
