"""A JAX training loop: a wide MLP in bf16, jitted."""

import time

import jax
import jax.numpy as jnp

WIDTH, LAYERS, BATCH = 4096, 8, 4096
keys = jax.random.split(jax.random.PRNGKey(0), LAYERS + 1)
weights = [jax.random.normal(k, (WIDTH, WIDTH), jnp.bfloat16) * 0.01 for k in keys[:LAYERS]]
x = jax.random.normal(keys[-1], (BATCH, WIDTH), jnp.bfloat16)


def loss(weights: list[jax.Array], x: jax.Array) -> jax.Array:
    for w in weights:
        x = jax.nn.relu(x @ w)
    return (x.astype(jnp.float32) ** 2).mean()


@jax.jit
def step(weights: list[jax.Array], x: jax.Array) -> tuple[list[jax.Array], jax.Array]:
    value, gradient = jax.value_and_grad(loss)(weights, x)
    return [w - 0.01 * g for w, g in zip(weights, gradient, strict=True)], value


begin = time.perf_counter()
for n in range(900):
    weights, value = step(weights, x)
    value.block_until_ready()
    if n % 50 == 49:
        print(f"step {n + 1} loss {float(value):.4f} {(time.perf_counter() - begin) / 50 * 1e3:.2f} ms", flush=True)
        begin = time.perf_counter()
