"""Hardware counters: which metric exists on which chip, what it counts, and what replaces it elsewhere."""
