"""The Python front door: `warpline.open`, the trace that it returns, and the questions to ask of it."""
