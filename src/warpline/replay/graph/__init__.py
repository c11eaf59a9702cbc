"""The dependency graph of a trace: its model, and how it is built from threads, streams, waits and events."""
