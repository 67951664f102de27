# "finalize" above is this, in inference_engine/__init__.py:
if torch.cuda.is_available():
    torch.cuda.empty_cache()
    gc.collect()
