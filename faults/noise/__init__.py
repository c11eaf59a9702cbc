"""How much runs of one program differ on a real GPU, and what follows for the gate's false alarms and misses."""
