"""The small host and device that drills are made with, for tests of measures and rules."""

from stallwise.drill.artifacts.scripted_run import ScriptedRun

__all__ = ["ScriptedRun"]
