"""What it should have taken: specs, costs, sim (schedules, services, replay), and probe (what this machine reaches)."""
