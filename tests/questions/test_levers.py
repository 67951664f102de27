"""Levers that people name, each typed as a user would, give numbers."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stallwise.surfaces.cli import main

LEVERS = tomllib.loads((Path(__file__).parent / "rows" / "levers.toml").read_text(encoding="utf-8"))["lever"]


@pytest.mark.parametrize("lever", LEVERS, ids=lambda lever: lever["name"])
def test_a_lever_gives_numbers(lever: dict[str, Any]) -> None:
    answer = CliRunner(env={"COLUMNS": "4000", "NO_COLOR": "1"}).invoke(main, shlex.split(lever["typed"]))
    assert not answer.exit_code, answer.output
    said = " ".join(answer.stdout.split())  # wherever a line breaks
    assert not [wanted for wanted in lever["prints"] if not re.search(wanted, said)], answer.stdout
