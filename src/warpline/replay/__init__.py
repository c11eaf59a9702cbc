"""Replay: the dependency graph of a trace, its simulator, and fixes tried on it.

>>> from warpline.replay import replay, whatif
"""

from warpline.replay.replay import Replay, replay
from warpline.replay.whatif import Prediction, WhatIf

__all__ = ["Prediction", "Replay", "WhatIf", "replay"]
