"""Nodes of the tree: a measured value, or the section that would have it."""

from __future__ import annotations

from warpline.dive.kernel_metrics import KernelMetrics
from warpline.dive.metrics import METRICS
from warpline.dive.model import Node

NOT_RECORDED = "not recorded; section {section} has it"


def metric_node(metrics: KernelMetrics, question: str, key: str, answer: str) -> Node:
    """A question that one metric answers."""
    value = metrics.get(key)
    if value is None:
        return Node(question, metrics.name(key), None, "", NOT_RECORDED.format(section=METRICS[key].section))
    return Node(question, metrics.name(key), value, metrics.unit(key), answer)


def derived_node(question: str, metric: str, value: float | None, unit: str, answer: str, section: str = "") -> Node:
    """A question that several metrics answer together."""
    if value is None:
        return Node(question, metric, None, "", NOT_RECORDED.format(section=section))
    return Node(question, metric, value, unit, answer)
