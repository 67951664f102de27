data = dict(
    videos_per_gpu=8,
    workers_per_gpu=2,
    train=dict(
        type='VideoDataset',
        ann_file='data/kinetics400/kinetics400_train_list_videos.txt',
        img_prefix='data/kinetics400/videos_train',
        input_format='NCTHW',
        num_segments=1, new_length=32, new_step=2,
        use_decord=False,
        ...
