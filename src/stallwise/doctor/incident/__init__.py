"""An incident of several files: one clock, first fault, what followed, owner, hosts to drain."""
