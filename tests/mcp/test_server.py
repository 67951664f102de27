"""The MCP server driven by a real MCP client: every tool, good and bad arguments, nothing outside the root."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp.server.mcpserver", reason="the extra [mcp] is not installed")

from mcp import Client, StdioServerParameters

from stallwise.surfaces.mcp.server import build_server

REPO = Path(__file__).parents[2]
SCENARIO = REPO / "examples" / "scenarios" / "02_mfu_collapse" / "case.toml"
SCRIPT = (
    "import torch\nfor batch in loader:\n    loss = model(batch.cuda())\n    loss.backward()\n    print(loss.item())\n"
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.log").write_text("step 1 loss 2 password hunter2", encoding="utf-8")
    (folder / "case.toml").write_bytes(SCENARIO.read_bytes())
    for name, seconds in (("good.log", 0.1), ("bad.log", 0.2)):
        lines = [f"step {i} loss 2.{i} step_time {seconds + i * 1e-4:.4f}" for i in range(40)]
        (folder / name).write_text("\n".join(lines), encoding="utf-8")
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    (folder / "<b>.bin").write_bytes(bytes(range(256)))
    (folder / "out.log").symlink_to(outside / "secret.log")
    return folder


def run(act: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(act)


async def call(root: Path, tool: str, arguments: dict[str, Any]) -> tuple[bool, Any]:
    async with Client(build_server(root)) as client:
        result = await client.call_tool(tool, arguments)
        text = result.content[0].text if result.content else ""
        failed = bool(getattr(result, "is_error", False) or getattr(result, "isError", False))
        return failed, text if failed else json.loads(text)


def test_all_tools_are_offered_with_descriptions(root: Path) -> None:
    async def names() -> dict[str, str]:
        async with Client(build_server(root)) as client:
            return {t.name: t.description or "" for t in (await client.list_tools()).tools}

    found = run(names())
    assert set(found) == {"files", "diagnose", "compare", "explain", "drill", "lint", "plan", "simulate"}
    assert all(len(text) > 30 for text in found.values())


GOOD: list[tuple[str, dict[str, Any], str]] = [
    ("files", {}, "files"),
    ("diagnose", {"paths": ["case.toml"]}, "findings"),
    ("diagnose", {"facts": ["mfu=0.22", "mfu.before=0.48", "gpu=h100"]}, "findings"),
    ("diagnose", {"paths": ["case.toml"], "part": "hypotheses", "limit": 2, "offset": 1}, "hypotheses"),
    ("diagnose", {"paths": ["case.toml"], "part": "facts", "share": True}, "facts"),
    ("compare", {"good": ["good.log"], "bad": ["bad.log"]}, "changes"),
    ("explain", {"cause": "input-starved"}, "page"),
    ("explain", {}, "causes"),
    ("explain", {"cause": "speculative decoding"}, "worked"),
    ("drill", {}, "incidents"),
    ("lint", {"path": "train.py"}, "remarks"),
    ("plan", {"kind": "layout", "question": {"model": "llama-3-70b", "gpus": 512, "tp": 8, "pp": 4}}, "seconds"),
    ("plan", {"kind": "serving", "question": {"model": "llama-3.1-70b"}}, "options"),
    ("plan", {"kind": "training", "question": {"model": "llama-3-8b", "gpus": 8, "global_batch": 64}}, "best"),
    ("plan", {"kind": "formula"}, "formulas"),
    ("plan", {"kind": "formula", "question": {"name": "adam-states", "params": "8B"}}, "results"),
    ("simulate", {"question": {"stages": 8, "microbatches": 32, "schedule": "1f1b"}}, "bubble_step_share"),
]


@pytest.mark.parametrize(("tool", "arguments", "key"), GOOD, ids=str)
def test_every_tool_answers(root: Path, tool: str, arguments: dict[str, Any], key: str) -> None:
    failed, answer = run(call(root, tool, arguments))
    assert not failed, answer
    assert answer[key] or answer[key] == []
    assert len(json.dumps(answer)) < 60_000
    assert str(root) not in json.dumps(answer)


BAD: list[tuple[str, dict[str, Any]]] = [
    ("files", {"path": "../"}), ("files", {"path": "/etc"}), ("files", {"limit": 0}), ("files", {"offset": -1}),
    ("files", {"limit": "many"}), ("files", {"limit": 100000}),
    ("diagnose", {}), ("diagnose", {"paths": ["/etc/passwd"]}), ("diagnose", {"paths": ["out.log"]}),
    ("diagnose", {"paths": ["../outside0/secret.log"]}), ("diagnose", {"paths": "case.toml\0"}),
    ("diagnose", {"paths": ["nothing.json"]}), ("diagnose", {"paths": ["<b>.bin"]}), ("diagnose", {"paths": [5]}),
    ("diagnose", {"facts": ["nonsense=1"]}), ("diagnose", {"facts": ["mfu=fast"]}), ("diagnose", {"facts": ["x"]}),
    ("diagnose", {"paths": ["case.toml"], "part": "secrets"}), ("diagnose", {"paths": ["x"] * 1000}),
    ("diagnose", {"paths": ["http://127.0.0.1:1/metrics"]}), ("diagnose", {"paths": ["*.toml"]}),
    ("compare", {}), ("compare", {"good": ["good.log"]}), ("compare", {"good": ["out.log"], "bad": ["bad.log"]}),
    ("drill", {"verb": "dance"}), ("drill", {"verb": "reply", "name": "../x"}), ("drill", {"verb": "start", "name": "x"}),
    ("explain", {"cause": "gremlins"}), ("explain", {"cause": ["a"]}), ("explain", {"limit": -5}),
    ("lint", {}), ("lint", {"path": "case.toml"}), ("lint", {"path": "/"}), ("lint", {"path": "x" * 9000}),
    ("plan", {}), ("plan", {"kind": "world"}), ("plan", {"kind": "layout", "question": {"model": "/etc/passwd"}}),
    ("plan", {"kind": "layout", "question": {"tp": -3}}), ("plan", {"kind": "layout", "question": {"gpus": 1e99}}),
    ("plan", {"kind": "serving", "question": {"rate": "fast"}}), ("plan", {"kind": "layout", "question": "tp=8"}),
    ("plan", {"kind": "formula", "question": {"name": "nothing"}}),
    ("plan", {"kind": "formula", "question": {"name": "adam-states", "params": "many"}}),
    ("simulate", {"question": {"stages": 10**9}}), ("simulate", {"question": {"schedule": "waltz"}}),
    ("no-such-tool", {}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "arguments"), BAD, ids=lambda v: str(v)[:60])
def test_bad_arguments_get_a_sentence(root: Path, tool: str, arguments: dict[str, Any]) -> None:
    try:
        failed, text = run(call(root, tool, arguments))
    except BaseException as error:  # the protocol itself may refuse: that is a clear answer too
        failed, text = True, _leaf(error)
    assert failed, text
    assert "Traceback" not in text and "a bug of stallwise" not in text
    assert "hunter2" not in text and "root:" not in text


def _leaf(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert type(error).__name__ in ("MCPError", "McpError", "ToolError"), error
    return str(error)


def test_long_lists_come_in_pages_that_join(root: Path) -> None:
    _, first = run(call(root, "explain", {"limit": 20}))
    rows, offset = first["causes"], first["next_offset"]
    while offset is not None:
        _, page = run(call(root, "explain", {"limit": 20, "offset": offset}))
        rows += page["causes"]
        offset = page.get("next_offset")
    assert len(rows) == first["total"] == len({r["cause"] for r in rows})


def test_links_out_of_the_root_are_not_listed(root: Path) -> None:
    _, answer = run(call(root, "files", {"limit": 50}))
    assert "out.log" not in [f["path"] for f in answer["files"]]


def test_it_talks_over_stdin_and_stdout(root: Path) -> None:
    async def first() -> bool:
        words = ["-m", "stallwise", "mcp", str(root)]
        started = StdioServerParameters(command=sys.executable, args=words, env={"PYTHONPATH": str(REPO / "src")})
        async with Client(started) as client:
            result = await client.call_tool("explain", {"cause": "input-starved"})
            return "input-starved" in result.content[0].text

    assert run(first())


def test_diagnose_asks_and_takes_answers(root: Path) -> None:
    async def act() -> None:
        asked = {"paths": ["training is slow"]}
        failed, first = await call(root, "diagnose", asked)
        (question,) = first["questions"]
        assert not failed and question["choices"][-1] == "don't know" and question["separates"]
        loader = next(c for c in question["choices"] if "DataLoader" in c)
        failed, again = await call(root, "diagnose", {**asked, "answers": [loader]})
        assert not failed and again["ranked"][0] == "input-starved" and again != first
        failed, text = await call(root, "diagnose", {**asked, "answers": ["99"]})
        assert failed and "no choice 99" in str(text)

    run(act())
