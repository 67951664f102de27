"""Rank causes when no prover fired: one calibrated linear model over affirmed words, facts, events and clues.

`features` says what the model sees, `model` holds the compiled weights (written by bench/fit_recognise.py), `ranking` puts them
together: probabilities that add up to one with "something else" among them, the 90% set, and the user's own lines as evidence.
"""

from stallwise.doctor.recognise.ranking import Ranking, recognise, trouble_in

__all__ = ["Ranking", "recognise", "trouble_in"]
