"""GPT-2 answers one prompt after the other with `generate()`, batch 1."""

import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config()).half().cuda().eval()
for n in range(8):
    begin = time.perf_counter()
    prompt = torch.randint(0, 50000, (1, 32), device="cuda")
    model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=64,
        min_new_tokens=64,
        do_sample=False,
        pad_token_id=0,
    )
    torch.cuda.synchronize()
    print(f"prompt {n} {(time.perf_counter() - begin) / 64 * 1e3:.2f} ms a token", flush=True)
