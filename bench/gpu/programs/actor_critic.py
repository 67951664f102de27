"""Two networks, two optimizers, an environment on the CPU between them; numbers cross over every step."""

import time

import torch
from torch import nn

torch.manual_seed(0)


def net(out: int) -> nn.Module:
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, out)).cuda()


actor, critic = net(8), net(1)
first, second = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
state = torch.randn(32, 64)
begin = time.perf_counter()
for n in range(800):
    seen = state.cuda()
    policy = torch.distributions.Categorical(logits=actor(seen))
    action = policy.sample()
    state = torch.tanh(state.roll(1, 1) + action.cpu()[:, None] * 0.1)
    reward = state.mean(1).cuda()
    advantage = reward - critic(seen).squeeze(1)
    second.zero_grad()
    advantage.pow(2).mean().backward()
    second.step()
    first.zero_grad()
    (-(policy.log_prob(action) * advantage.detach()).mean()).backward()
    first.step()
    if n % 50 == 49:
        print(
            f"step {n + 1} reward {float(reward.mean()):.3f} {(time.perf_counter() - begin) / 50 * 1e3:.2f} ms",
            flush=True,
        )
        begin = time.perf_counter()
