#define sa4(i,j) sa4[((j)<<5) + (i)]
#define sb4(i,j) sb4[((j)<<5) + (i)]
...
int row = tx & 31, col = tx >> 5;
sa4(row,col) = A(row,col);
sb4(col,row) = B(row,col);
A += (lda<<5); B += 32;
__syncthreads();
for (int inner_k_count = 0; inner_k_count < KS; inner_k_count++)
    tmp += sa4(row,inner_k_count) * sb4(col,inner_k_count);
