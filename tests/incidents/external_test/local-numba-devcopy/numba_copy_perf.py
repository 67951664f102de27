import numpy as np
from numba import cuda

x = np.arange(int(1024**2) * 128)
d_x = cuda.to_device(x)
y = d_x.copy_to_host()
