"""PPO with a vectorised toy environment on the host and a small policy on the device."""

import numpy as np
import torch
from clock import CHANGE, DEVICE, size, steps
from torch import nn

ENVS, T, OBS, ACT, C = size(64, 8), size(8, 4), 24, 6, size(256, 16)


class Worlds:
    def __init__(self):
        self.state = np.zeros((ENVS, OBS), np.float32)
        self.rng = np.random.default_rng(0)
        self.drag = self.rng.normal(size=(OBS, OBS)).astype(np.float32) * 0.05

    def step(self, actions):
        reward = np.zeros(ENVS, np.float32)
        for i in range(ENVS):
            push = np.zeros(OBS, np.float32)
            push[int(actions[i]) :: ACT] = 0.1
            self.state[i] = np.tanh(self.state[i] + self.drag @ self.state[i] + push)
            reward[i] = -float(np.abs(self.state[i]).sum())
        return self.state.copy(), reward


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(OBS, C), nn.Tanh(), nn.Linear(C, C), nn.Tanh())
        self.pi, self.v = nn.Linear(C, ACT), nn.Linear(C, 1)

    def forward(self, x):
        h = self.body(x)
        return self.pi(h), self.v(h).squeeze(-1)


torch.manual_seed(0)
worlds, policy = Worlds(), Policy().to(DEVICE)
run = torch.compile(policy) if CHANGE == "compile" else policy
how = {"fused": True, "foreach": False} if CHANGE == "fused-optimizer" else {"foreach": False}
opt = torch.optim.Adam(policy.parameters(), lr=3e-4, **how)
obs = worlds.state.copy()
for _step in steps():
    seen, acts, olds, rewards = [], [], [], []
    for _ in range(T):
        x = torch.from_numpy(obs).to(DEVICE)
        with torch.no_grad():
            logits, _ = policy(x)
            dist = torch.distributions.Categorical(logits=logits)
            a = dist.sample()
        obs, r = worlds.step(a.cpu().numpy())
        seen.append(x)
        acts.append(a)
        olds.append(dist.log_prob(a))
        rewards.append(torch.from_numpy(r).to(DEVICE))
    x, a, old, r = (torch.cat(z) for z in (seen, acts, olds, rewards))
    for _ in range(4):
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=CHANGE == "bf16-autocast"):
            logits, value = run(x)
        dist = torch.distributions.Categorical(logits=logits.float())
        ratio = (dist.log_prob(a) - old).exp()
        adv = r - value.detach().float()
        loss = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean() + (r - value.float()).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
