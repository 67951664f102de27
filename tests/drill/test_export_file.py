"""An export of progress that is none is refused in a sentence."""

from __future__ import annotations

from click.testing import CliRunner

from stallwise.cli import main


def test_a_deeply_nested_file_is_refused(tmp_path) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000)
    result = CliRunner().invoke(main, ["drill", "import", str(tmp_path / "deep.json")])
    assert result.exit_code == 3
