"""Records programs as newcomers write them, of kinds that no other recording holds, and every fix in turn.

    python bench/gpu/record_newcomers_in_turn.py OUT_DIR [WORKLOAD ...]

Recording, clocks, sets of options and what is left in OUT_DIR are those of `record_strangers_in_turn.py`. The workloads were
written before anything was tuned to them.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))
import record_fixes_in_turn
import record_strangers_in_turn
from record_clean_and_traced import (
    DEVICE,
    GPU,
    WORKLOADS,
    Attention,
    Feed,
    Mlp,
    Step,
    bf16,
    captured,
    fused,
    learn,
    size,
    tf32,
    workload,
)  # fmt: skip

WORKLOADS.clear()


def walked(parameters: object, one_by_one: bool) -> torch.optim.Optimizer:
    """Adam as one kernel, or as a walk from parameter to parameter."""
    options = {"foreach": False} if one_by_one else {"fused": True}
    return torch.optim.AdamW(parameters, lr=1e-4, **options)  # type: ignore[arg-type]


# ---------------------------------------------------------------- one fault


@workload("host-work-unattributed|host-sync", "no_metrics", stack=True)
def tagger_with_metrics(*fixes: str) -> Step:
    """A library's tagger whose labels are fetched and scored tag by tag in Python after each step."""
    from transformers import DistilBertConfig, DistilBertForTokenClassification

    shape = DistilBertConfig(
        vocab_size=8000, dim=size(512, 64), n_layers=size(6, 1), n_heads=8 if GPU else 2, hidden_dim=size(2048, 64),
        num_labels=9,
    )  # fmt: skip
    model = DistilBertForTokenClassification(shape).to(DEVICE)
    optimizer = fused(model)
    ids = torch.randint(0, 8000, (size(32, 2), size(128, 8)), device=DEVICE)
    tags = ids % 9

    def spans(row: list[int]) -> set[tuple[int, int, int]]:
        found, start = set(), 0
        for k in range(1, len(row) + 1):
            if k == len(row) or row[k] != row[start]:
                found.add((start, k, row[start]))
                start = k
        return found

    def one(i: int) -> None:
        out = learn(
            optimizer,
            lambda: model(input_ids=ids).logits,
            lambda o: F.cross_entropy(o.float().flatten(0, 1), tags.flatten()),
        )
        if "no_metrics" not in fixes:
            said, true = out.argmax(-1).tolist(), tags.tolist()
            hit = sum(len(spans(a) & spans(b)) for a, b in zip(said, true, strict=True))
            hit / max(sum(len(spans(a)) for a in said), 1)

    return one


