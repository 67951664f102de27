data = dict(samples_per_gpu=32, workers_per_gpu=2, train=dict(type='MixedDataset', cache_files=dict(h36m='h36m.npz', coco='coco.npz', lspet='lspet.npz')))
# resnet50_hmr_pw3d_e50_cache.py
