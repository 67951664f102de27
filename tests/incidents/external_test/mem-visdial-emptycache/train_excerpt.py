    for i, batch in enumerate(tqdm(train_dataloader)):
        for key in batch:
            batch[key] = batch[key].to(device)
        optimizer.zero_grad()
        output = model(batch)
        target = batch["ans_ind"] if config["model"]["decoder"] == "disc" else batch["ans_out"]
        batch_loss = criterion(output.view(-1, output.size(-1)), target.view(-1))
        batch_loss.backward()
        optimizer.step()
        summary_writer.add_scalar("train/loss", batch_loss, global_iteration_step)
        scheduler.step(global_iteration_step)
        global_iteration_step += 1
        torch.cuda.empty_cache()
