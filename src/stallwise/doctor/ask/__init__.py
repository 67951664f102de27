"""Ask what separates the causes that are left: `bank` holds the questions and how often each answer is given under each cause,
`choose` picks the one with the highest expected information, `reply` turns an answer into facts and words.

An answer is evidence like any other: the diagnosis is run again with it (doctor/examine.py).
"""