@workload("optimizer-unfused|launch-bound", "foreach")
def denoiser_with_average(*fixes: str) -> Step:
    """A U-Net for noise in bf16 with a running average of its weights, kept parameter by parameter."""

    class Stage(nn.Module):
        def __init__(self, i: int, o: int, t: int) -> None:
            super().__init__()
            self.one, self.two = nn.GroupNorm(8, i), nn.GroupNorm(8, o)
            self.a, self.b = nn.Conv2d(i, o, 3, padding=1), nn.Conv2d(o, o, 3, padding=1)
            self.t, self.skip = nn.Linear(t, o), nn.Conv2d(i, o, 1)

        def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
            h = self.a(F.silu(self.one(x))) + self.t(F.silu(t))[:, :, None, None]
            return self.skip(x) + self.b(F.silu(self.two(h)))

    c = size(64, 8)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.time = nn.Sequential(nn.Linear(c, 4 * c), nn.SiLU(), nn.Linear(4 * c, 4 * c))
            self.into, self.out = nn.Conv2d(3, c, 3, padding=1), nn.Conv2d(c, 3, 3, padding=1)
            pairs = [(c, c), (c, c), (c, 2 * c), (2 * c, 2 * c), (2 * c, 3 * c), (3 * c, 3 * c)]
            self.down = nn.ModuleList(Stage(i, o, 4 * c) for i, o in pairs)
            self.up = nn.ModuleList(Stage(2 * o, i, 4 * c) for i, o in reversed(pairs))

        def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
            places = torch.outer(t, torch.exp(-torch.arange(c // 2, device=t.device) * 8 / c))
            t = self.time(torch.cat([places.sin(), places.cos()], 1))
            x, kept = self.into(x), []
            for k, stage in enumerate(self.down):
                x = stage(x, t)
                kept.append(x)
                x = F.avg_pool2d(x, 2) if k % 2 and k < 5 else x
            for stage in self.up:
                other = kept.pop()
                x = F.interpolate(x, other.shape[2:]) if x.shape[2:] != other.shape[2:] else x
                x = stage(torch.cat([x, other], 1), t)
            return self.out(x)

    model, average = Net().to(DEVICE), Net().to(DEVICE).requires_grad_(False)
    optimizer = fused(model)
    pictures = torch.randn(size(64, 2), 3, size(32, 16), size(32, 16), device=DEVICE)
    own, others = list(average.parameters()), list(model.parameters())

    def one(i: int) -> None:
        noise, t = torch.randn_like(pictures), torch.rand(len(pictures), device=DEVICE)
        part = t[:, None, None, None]
        learn(
            optimizer,
            lambda: model((1 - part) * pictures + part * noise, t * 1000),
            lambda out: F.mse_loss(out.float(), noise),
        )
        with torch.no_grad():
            if "foreach" in fixes:
                torch._foreach_lerp_(own, others, 0.001)
            else:
                for a, b in zip(own, others, strict=True):
                    a.mul_(0.999).add_(b, alpha=0.001)

    return one


@workload("host-sync", "kept")
def graph_attention(*fixes: str) -> Step:
    """Attention over the edges of a graph, which counts nodes with `.item()` in every layer and keeps edges by a mask."""
    nodes, edges, width, heads = size(20000, 50), size(160000, 200), size(128, 8), 4
    layers = nn.ModuleList(
        nn.ModuleList([nn.Linear(width, width), nn.Linear(width, heads), nn.Linear(width, heads)])
        for _ in range(size(8, 2))
    ).to(DEVICE)
    optimizer = fused(layers)
    x0 = torch.randn(nodes, width, device=DEVICE)
    source, target = torch.randint(0, nodes, (2, edges), device=DEVICE)
    target[0] = nodes - 1

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        x = x0
        for through, mine, yours in layers:
            count = nodes if "kept" in fixes else int(target.max().item()) + 1
            h = through(x)
            score = F.leaky_relu(mine(x)[source] + yours(x)[target], 0.2).exp()
            whole = torch.zeros(count, heads, device=DEVICE).index_add(0, target, score)
            part = score / (whole[target] + 1e-6)
            sent = (h.view(nodes, heads, -1)[source] * part[..., None]).flatten(1)
            x = F.elu(torch.zeros(count, width, device=DEVICE).index_add(0, target, sent)) + x
            if "kept" not in fixes and bool(torch.isnan(x).any()):
                raise ValueError(i)
        x.square().mean().backward()
        optimizer.step()

    return one


@workload("launch-bound", "graph")
def selective_scan(*fixes: str) -> Step:
    """A state-space model whose scan is a loop over time in Python."""
    width, state, length = size(256, 8), 16, size(96, 4)
    layers = nn.ModuleList(
        nn.ModuleList([nn.Linear(width, 2 * width), nn.Linear(width, width + 2 * state), nn.Linear(width, width)])
        for _ in range(size(2, 1))
    ).to(DEVICE)
    rates = nn.Parameter(torch.rand(width, state, device=DEVICE))
    optimizer = torch.optim.AdamW([*layers.parameters(), rates], lr=1e-4, foreach=True, capturable=GPU)
    x0 = torch.randn(16, length, width, device=DEVICE)

    def one() -> None:
        optimizer.zero_grad(set_to_none=False)
        x = x0
        for into, split, out in layers:
            h, gate = into(x).chunk(2, -1)
            pace, b, c = split(h).split([width, state, state], -1)
            pace = F.softplus(pace)
            fade = torch.exp(-pace[..., None] * rates)
            push = (pace * h)[..., None] * b[:, :, None]
            s, ys = torch.zeros_like(push[:, 0]), []
            for t in range(length):
                s = fade[:, t] * s + push[:, t]
                ys.append((s * c[:, t, None]).sum(-1))
            x = x + out(torch.stack(ys, 1) * F.silu(gate))
        x.square().mean().backward()
        optimizer.step()

    run = captured(one) if "graph" in fixes else one
    held = (x0, layers, rates, optimizer)
    return lambda i: (run(), held)[0]


@workload("host-sync", "kept")
def compiled_with_breaks(*fixes: str) -> Step:
    """A compiled model whose blocks ask for a number in the middle, so that the graph breaks in each."""
    width, count = size(512, 32), size(10, 2)

    class Watched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.look, self.feed = Attention(width, 8 if GPU else 2), Feed(width)
            self.largest = 0.0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.look(x)
            if "kept" not in fixes:
                self.largest = max(self.largest, x.detach().abs().max().item())
            return self.feed(x)

    model = nn.Sequential(*(Watched() for _ in range(count))).to(DEVICE)
    blocks = [torch.compile(block) for block in model] if GPU else list(model)
    optimizer = fused(model)
    x = torch.randn(size(16, 1), size(256, 8), width, device=DEVICE)

    def through() -> torch.Tensor:
        h = x
        for block in blocks:
            h = block(h)
        return h

    def one(i: int) -> None:
        learn(optimizer, through, lambda out: out.float().square().mean())

    return one


@workload("host-work-unattributed|host-sync", "device_match", stack=True)
def boxes_matched_on_host(*fixes: str) -> Step:
    """A set detector: for every picture the best assignment of boxes is solved on the host."""
    from scipy.optimize import linear_sum_assignment

    width, asked, batch = size(256, 16), size(100, 6), size(12, 2)
    look = nn.Sequential(
        nn.Conv2d(3, 64, 7, 4, 3), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(), nn.Conv2d(128, width, 3, 2, 1)
    )
    mixer = nn.Transformer(width, 8 if GPU else 2, size(3, 1), size(3, 1), 4 * width, dropout=0.0, batch_first=True)
    queries, kinds, boxes = nn.Embedding(asked, width), nn.Linear(width, 21), nn.Linear(width, 4)
    model = nn.ModuleList([look, mixer, queries, kinds, boxes]).to(DEVICE)
    optimizer = fused(model)
    x = torch.randn(batch, 3, size(320, 32), size(320, 32), device=DEVICE)
    wanted = [
        (torch.randint(0, 20, (size(20, 3),), device=DEVICE), torch.rand(size(20, 3), 4, device=DEVICE))
        for _ in range(batch)
    ]

    def answer() -> tuple[torch.Tensor, torch.Tensor]:
        seen = look(x).flatten(2).transpose(1, 2)
        h = mixer(seen, queries.weight.expand(batch, -1, -1))
        return kinds(h), boxes(h).sigmoid()

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        with bf16():
            said, at = answer()
        said, at = said.float(), at.float()
        losses = []
        for b, (kind, box) in enumerate(wanted):
            cost = torch.cdist(at[b], box, p=1) - said[b].softmax(-1)[:, kind]
            if "device_match" in fixes:
                rows, columns = cost.detach().argmin(0), torch.arange(len(kind), device=DEVICE)
            else:
                rows, columns = (
                    torch.as_tensor(k).to(DEVICE) for k in linear_sum_assignment(cost.detach().cpu().numpy())
                )
            truth = torch.full((asked,), 20, device=DEVICE)
            truth[rows] = kind[columns]
            losses.append(F.cross_entropy(said[b], truth) + F.l1_loss(at[b][rows], box[columns]))
        torch.stack(losses).mean().backward()
        optimizer.step()

    return one


@workload("elementwise-unfused", "compile")
def preferences(*fixes: str) -> Step:
    """Preference tuning: log probabilities of policy and reference over a large vocabulary, in fp32, written out."""
    vocab, width, rows = size(32000, 64), size(768, 16), size(4096, 32)
    policy = nn.Sequential(Mlp(width, 4, F.gelu), nn.Linear(width, vocab, bias=False)).to(DEVICE)
    frozen = nn.Sequential(Mlp(width, 4, F.gelu), nn.Linear(width, vocab, bias=False)).to(DEVICE).requires_grad_(False)
    optimizer = fused(policy)
    x, ids = torch.randn(2 * rows, width, device=DEVICE), torch.randint(0, vocab, (2 * rows,), device=DEVICE)

    def loss_of(own: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        own, other = own.float() / 0.9, other.float() / 0.9
        a, b = own.log_softmax(-1), other.log_softmax(-1)
        apart = (a.exp() * (a - b)).sum(-1).mean()
        ratio = (a.gather(1, ids[:, None]) - b.gather(1, ids[:, None]))[:, 0]
        return -F.logsigmoid(0.1 * (ratio[:rows].mean() - ratio[rows:].mean())) + 0.01 * apart

    run: Callable[..., torch.Tensor] = torch.compile(loss_of) if "compile" in fixes else loss_of

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        with bf16():
            own = policy(x)
            with torch.no_grad():
                other = frozen(x)
        run(own, other).backward()
        optimizer.step()

    return one


@workload("launch-bound", "graph")
def residual_equations(*fixes: str) -> Step:
    """A network that learns an equation: second derivatives by differentiating twice."""
    model = nn.Sequential(
        nn.Linear(2, 128),
        *(m for _ in range(size(6, 2)) for m in (nn.Tanh(), nn.Linear(128, 128))),
        nn.Tanh(),
        nn.Linear(128, 1),
    ).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, foreach=True, capturable=GPU)
    points = torch.rand(size(2048, 16), 2, device=DEVICE)

    def one() -> None:
        optimizer.zero_grad(set_to_none=False)
        at = points.detach().requires_grad_(True)
        u = model(at)
        slope = torch.autograd.grad(u.sum(), at, create_graph=True)[0]
        bend = torch.autograd.grad(slope[:, 0].sum(), at, create_graph=True)[0][:, :1]
        (slope[:, 1:] + u * slope[:, :1] - 0.01 * bend).square().mean().backward()
        optimizer.step()

    run = captured(one) if "graph" in fixes else one
    held = (points, model, optimizer)
    return lambda i: (run(), held)[0]


@workload("none|elementwise-unfused|layout-copies")
def windows_in_16_bits(*fixes: str) -> Step:
    """A library's vision model of shifted windows in bf16."""
    from transformers import SwinConfig, SwinForImageClassification

    side = size(224, 32)
    shape = SwinConfig(
        image_size=side, embed_dim=size(96, 16), depths=[2, 2, 6, 2] if GPU else [1, 1], num_heads=[3, 6, 12, 24] if GPU else [2, 2],
        window_size=size(7, 4), num_labels=100,
    )  # fmt: skip
    model = SwinForImageClassification(shape).to(DEVICE)
    optimizer = fused(model)
    x, y = (
        torch.randn(size(48, 1), 3, side, side, device=DEVICE),
        torch.zeros(size(48, 1), dtype=torch.long, device=DEVICE),
    )
    return lambda i: (
        learn(optimizer, lambda: model(pixel_values=x).logits, lambda o: F.cross_entropy(o.float(), y)),
        None,
    )[1]


# ---------------------------------------------------------------- two faults


@workload("attention-materialized,host-sync", "sdpa", "kept")
def tuned_in_parts(*fixes: str) -> Step:
    """Two faults: a library's decoder with written-out attention; four small batches a step, whose losses and norms are read."""
    from transformers import LlamaConfig, LlamaForCausalLM

    width, length = size(768, 64), size(1024, 16)
    shape = LlamaConfig(
        vocab_size=8000, hidden_size=width, num_hidden_layers=size(6, 1), num_attention_heads=size(12, 2),
        num_key_value_heads=size(4, 2), intermediate_size=2 * width, max_position_embeddings=2048,
        attn_implementation="sdpa" if "sdpa" in fixes else "eager",
    )  # fmt: skip
    model = LlamaForCausalLM(shape).to(DEVICE)
    optimizer = fused(model)
    batches = [torch.randint(0, 8000, (2, length), device=DEVICE) for _ in range(4)]

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        told = 0.0
        for ids in batches:
            with bf16():
                loss = model(input_ids=ids, labels=ids, use_cache=False).loss / 4
            loss.backward()
            if "kept" not in fixes:
                told += loss.item()
                told += sum(float(p.grad.norm()) for p in model.parameters() if p.grad is not None)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return one


class Jpegs(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Pictures that are unpacked, scaled and turned into numbers one by one."""

    def __init__(self) -> None:
        from PIL import Image

        side = size(256, 48)
        y, x = np.mgrid[:side, :side]
        self.files = []
        for k in range(8):
            made = np.stack([(x * (k + 1) + y * c) % 256 for c in (1, 2, 3)], -1).astype(np.uint8)
            packed = io.BytesIO()
            Image.fromarray(made).save(packed, "JPEG", quality=90)
            self.files.append(packed.getvalue())

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        from PIL import Image

        side = size(160, 32)
        made = Image.open(io.BytesIO(self.files[i % 8])).convert("RGB").resize((side, side))
        return torch.from_numpy(np.asarray(made).copy()).permute(2, 0, 1).float() / 255, i % 100


@workload("input-starved,layout-copies", "ready", "channels_last", every=2)
def jpegs_and_planes(*fixes: str) -> Step:
    """Two faults: pictures are unpacked in the main process, and a library's convolutions run over planes."""
    from transformers import ResNetConfig, ResNetForImageClassification

    shape = ResNetConfig(
        embedding_size=size(64, 8), hidden_sizes=[256, 512, 1024] if GPU else [8, 16, 32],
        depths=[3, 4, 6] if GPU else [1, 1, 1], num_labels=100,
    )  # fmt: skip
    layout = torch.channels_last if "channels_last" in fixes else torch.contiguous_format
    model = ResNetForImageClassification(shape).to(DEVICE).to(memory_format=layout)
    optimizer = fused(model)
    batches = iter(torch.utils.data.DataLoader(Jpegs(), batch_size=size(32, 2)))
    kept = [t.to(DEVICE) for t in next(batches)]

    def one(i: int) -> None:
        x, y = kept if "ready" in fixes else (t.to(DEVICE) for t in next(batches))
        x = x.to(memory_format=layout)
        learn(optimizer, lambda: model(pixel_values=x).logits, lambda o: F.cross_entropy(o.float(), y))

    return one


@workload("launch-bound,h2d-copy-exposed", "graph", "copy")
def clicks_by_tables(*fixes: str) -> Step:
    """Two faults: a recommender asks thirty tables one after the other, and every feature crosses from pageable memory alone."""
    tables, rows, batch = size(30, 3), size(5000, 20), size(8192, 16)
    bags = nn.ModuleList(nn.Embedding(rows, 32) for _ in range(tables)).to(DEVICE)
    top = nn.Sequential(nn.Linear(32 * tables, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1)).to(
        DEVICE
    )
    model = nn.ModuleList([bags, top])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, foreach=True, capturable=GPU)
    host = [torch.randint(0, rows, (batch, 8)) for _ in range(tables)]
    ready = [h.to(DEVICE) for h in host]
    clicked = torch.rand(batch, device=DEVICE)

    def body() -> None:
        optimizer.zero_grad(set_to_none=False)
        out = top(torch.cat([bag(ids).sum(1) for bag, ids in zip(bags, ready, strict=True)], 1))
        F.binary_cross_entropy_with_logits(out.flatten(), clicked).backward()
        optimizer.step()

    run = captured(body) if "graph" in fixes else body

    def one(i: int) -> None:
        if "copy" not in fixes:
            for there, here in zip(ready, host, strict=True):
                there.copy_(here)
        run()

    held = (body, model, optimizer, clicked)
    return lambda i: (one(i), held)[0]


class Spoken(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Sounds that are made louder, shifted and normalised before the model hears them."""

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, i: int) -> torch.Tensor:
        count = size(32000, 1600)
        rng = np.random.default_rng(i)
        sound = rng.standard_normal(count, dtype=np.float32) * 0.1 + np.sin(
            np.arange(count, dtype=np.float32) * (0.01 + i % 7 / 100)
        )
        echo = np.convolve(sound, np.hanning(33).astype(np.float32), "same")
        return torch.from_numpy((echo - echo.mean()) / (echo.std() + 1e-5)).float()


@workload("input-starved,tensor-cores-unused|precision-headroom", "ready", "bf16", every=2)
def speech_and_letters(*fixes: str) -> Step:
    """Two faults: sounds are prepared in the main process, and a library's conformer with CTC runs in fp32."""
    from transformers import Wav2Vec2ConformerConfig, Wav2Vec2ConformerForCTC

    width = size(512, 32)
    shape = Wav2Vec2ConformerConfig(
        vocab_size=32, hidden_size=width, num_hidden_layers=size(6, 1), num_attention_heads=size(8, 2),
        intermediate_size=4 * width, conv_dim=(width,) * 7 if GPU else (32,) * 7, ctc_zero_infinity=True,
        mask_time_prob=0.0, layerdrop=0.0, num_conv_pos_embeddings=size(64, 4), num_conv_pos_embedding_groups=size(16, 4),
    )  # fmt: skip
    model = Wav2Vec2ConformerForCTC(shape).to(DEVICE)
    optimizer = fused(model)
    batches = iter(torch.utils.data.DataLoader(Spoken(), batch_size=size(16, 2)))
    kept = next(batches).to(DEVICE)
    letters = torch.randint(1, 32, (len(kept), size(24, 2)), device=DEVICE)

    def one(i: int) -> None:
        tf32(False)
        x = kept if "ready" in fixes else next(batches).to(DEVICE)
        learn(optimizer, lambda: model(input_values=x, labels=letters).loss, lambda loss: loss, amp="bf16" in fixes)

    return one


@workload("host-sync,launch-bound", "kept", "graph")
def policy_in_epochs(*fixes: str) -> Step:
    """Two faults: a policy is tuned over many small batches, each of which asks how far it moved; all of it small kernels."""
    width, parts = size(256, 16), size(8, 2)
    body = nn.Sequential(nn.Linear(48, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()).to(DEVICE)
    acts, worth = nn.Linear(width, 12).to(DEVICE), nn.Linear(width, 1).to(DEVICE)
    model = nn.ModuleList([body, acts, worth])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, foreach=True, capturable=GPU)
    seen = torch.randn(parts, 512, 48, device=DEVICE)
    chosen = torch.randint(0, 12, (parts, 512), device=DEVICE)
    before, better = torch.randn(parts, 512, device=DEVICE) * 0.1 - 2.5, torch.randn(parts, 512, device=DEVICE)
    moved = torch.zeros(parts, device=DEVICE)

    def part(k: int) -> None:
        h = body(seen[k])
        logs = acts(h).log_softmax(-1)
        ratio = (logs.gather(1, chosen[k, :, None])[:, 0] - before[k]).exp()
        gain = torch.min(ratio * better[k], ratio.clamp(0.8, 1.2) * better[k]).mean()
        spread = -(logs.exp() * logs).sum(-1).mean()
        loss = -gain + 0.5 * (worth(h)[:, 0] - better[k]).square().mean() - 0.01 * spread
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        moved[k].copy_((ratio - 1 - ratio.log()).mean().detach())

    runs = [captured(lambda k=k: part(k)) if "graph" in fixes else (lambda k=k: part(k)) for k in range(parts)]

    def one(i: int) -> None:
        for k, run in enumerate(runs):
            run()
            if "kept" not in fixes and moved[k].item() > 1e9:
                break

    held = (part, model, optimizer, seen, chosen, before, better)  # what a captured graph reads must stay allocated
    return lambda i: (one(i), held)[0]


@workload("launch-bound,elementwise-unfused", "graph", "compile")
def decode_in_8_bits(*fixes: str) -> Step:
    """Two faults: weights of 8 bits are widened before each product of a decoder's token; nothing is captured."""
    width, layers, past = size(2048, 32), size(8, 1), size(512, 8)

    class Narrow(nn.Module):
        def __init__(self, i: int, o: int) -> None:
            super().__init__()
            self.register_buffer("weight", torch.randint(-127, 127, (o, i), dtype=torch.int8))
            self.register_buffer("scale", torch.rand(o, 1, dtype=torch.bfloat16) * 1e-3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.linear(x, self.weight.to(torch.bfloat16) * self.scale)

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = Narrow(width, 3 * width), Narrow(width, width)
            self.up, self.down = Narrow(width, 4 * width), Narrow(4 * width, width)
            self.register_buffer("kv", torch.randn(2, 8, 16, past, width // 16, dtype=torch.bfloat16))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v = self.qkv(F.rms_norm(x, (width,))).view(8, 3, 16, 1, width // 16).unbind(1)
            self.kv[:, :, :, -1:] = torch.stack([k, v])
            h = F.scaled_dot_product_attention(q, self.kv[0], self.kv[1])
            x = x + self.out(h.reshape(8, width))
            return x + self.down(F.silu(self.up(F.rms_norm(x, (width,)))))

    model = nn.Sequential(*(Layer() for _ in range(layers))).to(DEVICE)
    inner = torch.compile(model) if "compile" in fixes else model
    x = torch.randn(8, width, device=DEVICE, dtype=torch.bfloat16)

    @torch.no_grad()
    def token() -> None:
        inner(x)

    run = captured(token) if "graph" in fixes else token

    def one(i: int) -> None:
        for _ in range(4):
            run()

    held = (x, model, inner)
    return lambda i: (one(i), held)[0]


@workload("optimizer-unfused,host-sync", "fused", "kept")
def parts_clipped_one_by_one(*fixes: str) -> Step:
    """Two faults: Adam walks its parameters, and accuracies of eight small batches a step are read one by one."""
    width = size(384, 16)
    blocks = (nn.Sequential(Attention(width, 6 if GPU else 2), Feed(width)) for _ in range(size(8, 1)))
    model = nn.Sequential(nn.Embedding(4000, width), *blocks, nn.Linear(width, 4000)).to(DEVICE)
    optimizer = walked(model.parameters(), "fused" not in fixes)
    ids = torch.randint(0, 4000, (8, size(16, 1), size(128, 8)), device=DEVICE)

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        right = []
        for batch in ids:
            with bf16():
                out = model(batch)
            loss = F.cross_entropy(out.float().flatten(0, 1), batch.flatten()) / 8
            loss.backward()
            if "kept" not in fixes:
                hit = (out.argmax(-1) == batch).float()
                right.append((loss.item(), hit.mean().item(), *(row.mean().item() for row in hit)))
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
        optimizer.step()

    return one


@workload("tensor-cores-unused|precision-headroom,elementwise-unfused", "bf16", "compile")
def rays_in_fp32(*fixes: str) -> Step:
    """Two faults: a radiance field in fp32 without TF32, and its encodings and sums over rays written out."""
    rays, samples, width = size(4096, 8), size(64, 8), size(256, 16)
    inner = (m for _ in range(size(6, 1)) for m in (nn.Linear(width, width), nn.ReLU()))
    model = nn.Sequential(nn.Linear(63, width), nn.ReLU(), *inner, nn.Linear(width, 4)).to(DEVICE)
    optimizer = fused(model)
    start, way, seen = (torch.randn(rays, 3, device=DEVICE) for _ in range(3))

    def colours(start: torch.Tensor, way: torch.Tensor) -> torch.Tensor:
        far = torch.linspace(2, 6, samples, device=DEVICE) + torch.rand(rays, samples, device=DEVICE) * 0.05
        at = start[:, None] + way[:, None] * far[..., None]
        waves = [at, *(f(at * 2.0**k) for k in range(10) for f in (torch.sin, torch.cos))]
        out = model(torch.cat(waves, -1)).float()
        thick = F.relu(out[..., 3])
        alpha = 1 - torch.exp(-thick * (4 / samples))
        left = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[:, :-1]
        return ((alpha * left)[..., None] * torch.sigmoid(out[..., :3])).sum(1)

    run: Callable[..., torch.Tensor] = torch.compile(colours) if "compile" in fixes else colours

    def one(i: int) -> None:
        tf32(False)
        learn(optimizer, lambda: run(start, way), lambda out: F.mse_loss(out.float(), seen), amp="bf16" in fixes)

    return one


@workload("launch-bound,host-sync", "graph", "kept")
def sampler_by_hand(*fixes: str) -> Step:
    """Two faults: a small transformer over patches takes noise off in ten moments; coefficients on the device are read."""
    width, moments = size(384, 16), size(10, 2)
    blocks = nn.Sequential(
        *(nn.Sequential(Attention(width, 6 if GPU else 2), Feed(width)) for _ in range(size(8, 1)))
    ).to(DEVICE)
    into, out = nn.Linear(16, width).to(DEVICE), nn.Linear(width, 16).to(DEVICE)
    kept_parts = torch.linspace(0.99, 0.01, moments, device=DEVICE)
    parts = kept_parts.tolist()
    x, y = torch.randn(4, 256 if GPU else 4, 16, device=DEVICE), torch.zeros(4, 256 if GPU else 4, 16, device=DEVICE)

    @torch.no_grad()
    def denoise() -> None:
        with bf16():
            y.copy_(out(blocks(into(x))).float())

    run = captured(denoise) if "graph" in fixes else denoise

    @torch.no_grad()
    def one(i: int) -> None:
        for k in range(moments):
            part = parts[k] if "kept" in fixes else kept_parts[k].item()
            run()
            x.copy_((x - (1 - part) ** 0.5 * y) * 0.5)
            if "kept" not in fixes and (float(x.min()) < -1e9 or float(x.max()) > 1e9):
                break

    held = (denoise, blocks, into, out)
    return lambda i: (one(i), held)[0]


record_fixes_in_turn.CLEAN_BLOCKS = 9
record_fixes_in_turn.MOST_TRACE_BYTES = 2_000_000

if __name__ == "__main__":
    record_strangers_in_turn.record_fixes_in_turn.main()
