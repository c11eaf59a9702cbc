"""Remove names of people and machines, and secrets, from a profile; keep what an analysis needs."""
