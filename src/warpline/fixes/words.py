"""Formats counts, lists and places for the sentence of a claim."""

from __future__ import annotations

import re
from collections.abc import Iterable

WORDS_OF_A_RECORDING = (
    (r"\bof the recorded steps\b", "of the recording"),
    (r"\b(a|the) step of\b", "a recording of"),
    (r"\beach ([\d.,]+ [mµn]?s) step\b", r"the \1 recording"),
    (r"\bA step\b", "The recording"),
    (r"\b(within|in|of) (the|each|every) step\b", r"\1 the recording"),
    (r"\b(bring|keep) the step\b", r"\1 the recording"),
    (r" a step\b", " in the recording"),
)
"""What is said of steps, and what is said of a recording that has none."""


def listed(parts: Iterable[str]) -> str:
    """Join parts of a sentence: a, b and c."""
    words = list(parts)
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def in_function(spot: str) -> str:
    """Where to make the change: frames show the function's first line, not the line of the call."""
    return f" in the function at {spot}" if spot else ""


def of_recording(sentence: str) -> str:
    """A sentence about steps as one about a recording without steps."""
    for step, recording in WORDS_OF_A_RECORDING:
        sentence = re.sub(step, recording, sentence)
    return sentence
