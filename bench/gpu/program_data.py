"""Made-up data for the published programs, in the shapes that they expect, and what they want to find beside them."""

from __future__ import annotations

import gzip
import importlib.util
import pickle
import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np

JAX_DATA = Path("/tmp/jax_example_data")  # where JAX's examples look
PICTURES, JAX_PICTURES, TEST_PICTURES = 12_800, 60_000, 2_000
CHARACTERS = 65
SAMPLED = """
import os, sys, torch
from model import GPT, GPTConfig
shape = dict(n_layer=6, n_head=6, n_embd=384, block_size=256, bias=False, vocab_size=int(sys.argv[1]), dropout=0.0)
os.makedirs("sampled", exist_ok=True)
torch.save({"model": GPT(GPTConfig(**shape)).state_dict(), "model_args": shape,
            "config": {"dataset": "shakespeare_char"}}, "sampled/ckpt.pt")
"""
SPOKEN = """
import torch
from data import Corpus
from model import RNNModel
torch.save(RNNModel("LSTM", len(Corpus("./data/wikitext-2").dictionary), 200, 200, 2, 0.2), "model.pt")
"""
PYPLOT = "import types\ncm = types.SimpleNamespace(gray=None)\ndef imsave(*_, **__): pass\n"


def prepare(published: Path, work: Path, own: Path) -> None:
    """Copies of the programs with their data."""
    shutil.copytree(published, work, dirs_exist_ok=True)
    shutil.copytree(own, work / "own")
    tokens(work / "nanoGPT")
    words(work / "examples" / "word_language_model" / "data" / "wikitext-2")
    raw = work / "raw"
    pictures(raw, PICTURES)
    for place in ("examples/data", "examples/mnist_forward_forward/data", "PyTorch-GAN/data/mnist"):
        shutil.copytree(raw, work / place / "MNIST" / "raw", dirs_exist_ok=True)
    pictures(JAX_DATA, JAX_PICTURES, packed=True)
    (work / "examples" / "vae" / "results").mkdir(exist_ok=True)
    if importlib.util.find_spec("matplotlib") is None:  # the VAE writes its pictures with it
        (work / "jax" / "matplotlib").mkdir()
        (work / "jax" / "matplotlib" / "__init__.py").write_text("")
        (work / "jax" / "matplotlib" / "pyplot.py").write_text(PYPLOT)
    made = [
        subprocess.Popen([sys.executable, "-c", text, str(CHARACTERS)], cwd=work / folder)
        for text, folder in ((SAMPLED, "nanoGPT"), (SPOKEN, "examples/word_language_model"))
    ]
    assert [each.wait() for each in made] == [0, 0]


def tokens(nano: Path) -> None:
    noise = np.random.default_rng(0)
    for folder, vocabulary in (("shakespeare_char", CHARACTERS), ("synth", 50304)):
        place = nano / "data" / folder
        place.mkdir(parents=True, exist_ok=True)
        for part in ("train", "val"):
            (place / f"{part}.bin").write_bytes(noise.integers(0, vocabulary, 200_000).astype("<u2").tobytes())
    letters = [chr(n) for n in (10, *range(32, 32 + CHARACTERS - 1))]
    meta = {
        "vocab_size": CHARACTERS,
        "stoi": {c: n for n, c in enumerate(letters)},
        "itos": dict(enumerate(letters)),
    }
    (nano / "data" / "shakespeare_char" / "meta.pkl").write_bytes(pickle.dumps(meta))


def words(place: Path) -> None:
    noise = random.Random(0)
    place.mkdir(parents=True, exist_ok=True)
    for part, lines in (("train", 9000), ("valid", 300), ("test", 300)):
        rows = [" ".join(f"w{int(noise.paretovariate(0.6)) % 20000}" for _ in range(25)) for _ in range(lines)]
        (place / f"{part}.txt").write_text("\n".join(rows) + "\n")


def pictures(place: Path, count: int, packed: bool = False) -> None:
    """MNIST's four files."""
    noise = np.random.default_rng(0)
    place.mkdir(parents=True, exist_ok=True)
    for part, many in (("train", count), ("t10k", TEST_PICTURES)):
        images = struct.pack(">IIII", 2051, many, 28, 28) + (noise.random(many * 784) < 0.2).astype("u1").tobytes()
        labels = struct.pack(">II", 2049, many) + noise.integers(0, 10, many).astype("u1").tobytes()
        for kind, content in (("images-idx3", images), ("labels-idx1", labels)):
            name = place / f"{part}-{kind}-ubyte{'.gz' if packed else ''}"
            name.write_bytes(gzip.compress(content, 1) if packed else content)
