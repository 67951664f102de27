"""The door for agents: the doctor and the planner as tools of the Model Context Protocol."""
