"""Replay of a recorded run: the same work in the same order, timed anew after something was changed.

`graph` holds what depends on what, `host` the host's own clock with time taken out of it, `retime` plays both. None of
them knows a name: who waits for whom is decided by whoever builds the graph.
"""
