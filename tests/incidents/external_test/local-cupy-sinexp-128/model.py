import numpy as np
import cupy as cu
from cupy.fft import fft2, ifftshift, fftshift

x = cu.linspace(-1, 1, 128)
y = cu.linspace(-1, 1, 128)
xx, yy = cu.meshgrid(x, y)
rho, phi = cu.sqrt(xx**2 + yy**2), cu.arctan2(yy, xx)

def run(coefs):
    phase = 0
    for c, m, n in coefs:              # ~60 terms
        phase = phase + c * cu.sin(m * phi) * rho ** n
    p = cu.exp(1j * 2 * np.pi * phase)
    prop = fftshift(fft2(ifftshift(p)))
    return abs(prop) ** 2
