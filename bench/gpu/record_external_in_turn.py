"""Records workloads of families that no other recording holds, each under three sets of profiler options, and every fix in turn.

    python bench/gpu/record_external_in_turn.py OUT_DIR [WORKLOAD ...]

Recording, clocks and what is left in OUT_DIR are those of `record_fixes_in_turn.py`; a trace with stacks that is too large to keep
is left out. The workloads were written before anything was tuned to them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))
import record_fixes_in_turn
from record_clean_and_traced import (
    DEVICE,
    GPU,
    WORKLOADS,
    Mlp,
    Step,
    Vit,
    Workload,
    bf16,
    captured,
    fused,
    learn,
    mean_square,
    recomputing,
    size,
    tf32,
    train,
    workload,
)  # fmt: skip

WORKLOADS.clear()
CLEAN_BLOCKS = 11
BLOCK = 5  # steps between two stops, as many as are traced at a time
SETTLE_STEPS = 24


def options_of(work: Workload, turn: int) -> dict[str, dict[str, bool]]:
    """What people ask the profiler for; the usual one changes from workload to workload."""
    sets: dict[str, dict[str, bool]] = {"cpu+cuda": {}, "shapes": {"record_shapes": True}}
    if turn % 2:
        sets = dict(reversed(sets.items()))
    return sets | {"shapes+stack": {"record_shapes": True, "with_stack": True}}


def _llama(layers: int, width: int, again: bool = False) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = LlamaConfig(
        vocab_size=16000, hidden_size=width, num_hidden_layers=layers, num_attention_heads=width // 64,
        num_key_value_heads=width // 128, intermediate_size=width * 11 // 4, max_position_embeddings=2048,
    )  # fmt: skip
    return recomputing(LlamaForCausalLM(shape).to(DEVICE), again)


# ---------------------------------------------------------------- one fault


class Photos(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Pictures that are turned, tinted and cropped by torch on the host."""

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        side = size(288, 40)
        y, x = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
        photo = torch.stack([((x * (c + 2) + y * (i % 13)) % 256).float() / 255 for c in range(3)])
        turn = torch.tensor([[0.97, 0.2 - (i % 5) / 20, 0.0], [-0.2, 0.97, 0.0]])
        photo = F.grid_sample(
            photo[None], F.affine_grid(turn[None], [1, 3, side, side], align_corners=False), align_corners=False
        )[0]
        photo = (photo * (0.8 + 0.4 * ((i * 7919) % 97) / 97)).clamp(0, 1).pow(1.1)
        crop = side - size(64, 8)
        return (photo[:, :crop, :crop] - 0.45) / 0.22, i % 1000


@workload("input-starved", "ready", every=8)
def photos_by_workers(*fixes: str) -> Step:
    """A vision transformer fed by three worker processes that turn and tint pictures."""
    model = Vit(size(384, 16), size(8, 1), 6 if GPU else 2).to(DEVICE)
    step = train(model, fused(model))
    loader = torch.utils.data.DataLoader(Photos(), batch_size=size(24, 2), num_workers=3, pin_memory=GPU)
    batches = iter(loader)
    kept = [t.to(DEVICE) for t in next(batches)]

    def one(i: int) -> None:
        x, y = kept if "ready" in fixes else (t.to(DEVICE, non_blocking=True) for t in next(batches))
        step(x, y)

    return one


@workload("launch-bound", "graph")
def packed_cells(*fixes: str) -> Step:
    """Sentences of many lengths, packed, walked by a hand-written cell in both directions."""
    width = size(256, 16)
    there, back = nn.LSTMCell(128, width).to(DEVICE), nn.LSTMCell(128, width).to(DEVICE)
    head = nn.Linear(2 * width, 24).to(DEVICE)
    parts = nn.ModuleList([there, back, head])
    optimizer = torch.optim.AdamW(parts.parameters(), lr=1e-4, foreach=True, capturable=GPU)
    lengths = [max(size(40, 4) - k, 3) for k in range(32)]
    x = torch.randn(32, max(lengths), 128, device=DEVICE)
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
    rows = packed.batch_sizes.tolist()
    y = torch.randint(0, 24, (32,), device=DEVICE)

    def walk(cell: nn.LSTMCell, moments: list[torch.Tensor]) -> torch.Tensor:
        h = c = torch.zeros(32, width, device=DEVICE)
        for moment in moments:
            n = len(moment)
            new_h, new_c = cell(moment, (h[:n], c[:n]))
            h, c = torch.cat([new_h, h[n:]]), torch.cat([new_c, c[n:]])
        return h

    def one() -> None:
        optimizer.zero_grad(set_to_none=False)
        moments = list(packed.data.split(rows))
        F.cross_entropy(head(torch.cat([walk(there, moments), walk(back, moments[::-1])], 1)), y).backward()
        optimizer.step()

    run = captured(one) if "graph" in fixes else one
    held = (x, y, packed, parts, optimizer)
    return lambda i: (run(), held)[0]


