        self.pad_crop_shape = [384, 384, 64]
        self.num_workers = 4
        self.train_batch_size = 1
        self.channels = (16, 32, 48, 64, 80, 96)
        self.sliding_window_inferer_roi_size = [384, 384, 64]
        self.attention = True      # deep supervision at every level
