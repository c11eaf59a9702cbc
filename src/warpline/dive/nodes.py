"""Nodes of the tree: a measured value, or the section that would have it."""

from __future__ import annotations

from warpline.dive.measured import Measured
from warpline.dive.metrics import METRICS
from warpline.dive.model import Node

NOT_RECORDED = "not recorded; section {section} has it"


def asked(measured: Measured, question: str, key: str, answer: str) -> Node:
    """A question that one metric answers."""
    value = measured.get(key)
    if value is None:
        return Node(question, measured.name(key), None, "", NOT_RECORDED.format(section=METRICS[key].section))
    return Node(question, measured.name(key), value, measured.unit(key), answer)


def worked_out(question: str, metric: str, value: float | None, unit: str, answer: str, section: str = "") -> Node:
    """A question that several metrics answer together."""
    if value is None:
        return Node(question, metric, None, "", NOT_RECORDED.format(section=section))
    return Node(question, metric, value, unit, answer)
