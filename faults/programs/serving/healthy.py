"""Cause `healthy`: steps that keep the GPU busy with what has to be done, whatever they look like."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import graphed, weights


@planted("healthy", None, innocent="cuda_graph")
def particles_sorted_by_cell(torch: Any, fix: str | None) -> Step:
    """A simulation sorts sixteen million particles by the cell that they are in, and moves them to their new places.

    A sort is a row of launches that pass over the same memory again and again, but each pass is at the pace of the
    memory, and there is no way to sort in one. A graph would save launches that nothing waits for.
    """
    count = 1 << 24
    cells = torch.randint(0, 1 << 20, (count,), device="cuda", dtype=torch.int32)
    particles = torch.randn(count, 8, device="cuda")

    def step() -> Any:
        order = cells.sort()
        return order.values, particles.index_select(0, order.indices)

    return graphed(torch, step) if fix else step


@planted("healthy", None, trap=True, innocent="streams")
def towers_one_after_the_other(torch: Any, fix: str | None) -> Step:
    """A retriever embeds its queries and its documents with two networks that have nothing to do with each other.

    They could run on two streams, but the matmuls of either fill the GPU on their own: side by side they only share
    what one of them has to itself.
    """
    queries = torch.randn(16384, 4096, device="cuda", dtype=torch.bfloat16)
    documents = torch.randn(16384, 4096, device="cuda", dtype=torch.bfloat16)
    asking = weights(torch, 3, 4096, 4096, torch.bfloat16)
    answering = weights(torch, 3, 4096, 4096, torch.bfloat16)
    side = torch.cuda.Stream()

    def tower(x: Any, layers: list[Any]) -> Any:
        for weight in layers:
            x = x @ weight
        return x

    def in_a_row() -> Any:
        return tower(queries, asking), tower(documents, answering)

    def side_by_side() -> Any:
        here = torch.cuda.current_stream()
        side.wait_stream(here)
        with torch.cuda.stream(side):
            first = tower(queries, asking)
        second = tower(documents, answering)
        here.wait_stream(side)
        return first, second

    return side_by_side if fix else in_a_row
