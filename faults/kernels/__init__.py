"""Hand-written kernels with one known flaw each, their cured forms, and the recorder of their reports."""
