CUDA_VISIBLE_DEVICES=0 ./run_translation.py --model_name_or_path t5-large --do_train --source_lang en --target_lang ro \
 --dataset_name wmt16 --dataset_config ro-en --per_device_train_batch_size 4 --num_train_epochs 1 --fp16
