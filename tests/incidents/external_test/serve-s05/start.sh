#!/usr/bin/env bash
# single DGX Spark
export PREFIX_CACHE=1 MTP=2 GPU_MEM=0.80
exec vllm serve qwen3.8-flash-hybrid --max-num-batched-tokens 8192 --gpu-memory-utilization $GPU_MEM \
  --speculative-config '{"method":"mtp","num_speculative_tokens":2}' --enable-prefix-caching
# clients: one coding assistant (long answers), two others send ~72k-token repos
