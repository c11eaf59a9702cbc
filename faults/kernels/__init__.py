"""Hand-written kernels with one known flaw each, their fixed forms, and the recorder of their reports."""
