    __shared__ semaphore bar;                         // shared by both warpgroups
    int tic = 0, toc = 1;
    if (is_producer && warpgroup::laneid() == 0) { init_semaphore(bar, 0, 1); tma::expect_bytes(bar, ...); load(As[tic], 0); load(Bs[tic], 0); }
    __syncthreads();
    for (int tile = 0; tile < num_tiles; ++tile, tic ^= 1, toc ^= 1) {
        wait(bar, tic);                               // arrival of tile
        __syncthreads();
        if (is_producer) {
            if (tile + 1 < num_tiles) { tma::expect_bytes(bar, ...); tma::load_async(As[toc], g.A, {0,0,row,tile+1}, bar); tma::load_async(Bs[toc], g.B, {0,0,tile+1,col}, bar); }
        } else {
            warpgroup::mma_AB(C_accum, As[tic], Bs[tic]);
            warpgroup::mma_async_wait();
        }
        __syncthreads();
    }
