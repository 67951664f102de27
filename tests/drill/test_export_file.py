"""An export of progress that is none is refused in a sentence."""

from __future__ import annotations

import pytest

from stallwise.drill.progress import load_export
from stallwise.errors import UnreadableInput


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "[]", "\x00"])
def test_a_file_of_another_kind_is_refused(tmp_path, text: str) -> None:
    (tmp_path / "some.json").write_text(text)
    with pytest.raises(UnreadableInput):
        load_export(tmp_path / "some.json")
