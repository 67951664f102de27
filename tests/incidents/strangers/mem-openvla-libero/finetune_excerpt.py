            normalized_loss = loss / cfg.grad_accumulation_steps
            normalized_loss.backward()
            ...
            if (batch_idx + 1) % cfg.grad_accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
                progress.update()
