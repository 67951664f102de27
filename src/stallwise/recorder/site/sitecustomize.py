"""On the path of every Python process that `stallwise record` starts; see stallwise.recorder.autostart."""

from typing import Any

autostart: Any = None
try:
    import importlib
    import os
    import sys

    _here = os.path.dirname(os.path.abspath(__file__))
    try:
        autostart = importlib.import_module("stallwise.recorder.autostart")
    except ImportError:  # the job's own Python has no stallwise: lend it this one package and nothing else of ours
        import importlib.util

        _package = os.path.dirname(os.path.dirname(_here))
        _spec: Any = importlib.util.spec_from_file_location(
            "stallwise", os.path.join(_package, "__init__.py"), submodule_search_locations=[_package]
        )
        sys.modules["stallwise"] = importlib.util.module_from_spec(_spec)
        _spec.loader.exec_module(sys.modules["stallwise"])
        autostart = importlib.import_module("stallwise.recorder.autostart")
    autostart.begin()
except Exception:
    pass
if autostart is not None:
    autostart.chained(_here)  # outside of our `try`: what the user's own file raises is the user's
