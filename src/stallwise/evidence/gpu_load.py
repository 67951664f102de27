"""Samples of a GPU's state over time, and from which load on they say something about its health."""

SAMPLES = "gpu.samples"  # the kind of table that holds them

# Of a GPU's utilisation or power. At lower use the driver lowers clocks and link speed on purpose.
LOADED_SHARE = 0.5