@workload("launch-bound", "graph")
def experts_one_by_one(*fixes: str) -> Step:
    """Forty experts with fixed room, each a small product of its own."""
    width, experts, layers, room = size(384, 16), size(40, 4), size(3, 1), 32
    gates = nn.ParameterList(nn.Parameter(torch.randn(width, experts) * 0.02) for _ in range(layers))
    up = nn.ParameterList(nn.Parameter(torch.randn(experts, width, width) * 0.02) for _ in range(layers))
    model = nn.ModuleList([gates, up]).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True, capturable=GPU)
    x0 = torch.randn(experts * room, width, device=DEVICE)

    def one() -> None:
        optimizer.zero_grad(set_to_none=False)
        x = x0
        for gate, weight in zip(gates, up, strict=True):
            score = (x @ gate).softmax(-1)
            order = score[:, 0].argsort()
            packed = x[order].view(experts, room, width)
            made = torch.cat([F.silu(packed[e] @ weight[e]) for e in range(experts)])
            x = x + torch.zeros_like(x).index_copy(0, order, made) * score.amax(-1, keepdim=True)
        x.square().mean().backward()
        optimizer.step()

    run = captured(one) if "graph" in fixes else one
    held = (x0, model, optimizer)
    return lambda i: (run(), held)[0]


@workload("input-starved|host-work-unattributed", "ready", stack=True)
def bags_on_host(*fixes: str) -> Step:
    """A recommender whose frozen tables lie in the host's memory and are summed there."""
    tables = [nn.EmbeddingBag(size(200000, 100), 64, mode="sum").requires_grad_(False) for _ in range(12)]
    asked = torch.randint(0, size(200000, 100), (size(1024, 8), 24))
    model = nn.Sequential(nn.Linear(768, size(1024, 16)), Mlp(size(1024, 16), size(6, 1)), nn.Linear(size(1024, 16), 1))
    model = model.to(DEVICE)
    optimizer = fused(model)
    clicked = torch.rand(len(asked), device=DEVICE)

    def features() -> torch.Tensor:
        return torch.cat([table(asked) for table in tables], 1).to(DEVICE)

    kept = features()

    def one(i: int) -> None:
        x = kept if "ready" in fixes else features()
        learn(
            optimizer, lambda: model(x), lambda out: F.binary_cross_entropy_with_logits(out.float().flatten(), clicked)
        )

    return one


class Noised(nn.Module):
    """A stage of a denoiser: group norms, a time embedding, convolutions, attention over places."""

    def __init__(self, c: int, seen: bool) -> None:
        super().__init__()
        self.one, self.two = nn.GroupNorm(8, c), nn.GroupNorm(8, c)
        self.first, self.second = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
        self.moment, self.qkv = nn.Linear(c, c), nn.Conv2d(c, 3 * c, 1) if seen else None

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        h = self.first(F.silu(self.one(x))) + self.moment(t)[:, :, None, None]
        x = x + self.second(F.silu(self.two(h)))
        if self.qkv is not None:
            q, k, v = self.qkv(x).flatten(2).transpose(1, 2).chunk(3, -1)
            x = x + F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0].transpose(1, 2).view_as(x)
        return x


@workload("precision-headroom|tensor-cores-unused|layout-copies|elementwise-unfused", "bf16")
def denoiser_tf32(*fixes: str) -> Step:
    """A denoiser of pictures in fp32 with TF32."""
    c = size(192, 8)
    stages = nn.ModuleList(Noised(c, k % 2 == 1) for k in range(size(8, 2))).to(DEVICE)
    into, out = nn.Conv2d(4, c, 3, padding=1).to(DEVICE), nn.Conv2d(c, 4, 3, padding=1).to(DEVICE)
    optimizer = fused(nn.ModuleList([stages, into, out]))
    x, t = torch.randn(size(24, 2), 4, size(48, 8), size(48, 8), device=DEVICE), torch.randn(size(24, 2), c).to(DEVICE)

    def one(i: int) -> None:
        tf32(True)
        optimizer.zero_grad(set_to_none=True)
        with bf16("bf16" in fixes):
            h = into(x)
            for stage in stages:
                h = stage(h, t)
            noise = out(h)
        F.mse_loss(noise.float(), x).backward()
        optimizer.step()

    return one


