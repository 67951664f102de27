            # VALID
            model.eval()
            for ind in range(len(valid_loader_list)):
                valid_loader = valid_loader_list[ind]
                total_valid_loss, total_valid_cer, total_valid_wer, total_valid_char, total_valid_word = 0, 0, 0, 0, 0
                valid_pbar = tqdm(iter(valid_loader), leave=True, total=len(valid_loader))
                for i, (data) in enumerate(valid_pbar):
                    src, tgt, src_percentages, src_lengths, tgt_lengths = data
                    if constant.USE_CUDA:
                        src = src.cuda(); tgt = tgt.cuda()
                    pred, gold, hyp_seq, gold_seq = model(src, src_lengths, tgt, verbose=False)
                    loss, num_correct = calculate_metrics(pred, gold, input_lengths=src_lengths, target_lengths=tgt_lengths, smoothing=smoothing, loss_type=loss_type)
                    total_valid_loss += loss
