"""The local page: reports, planners and drills in a browser on this machine, and only there."""
