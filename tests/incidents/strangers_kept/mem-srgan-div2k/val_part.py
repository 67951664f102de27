    netG.eval()
    ...
        valing_results = {'mse': 0, 'ssims': 0, 'psnr': 0, 'ssim': 0, 'batch_sizes': 0}
        val_images = []
        for val_lr, val_hr_restore, val_hr in val_bar:
            batch_size = val_lr.size(0)
            valing_results['batch_sizes'] += batch_size
            lr = Variable(val_lr)
            hr = Variable(val_hr)
            sr = netG(lr.cuda())
            batch_mse = ((sr - hr) ** 2).mean()
            valing_results['mse'] += batch_mse * batch_size
            batch_ssim = pytorch_ssim.ssim(sr, hr)
            valing_results['ssims'] += batch_ssim * batch_size
