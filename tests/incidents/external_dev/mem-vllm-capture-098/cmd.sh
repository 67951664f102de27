vllm serve ./Qwen3.8-27B-NVFP4 --gpu-memory-utilization 0.98 --max-model-len 131072 --max-num-seqs 4
# RTX 5090 mobile 24 GB, headless, nvidia-smi before: 2MiB / 24463MiB
# the same with --enforce-eager starts and serves
