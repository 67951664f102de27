"""Results in notebooks: rich display, plain containers, tables; and the tutorial notebook really runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import stallwise
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.errors import BadRequest
from stallwise.planner.ask import ask_plan
from tests.render.hostile import hostile

REPO = Path(__file__).parents[1]
TUTORIAL = REPO / "docs" / "tutorial.ipynb"


@pytest.fixture(scope="module")
def diagnosis() -> Diagnosis:
    found = stallwise.diagnose(str(REPO / "examples" / "traces" / "loader_slow"))
    assert isinstance(found, Diagnosis)
    return found


def test_a_diagnosis_shows_itself(diagnosis: Diagnosis) -> None:
    html = diagnosis._repr_html_()
    assert html.startswith("<iframe") and "srcdoc=" in html and "allow-same-origin" not in html
    assert "The GPU waits for input" in diagnosis._repr_markdown_()
    assert json.loads(json.dumps(diagnosis.to_dict()))["ranked"][0] == "input-starved"


def test_markup_cannot_leave_the_frame() -> None:
    html = hostile()._repr_html_()
    assert html.count("<") == 2  # the frame's own two tags


@pytest.mark.parametrize("table", ["findings", "fixes", "facts", "ledger", "hypotheses"])
def test_tables_become_data_frames(diagnosis: Diagnosis, table: str) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    polars = pytest.importorskip("polars", reason="polars is not installed")
    rows = diagnosis.rows(table)
    assert rows
    assert isinstance(diagnosis.to_pandas(table), pandas.DataFrame)
    frame = diagnosis.to_polars(table)
    assert isinstance(frame, polars.DataFrame) and len(frame) == len(rows)


def test_an_unknown_table_is_named_with_those_that_are(diagnosis: Diagnosis) -> None:
    with pytest.raises(BadRequest, match="no table") as error:
        diagnosis.rows("x")
    assert "findings" in error.value.hint


def test_a_plan_shows_itself() -> None:
    plan = ask_plan("llama-3-8b", "8xh100", seq=4096, global_batch=64)
    assert "srcdoc=" in plan._repr_html_() and plan._repr_markdown_().count("|") > 10
    assert plan.rows()[0]["seconds"] > 0 and plan.to_dict()["best"]


def test_a_comparison_shows_itself(tmp_path: Path) -> None:
    for name, seconds in (("good.log", 0.1), ("bad.log", 0.2)):
        text = "\n".join(f"step {i} loss 2.{i} step_time {seconds}" for i in range(30))
        (tmp_path / name).write_text(text, encoding="utf-8")
    from stallwise.doctor.compare import compare

    found = compare([str(tmp_path / "good.log")], [str(tmp_path / "bad.log")])
    assert found.rows() and "srcdoc=" in found._repr_html_() and found._repr_markdown_().startswith("# The second is")


def test_the_tutorial_notebook_runs() -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    book = nbformat.read(TUTORIAL, as_version=4)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(REPO / "src"), os.environ.get("PYTHONPATH", "")])
    client = nbclient.NotebookClient(
        book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(REPO)}}
    )
    client.execute()
    shown = [o for c in book.cells if c.cell_type == "code" for o in c.outputs]
    assert any("text/html" in o.get("data", {}) for o in shown)
    assert not [o for o in shown if o.output_type == "error"]
