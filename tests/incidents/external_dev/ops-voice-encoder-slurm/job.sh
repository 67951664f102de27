#!/bin/bash
#SBATCH --cpus-per-task=4
#SBATCH --mem=4G
#SBATCH --gres=gpu:1
#SBATCH --time=7-00:00:00
#SBATCH --output="output.txt"
python encoder_train.py pretrained /home/cjemine/datasets/SV2TTS/encoder --visdom_server="alan-master"
