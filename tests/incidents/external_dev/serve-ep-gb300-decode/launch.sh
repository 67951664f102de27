#!/bin/bash
# decode side, 2 nodes x 8 GPUs, GB300 NVL72, DeepSeek-R1-0528-FP4, vLLM v0.17.0
vllm serve $MODEL \
    --pipeline-parallel-size 1 \
    --tensor-parallel-size 1 \
    --data-parallel-size 8 \
    --enable-expert-parallel \
    --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_both"}' \
    --max-num-seqs 64
# with flashinfer_nvlink_one_sided as all2all backend: same tokens/s within noise
# with deepep_low_latency: dies at startup on sm_103
