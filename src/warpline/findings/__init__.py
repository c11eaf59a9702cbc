"""Findings: what is wrong, what each fix would gain, and the verdict."""
