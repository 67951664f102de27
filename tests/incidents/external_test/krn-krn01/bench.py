import math, time
import numpy as np
import cupy as cp
from numba import cuda, vectorize, types

@vectorize([types.float32(types.float32, types.float32, types.float32)], target="cuda")
def nb_function(xx, yy, xy):
    sqrt_term = math.sqrt(max(0., xx * xx - 2. * xx * yy + 4. * xy * xy + yy * yy))
    return .5 * (xx + yy - sqrt_term)

@cp.fuse
def cp_function(xx, yy, xy):
    sqrt_term = cp.sqrt(cp.maximum(0., xx * xx - 2. * xx * yy + 4. * xy * xy + yy * yy))
    return .5 * (xx + yy - sqrt_term)

n = 4048
arrs_np = [np.random.randn(n, n).astype("f4") for _ in range(3)]
nb_in = [cuda.to_device(a) for a in arrs_np]
nb_out = cuda.device_array((n, n), "f4")
cp_in = [cp.asarray(a) for a in arrs_np]
