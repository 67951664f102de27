"""From which load on a GPU's state says something about its health."""

# Of a GPU's utilisation or power. At lower use the driver lowers clocks and link speed on purpose.
LOADED_SHARE = 0.5
