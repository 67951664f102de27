for i, batch in enumerate(dl):          # model is wrapped by DDP
    out = model(**batch)
    loss = out.loss / GRAD_ACC           # GRAD_ACC = 4
    accelerator.backward(loss)
    if (i + 1) % GRAD_ACC == 0:
        optimizer.step(); scheduler.step(); optimizer.zero_grad()
