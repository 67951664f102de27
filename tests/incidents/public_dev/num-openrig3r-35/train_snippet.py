from torch.amp import autocast
...
        with autocast(device_type=str(device)):
            outputs = model(images, metadata)
            loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
