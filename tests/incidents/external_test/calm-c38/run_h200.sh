#!/bin/bash
#SBATCH --nodes=4
#SBATCH --gpus-per-node=8
#SBATCH --time=04:00:00
set -ex
# if a rank dies: export TORCH_NCCL_ASYNC_ERROR_HANDLING=1; NCCL timeouts show up after 10 min by default
export NCCL_DEBUG=WARN
export PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"   # against fragmentation OOM
CONFIG_FILE=${CONFIG_FILE:-"./torchtitan/models/llama3/train_configs/llama3_8b.toml"}
srun torchrun --nnodes 4 --nproc_per_node 8 --rdzv_backend c10d --rdzv_endpoint $HEAD:29500 \
    -m torchtitan.train --job.config_file $CONFIG_FILE \
    --training.compile \
    --model.converters="float8" \
    --float8.enable_fsdp_float8_all_gather \
    --float8.precompute_float8_dynamic_scale_for_fsdp \
    --float8.force_recompute_fp8_weight_in_bwd \
    --profiling.profile_freq 1000000 \
    --training.steps 2000
