"""Planted faults: programs, recorder, recordings and the scoreboard. Not part of the installed package."""
