for i, batch in enumerate(loader):
    loss = model(batch)
    loss.backward()
    if (i + 1) % accum == 0:
        optimizer.synchronize()
        with optimizer.skip_synchronize():
            optimizer.step()
        optimizer.zero_grad()
    if loss.item() < best:
        best = loss.item()
        stats = hvd.allgather(torch.tensor([loss.item(), i]))
