python3 -m openrlhf.cli.train_ppo_ray --actor_num_nodes 1 --actor_num_gpus_per_node 8 \
   --ref_num_nodes 1 --ref_num_gpus_per_node 8 --critic_num_nodes 1 --critic_num_gpus_per_node 8 \
   --vllm_num_engines 8 --vllm_tensor_parallel_size 1 --colocate_critic_reward --colocate_actor_ref \
   --pretrain OpenRLHF/Llama-3-8b-sft-mixture --reward_pretrain OpenRLHF/Llama-3-8b-rm-mixture \
   --micro_train_batch_size 8 --train_batch_size 256 --micro_rollout_batch_size 16 --rollout_batch_size 2048 \
   --max_samples 100000 --max_epochs 1 --prompt_max_len 1024 --generate_max_len 1024 --zero_stage 3 --bf16
