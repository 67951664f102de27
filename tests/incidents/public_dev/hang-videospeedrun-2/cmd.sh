docker run --gpus all --rm -it video-diffusion /bin/bash
torchrun --nproc_per_node=8 train.py
