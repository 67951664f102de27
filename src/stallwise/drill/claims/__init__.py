"""Reads what a player says into claims and weighs them against an incident."""
