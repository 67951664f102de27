"""On the path of every Python process that `stallwise record` starts; see stallwise.instrument.autostart."""

try:
    import os
    import sys

    _here = os.path.dirname(os.path.abspath(__file__))
    _root = os.path.dirname(os.path.dirname(os.path.dirname(_here)))
    try:
        from stallwise.instrument import autostart
    except ImportError:  # the job's own Python has no stallwise: borrow ours, at the very end of its path
        sys.path.append(_root)
        from stallwise.instrument import autostart
    autostart.begin()
    autostart.chained(_here)
except Exception:
    pass
