"""The command line: one module per verb; `main` chooses."""
