@serve.deployment(num_replicas=1, ray_actor_options={'num_gpus': 1})
class Model:
    @serve.batch(max_batch_size=256, batch_wait_timeout_s=5)
    async def __call__(self, inputs):
        result = self.model.batch_predict(inputs)
        self.logger.info(f'length called: {len(inputs)}')
        return result

# caller: 140 prompts at once
# tasks = [self.model.remote(p) for p in prompts]; await asyncio.gather(*tasks)
