"""Random mixes of inputs, the same for a seed, each answered in several ways: whatever differs in more than a time is printed.

    python -m tests.trust.mixes --times 100 --seed 7 --folders ../shared/data --ways 4 --ray

A way is an order of the files, a number of workers, an engine and, in a process of its own, a hash seed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from stallwise.doctor import engine_local
from stallwise.doctor.examine import diagnose
from stallwise.errors import StallwiseError
from stallwise.render import strict_json
from stallwise.render.json import to_dict

REPO = Path(__file__).parents[2]
OWN = ("examples/scenarios", "examples/traces", "tests/fuzz/seeds", "tests/fixtures")
SMALL_BYTES = 25_000
MOST_FILES = 4  # of a mix


def material(folders: list[str]) -> list[Path]:
    """Small files of every format."""
    found = [p for f in (*(REPO / own for own in OWN), *map(Path, folders)) for p in sorted(f.rglob("*"))]
    kept = (".py", ".md", ".png")
    return [p for p in found if p.is_file() and 0 < p.stat().st_size <= SMALL_BYTES and p.suffix not in kept]


def mixes(times: int, seed: int, files: list[Path]) -> Iterator[list[Path]]:
    """So many, each of a few files."""
    r = random.Random(seed)
    for _ in range(times):
        yield sorted(r.sample(files, r.randint(2, MOST_FILES)))


def answer(files: list[Path], order: int = 0, workers: int = 1, engine: str = "local") -> str:
    """The answer's digest, asked in this order; a refusal is an answer, too."""
    asked = random.Random(order).sample(files, len(files)) if order else files
    try:
        found = to_dict(diagnose(*map(str, asked), cache=False, workers=workers, engine=engine))
        text = strict_json.dumps(found, sort_keys=True)
    except StallwiseError as error:
        text = f"{error.problem} {error.hint}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def elsewhere(wanted: list[list[Path]], order: int, hash_seed: int) -> list[str]:
    """The digests of all mixes in one process of another hash seed, each in another order."""
    env = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": f"{REPO / 'src'}{os.pathsep}{REPO}"}
    given = json.dumps([order, [[str(f) for f in mix] for mix in wanted]])
    ran = subprocess.run(
        [sys.executable, "-m", "tests.trust.mixes", "--given"],
        input=given, capture_output=True, text=True, env=env, cwd=REPO, timeout=3600,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


def main() -> None:
    """By hand, over more."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", type=int, default=2, help="hash seeds and orders besides the plain one")
    parser.add_argument("--ray", action="store_true", help="ask the engine ray as well")
    parser.add_argument("--folders", nargs="*", default=[])
    parser.add_argument("--given", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.given:
        order, given = json.load(sys.stdin)
        for mix in given:
            print(answer([Path(f) for f in mix], order), flush=True)
        return
    wanted = list(mixes(chosen.times, chosen.seed, material(chosen.folders)))
    plain = [answer(mix) for mix in wanted]
    differ = 0

    def compared(how: str, told: list[str]) -> None:
        nonlocal differ
        for mix, one, other in zip(wanted, plain, told, strict=True):
            if one != other:
                differ += 1
                print(f"{how}: {' '.join(map(str, mix))}", flush=True)

    engine_local.WORTH_A_POOL_BYTES = 0
    compared("pool", [answer(mix, 3, 2) for mix in wanted])
    for way in range(1, chosen.ways + 1):
        compared(f"hash seed {way * 1009}", elsewhere(wanted, way, way * 1009))
    if chosen.ray:
        compared("ray", [answer(mix, 5, 2, "ray") for mix in wanted])
    print(f"{len(wanted)} mixes of {sum(map(len, wanted))} files, {chosen.ways + 2 + chosen.ray} ways: {differ} differ")
    raise SystemExit(1 if differ else 0)


if __name__ == "__main__":
    main()
