import jax

jax.distributed.initialize(coordinator_address="host0:30000", num_processes=2, process_id=0)
print(jax.device_count())
print(jax.local_device_count())

xs = jax.numpy.ones(jax.local_device_count())
print(jax.pmap(lambda x: jax.lax.psum(x, 'i'), axis_name='i')(xs))
