ds = load_dataset('parquet', data_files=files, streaming=True)['train']   # 7 files
ds = split_dataset_by_node(ds, rank=rank, world_size=2)
loader = DataLoader(ds, batch_size=16, num_workers=2)
model = DDP(model)
