"""One card whole, in slices and shared: the slices are those on record, and parts never give more than the whole."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from stallwise.errors import BadRequest
from stallwise.physics.specs.deployment import Deployment
from stallwise.physics.specs.hardware import all_gpus, gpu
from stallwise.physics.specs.mig import profiles
from stallwise.physics.specs.model import find_model
from stallwise.planner.card_sharing import MIG, MPS, WHOLE, cards_for, ways
from stallwise.planner.serving import Question
from stallwise.surfaces.cli import main

CARD = gpu("h100-sxm")
ASKED = Question(find_model("llama-3.1-8b"), (CARD,), 1000, 300, 4.0, 1.0, 0.05)
DEPLOYED = Deployment(ASKED.model, CARD)


def test_profiles_never_hand_out_more_than_a_card() -> None:
    cut = [(g, p) for g in all_gpus() for p in profiles(g)]
    assert len({g.name for g, _ in cut}) >= 10
    for card, p in cut:
        assert p.count * p.compute_share <= 1 and p.count * p.memory_share <= 1, (card.name, p)
        labelled_gb = float(p.name.partition(".")[2].removesuffix("gb"))
        part = p.cut(card)
        assert part.memory_bytes / 2**30 == pytest.approx(labelled_gb, rel=0.15)
        assert part.bandwidth_byte_per_s == pytest.approx(card.bandwidth_byte_per_s * p.memory_share)


def test_a_slice_that_the_weights_do_not_fit_is_refused_with_the_number() -> None:
    by_name = {w.name: w for w in ways(DEPLOYED, ASKED)}
    small = by_name["MIG 1g.10gb x 7"]
    assert small.limit is None and "weights need 16.1 GB" in small.why_not
    assert cards_for(small, ASKED) is None
    assert by_name["MIG 3g.40gb x 2"].limit is not None and by_name["whole card"].limit is not None


def test_a_token_in_a_slice_takes_as_much_longer_as_there_is_less_bandwidth() -> None:
    found = ways(DEPLOYED, ASKED)
    whole = next(w for w in found if w.by == WHOLE)
    half = next(w for w in found if w.name == "MIG 3g.40gb x 2")
    shared = next(w for w in found if w.name == "MPS x 2")
    assert whole.busy and half.busy and half.alone and shared.busy and shared.alone
    read_s = whole.room.weight_bytes / CARD.achieved_byte_per_s
    assert half.busy.tpot_s - whole.busy.tpot_s == pytest.approx(read_s, rel=0.15)  # once more the time of the bytes
    assert half.alone.tpot_s == half.busy.tpot_s  # walls: the neighbours' rest does not help
    assert shared.alone.tpot_s == pytest.approx(whole.busy.tpot_s, rel=0.01)  # no walls: it does
    assert shared.busy.tpot_s > shared.alone.tpot_s


def test_only_what_was_asked_for_and_nonsense_is_refused() -> None:
    assert {w.by for w in ways(DEPLOYED, ASKED, (MPS,))} == {MPS}
    assert {w.by for w in ways(DEPLOYED, ASKED, (MIG,))} == {MIG}
    with pytest.raises(BadRequest, match="not shared by"):
        ways(DEPLOYED, ASKED, ("time",))
    with pytest.raises(BadRequest, match="no MIG profile"):
        ways(replace(DEPLOYED, gpu=gpu("l40s")), ASKED, (MIG,))


def test_the_command_as_json() -> None:
    args = ["plan", "share", "--model", "qwen2.5-1.5b", "--gpu", "h200", "--by", "mig", "--json"]
    answer = json.loads(CliRunner().invoke(main, args).output)
    assert [w["models"] for w in answer["ways"]] == [7, 4, 3, 2, 1]
    assert all(w["token_per_s_card"] == pytest.approx(w["models"] * w["token_per_s_each"]) for w in answer["ways"])
