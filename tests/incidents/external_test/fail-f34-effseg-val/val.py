def val(args, val_loader, model):
    model.eval()
    total_batches = len(val_loader)
    outs = []
    for i, (input, label, size, name) in enumerate(val_loader):
        start_time = time.time()
        with torch.no_grad():
            input_var = Variable(input).cuda()
        output = model(input_var)
        outs.append((output, label))
