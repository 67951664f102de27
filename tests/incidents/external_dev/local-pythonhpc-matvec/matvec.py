@cuda.jit('void(float64[:,:], float64[:], float64[:])')
def matvec_v1(A, x, y):
    i = cuda.grid(1)
    if i < A.shape[0]:
        s = 0.
        for j in range(A.shape[1]):
            s += A[i, j] * x[j]
        y[i] = s

A = np.random.random((16384, 16384))        # default order
