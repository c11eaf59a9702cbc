"""Programs to learn and to measure with: steps with one planted fault each, and what records them."""