class Lora(nn.Module):
    """A frozen product with a narrow trained one beside it."""

    def __init__(self, frozen: nn.Linear, rank: int = 8) -> None:
        super().__init__()
        self.frozen = frozen.requires_grad_(False)
        self.down = nn.Linear(frozen.in_features, rank, bias=False)
        self.up = nn.Linear(rank, frozen.out_features, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.frozen(x) + 2.0 * self.up(self.down(x))


@workload("recompute-unneeded", "keep")
def lora_again(*fixes: str) -> Step:
    """A library's decoder tuned through narrow products, with gradient checkpointing that nobody needs."""
    model = _llama(size(8, 1), size(1024, 128), again="keep" not in fixes).requires_grad_(False)
    for layer in model.model.layers:  # type: ignore[union-attr]
        layer.self_attn.q_proj, layer.self_attn.v_proj = (
            Lora(layer.self_attn.q_proj).to(DEVICE), Lora(layer.self_attn.v_proj).to(DEVICE)
        )  # fmt: skip
    model.enable_input_require_grads()  # type: ignore[operator]
    model.train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4, fused=True)
    ids = torch.randint(0, 16000, (size(8, 1), size(512, 16)), device=DEVICE)

    def one(i: int) -> None:
        learn(optimizer, lambda: model(input_ids=ids, labels=ids, use_cache=False).loss, lambda loss: loss)

    return one


@workload("host-sync|launch-bound", "kept")
def tokens_with_stop(*fixes: str) -> Step:
    """A library's decoder writes sixteen tokens with its own cache, and asks after each whether all are done."""
    model = _llama(size(10, 1), size(768, 128)).to(torch.bfloat16).eval()
    ids = torch.randint(0, 16000, (size(8, 1), size(64, 4)), device=DEVICE)

    @torch.no_grad()
    def one(i: int) -> None:
        past, last = None, ids
        done = torch.zeros(len(ids), dtype=torch.bool, device=DEVICE)
        for _ in range(size(16, 3)):
            out = model(input_ids=last, past_key_values=past, use_cache=True)
            past, last = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)
            done |= last[:, 0] < 0
            if "kept" not in fixes and bool(done.all()):
                break

    return one


