"""Replay: the dependency graph of a trace, its simulator, and fixes tried on it.

>>> from warpline.replay import replay, whatif
"""

from warpline.replay.replay import Replay, replay
from warpline.replay.whatif import Estimate, Prediction, WhatIf, whatif

__all__ = ["Estimate", "Prediction", "Replay", "WhatIf", "replay", "whatif"]
