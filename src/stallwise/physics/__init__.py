"""What it should have taken: specs (hardware, models, layouts), costs (FLOPs, bytes, seconds), sim (schedules, services, replay) and probe (what this machine reaches)."""