@workload("host-work-unattributed|input-starved|host-sync", "ready", stack=True)
def poles_on_host(*fixes: str) -> Step:
    """Reinforcement: poles are balanced by numpy on the host, a policy on the device acts, then learns."""
    width, poles = size(512, 16), size(4096, 16)
    policy = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2))
    policy = policy.to(DEVICE)
    optimizer = fused(policy)
    rng = np.random.default_rng(0)
    state = rng.normal(0, 0.05, (poles, 4)).astype(np.float32)
    kept = [torch.from_numpy(state).to(DEVICE) for _ in range(12)]

    def moved(state: np.ndarray[Any, Any], push: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        x, v, angle, spin = state.T
        for _ in range(4):
            sin, cos = np.sin(angle), np.cos(angle)
            force = (10.0 * (2 * push - 1) + 0.05 * spin**2 * sin) / 1.1
            turn = (9.8 * sin - cos * force) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
            x, v, angle, spin = x + 0.005 * v, v + 0.005 * force, angle + 0.005 * spin, spin + 0.005 * turn
        fell = (np.abs(angle) > 0.2) | (np.abs(x) > 2.4)
        return np.where(fell[:, None], 0.01, np.stack([x, v, angle, spin], 1)).astype(np.float32)

    def one(i: int) -> None:
        nonlocal state
        seen, chosen = [], []
        for k in range(12):
            x = kept[k] if "ready" in fixes else torch.from_numpy(state).to(DEVICE)
            with torch.no_grad():
                push = torch.distributions.Categorical(logits=policy(x), validate_args=False).sample()
            if "ready" not in fixes:
                state = moved(state, push.cpu().numpy())
            seen.append(x)
            chosen.append(push)
        optimizer.zero_grad(set_to_none=True)
        logits = policy(torch.cat(seen))
        F.cross_entropy(logits, torch.cat(chosen)).backward()
        optimizer.step()

    return one


# ---------------------------------------------------------------- two faults


@workload("allocator-churn,host-sync", "cached", "kept")
def boxes_and_cache(*fixes: str) -> Step:
    """Two faults: a detector empties the allocator's cache after each step, and reads the best place of every map."""
    c = size(96, 8)
    body = nn.Sequential(
        nn.Conv2d(3, c, 7, 4, 3), *(m for _ in range(size(10, 1)) for m in (nn.Conv2d(c, c, 3, padding=1), nn.ReLU()))
    ).to(DEVICE)
    heads = nn.ModuleList(nn.Conv2d(c, 6, 1) for _ in range(size(12, 2))).to(DEVICE)
    optimizer = fused(nn.ModuleList([body, heads]))
    side = size(320, 32)
    x = torch.randn(size(16, 1), 3, side, side, device=DEVICE)

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        with bf16():
            maps = body(x)
            made = [head(maps) for head in heads]
        loss = torch.stack([m.float().square().mean() for m in made]).sum()
        loss.backward()
        optimizer.step()
        if "kept" not in fixes:
            [int(m[:, k].argmax()) for m in made for k in range(2)]
        if "cached" not in fixes and GPU:
            torch.cuda.empty_cache()

    return one


@workload("tensor-cores-unused,optimizer-unfused|launch-bound", "bf16", "fused")
def waves_fp32_and_adam(*fixes: str) -> Step:
    """Two faults: a stack of gated 1-D convolutions in fp32 without TF32, and Adam that walks its parameters."""
    c = size(512, 8)
    layers = nn.ModuleList(
        nn.ModuleList([nn.Conv1d(c, 2 * c, 3, padding=1), nn.Conv1d(c, c, 1), nn.GroupNorm(1, c)])
        for _ in range(size(16, 2))
    ).to(DEVICE)
    options = {"fused": True} if "fused" in fixes else {"foreach": False}
    optimizer = torch.optim.Adam(layers.parameters(), lr=1e-4, **options)
    x = torch.randn(size(8, 1), c, size(1024, 32), device=DEVICE)

    def one(i: int) -> None:
        tf32(False)
        optimizer.zero_grad(set_to_none=True)
        h = x
        with bf16("bf16" in fixes):
            for wide, narrow, norm in layers:
                h = h + narrow(F.glu(wide(norm(h)), 1))
        h.float().square().mean().backward()
        optimizer.step()

    return one


@workload("h2d-copy-exposed,host-work-unattributed", "pinned", "no_text", stack=True)
def frames_and_captions(*fixes: str) -> Step:
    """Two faults: frames cross from pageable memory, and captions are counted in plain Python after each step."""
    frames = torch.randint(0, 255, (size(24, 1), 8, 3, size(160, 16), size(160, 16)), dtype=torch.uint8)
    frames = frames.pin_memory() if "pinned" in fixes and GPU else frames
    c = size(128, 8)
    model = nn.Sequential(
        nn.Conv3d(3, c, (2, 4, 4), (2, 4, 4)), nn.ReLU(), nn.Conv3d(c, c, 3, padding=1), nn.ReLU(),
        nn.Conv3d(c, c, 3, 2, padding=1), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(c, 64),
    ).to(DEVICE)  # fmt: skip
    optimizer = fused(model)
    y = torch.randint(0, 64, (len(frames),), device=DEVICE)
    ahead = frames.to(DEVICE)
    lines = [f"a {k % 7} b{k % 31} c{k % 101} somebody walks past number {k}" for k in range(size(1500, 5))]

    def one(i: int) -> None:
        nonlocal ahead
        if "pinned" in fixes:
            x, ahead = ahead, frames.to(DEVICE, non_blocking=True)
        else:
            x = frames.to(DEVICE)
        learn(optimizer, lambda: model(x.transpose(1, 2).float() / 255), lambda out: F.cross_entropy(out.float(), y))
        if "no_text" not in fixes:
            seen: dict[str, int] = {}
            for line in lines:
                for word in line.split():
                    seen[word] = seen.get(word, 0) + 1
            sorted(seen.items(), key=lambda item: -item[1])

    return one


class Neighbours(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Neighbours of a node in a random graph, drawn by numpy."""

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        rng = np.random.default_rng(i)
        found = [i % 100003]
        for width in (12, 12):
            found = [int(n * 31 + k) % 100003 for n in found for k in rng.integers(0, 997, width)]
        kept = np.unique(np.array(found))[:96]
        return torch.from_numpy(np.resize(kept, 96)), torch.from_numpy(rng.normal(size=(96, 64)).astype(np.float32))


@workload("input-starved,optimizer-unfused", "ready", "fused", every=8)
def graph_by_workers(*fixes: str) -> Step:
    """Two faults: neighbours are drawn by two worker processes, and Adam walks the parameters of a graph network."""
    width = size(256, 16)
    layers = nn.ModuleList(
        nn.ModuleList([nn.Linear(width, width), nn.Linear(width, width), nn.LayerNorm(width)])
        for _ in range(size(14, 1))
    )
    into = nn.Linear(64, width)
    model = nn.ModuleList([layers, into]).to(DEVICE)
    options = {"fused": True} if "fused" in fixes else {"foreach": False}
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, **options)
    batches = iter(torch.utils.data.DataLoader(Neighbours(), batch_size=size(96, 2), num_workers=2, pin_memory=GPU))
    kept = [t.to(DEVICE) for t in next(batches)]

    def one(i: int) -> None:
        nodes, x = kept if "ready" in fixes else (t.to(DEVICE, non_blocking=True) for t in next(batches))
        optimizer.zero_grad(set_to_none=True)
        h, goes = into(x), (nodes % 96)[..., None].expand(-1, -1, width)
        for own, other, norm in layers:
            h = norm(h + F.relu(own(h) + other(torch.zeros_like(h).scatter_add(1, goes, h) / 96)))
        h.square().mean().backward()
        optimizer.step()

    return one


# ---------------------------------------------------------------- where time is left


@workload("allocator-churn", "cached")
def lengths_and_cache(*fixes: str) -> Step:
    """Batches of other lengths from step to step, and a cache emptied against running out of memory."""
    model = nn.Sequential(*(Mlp(size(1024, 16), 2, F.gelu) for _ in range(size(6, 1)))).to(DEVICE)
    optimizer = fused(model)
    batches = [torch.randn(size(4096, 16) + 512 * k, size(1024, 16), device=DEVICE) for k in range(4)]

    def one(i: int) -> None:
        learn(optimizer, lambda: model(batches[i % 4]), mean_square)
        if "cached" not in fixes and GPU:
            torch.cuda.empty_cache()

    return one


@workload("optimizer-unfused|launch-bound", "fused")
def rival_penalty(*fixes: str) -> Step:
    """Two rivals with a penalty on the gradient of one, and optimizers that walk their parameters."""
    width = size(768, 16)

    def rival(into: int, out: int) -> nn.Module:
        return nn.Sequential(nn.Linear(into, width), *(m for _ in range(size(8, 1)) for m in (nn.SiLU(), nn.Linear(width, width))),
                             nn.SiLU(), nn.Linear(width, out)).to(DEVICE)  # fmt: skip

    maker, judge = rival(64, 256), rival(256, 1)
    options = {"fused": True} if "fused" in fixes else {"foreach": False}
    one_opt, two_opt = (torch.optim.Adam(m.parameters(), lr=1e-4, **options) for m in (maker, judge))
    real, seed = torch.randn(512, 256, device=DEVICE), torch.randn(512, 64, device=DEVICE)

    def one(i: int) -> None:
        two_opt.zero_grad(set_to_none=True)
        mixed = (0.5 * real + 0.5 * maker(seed).detach()).requires_grad_(True)
        told = judge(mixed)
        slope = torch.autograd.grad(told.sum(), mixed, create_graph=True)[0]
        ((slope.norm(dim=1) - 1).square().mean() + judge(maker(seed).detach()).mean() - judge(real).mean()).backward()
        two_opt.step()
        one_opt.zero_grad(set_to_none=True)
        (-judge(maker(seed)).mean()).backward()
        one_opt.step()

    return one


record_fixes_in_turn.options_of = options_of
record_fixes_in_turn.CLEAN_BLOCKS, record_fixes_in_turn.BLOCK = CLEAN_BLOCKS, BLOCK
record_fixes_in_turn.SETTLE_STEPS = SETTLE_STEPS

if __name__ == "__main__":
    record_fixes_in_turn.main()
