"""The same facts in other clothes: ways in which people and programs hand the same numbers and lines on."""
