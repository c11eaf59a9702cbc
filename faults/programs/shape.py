"""Cause `kernel`, by shape: layouts and grids with which a kernel cannot use the whole GPU."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted


@planted("kernel", "channels_last")
def channels_first_convolution(torch: Any, fix: str | None) -> Step:
    """Convolutions in bfloat16 on tensors laid out channels first.

    The tensor cores' kernels want channels last, so each convolution transposes its input and its output.
    """
    conv = torch.nn.functional.conv2d
    layout = torch.channels_last if fix else torch.contiguous_format
    x = torch.randn(64, 128, 56, 56, device="cuda", dtype=torch.bfloat16).to(memory_format=layout)
    filters = [
        (torch.randn(128, 128, 3, 3, device="cuda") * 0.03).to(torch.bfloat16).to(memory_format=layout)
        for _ in range(4)
    ]

    def step() -> Any:
        y = x
        for weight in filters:
            y = torch.relu(conv(y, weight, padding=1))  # planted
        return y

    return step


@planted("kernel", "streams")
def independent_branches_in_a_row(torch: Any, fix: str | None) -> Step:
    """Six independent scans, each of which can use a few of the 132 multiprocessors, run one after the other.

    On streams of their own they run at the same time.
    """
    rows = [torch.randn(8, 262_144, device="cuda") for _ in range(6)]
    streams = [torch.cuda.Stream() for _ in rows] if fix else []

    def in_a_row() -> Any:
        return [torch.cumsum(branch, -1) for branch in rows]  # planted

    def at_once() -> Any:
        main, results = torch.cuda.current_stream(), []
        for stream, branch in zip(streams, rows, strict=True):
            stream.wait_stream(main)
            with torch.cuda.stream(stream):
                results.append(torch.cumsum(branch, -1))
        for stream in streams:
            main.wait_stream(stream)
        return results

    return at_once if fix else in_a_row


@planted("kernel", "at_roofline")
def contended_scatter(torch: Any, fix: str | None) -> Step:
    """Four million values are added to 64 bins with `index_add_`, so that the atomic additions queue up.

    The bins are the same in every step and equally full: gathered in the order of the bins, the values are rows to
    sum, with no two threads adding to one address.
    """
    bins, each = 64, 65_536
    order = torch.randperm(bins * each, device="cuda")
    values = torch.randn(bins * each, device="cuda")
    index = torch.empty_like(order)
    index[order] = torch.arange(bins * each, device="cuda") // each
    totals = torch.zeros(bins, device="cuda")

    def step() -> Any:
        if fix:
            return torch.sum(values.index_select(0, order).view(bins, each), 1)
        return totals.zero_().index_add_(0, index, values)  # planted

    return step


@planted("kernel", "at_roofline")
def scan_on_few_rows(torch: Any, fix: str | None) -> Step:
    """A running sum over four long rows, which keeps four of the 132 multiprocessors busy.

    The same sums in two levels, blocks first, use them all.
    """
    x = torch.randn(4, 1024, 1024, device="cuda")
    flat = x.view(4, -1)

    def step() -> Any:
        if not fix:
            return torch.cumsum(flat, -1)  # planted
        inner = torch.cumsum(x, -1)
        before = torch.cumsum(inner[:, :, -1], -1).roll(1, -1)
        before[:, 0] = 0
        return inner.add_(before.unsqueeze(-1))

    return step
