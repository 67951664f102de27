import torch
from torch.nn.attention.flex_attention import flex_attention, create_block_mask

B, H, SEQ_LEN, HEAD_DIM = 1, 16, 40320, 2
WINDOW_SIZE = 512


def sliding_window(b, h, q_idx, kv_idx):
    return torch.abs(q_idx - kv_idx) <= WINDOW_SIZE // 2


def make_tensor():
    return torch.ones(B, H, SEQ_LEN, HEAD_DIM, device="cuda", dtype=torch.float16)


q, k, v = make_tensor(), make_tensor(), make_tensor()
block_mask = create_block_mask(sliding_window, B=None, H=None, Q_LEN=SEQ_LEN, KV_LEN=SEQ_LEN, _compile=False)
out = flex_attention(q, k, v, block_mask=block_mask)
