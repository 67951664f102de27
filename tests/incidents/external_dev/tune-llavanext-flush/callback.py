class CacheClearingCallback(TrainerCallback):
    def __init__(self):
        pass
    def on_step_end(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            torch.cuda.empty_cache()
            print(f"Cache cleared ")
