while step < max_steps:
    if token.item() == eos_id:
        break
    codes = predictor_graph.run(hidden, token)      # 15 graph replays
    embeds = sum_codec_embeddings(codes)
    hidden, logits = talker_graph.run(embeds, step)
    token = sample(logits, history)
    history.append(token)
    step += 1
