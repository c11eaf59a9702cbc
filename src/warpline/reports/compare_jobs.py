"""The comparison of two jobs as sections: the verdict, and the ranks, process groups and kernels that changed."""

from __future__ import annotations

from collections.abc import Sequence

from warpline.ranks.comparison import ChangedKernel, ChangedRank, JobComparison
from warpline.ranks.job import Job
from warpline.ranks.words import shown_ranks
from warpline.reports.compare import reason_notes
from warpline.reports.sections import Column, Content, Report, Section, Table, Text, Value
from warpline.units import capitalised, several

LISTED = 8
_RANKS = (
    Column("rank", "rank", "number", key=True),
    Column("a_ns", "step A", "ns", priority=2),
    Column("b_ns", "step B", "ns", priority=2),
    Column("compute_ns", "compute", "change_ns"),
    Column("transfer_ns", "transfer", "change_ns"),
    Column("wait_ns", "waits for others", "change_ns"),
    Column("idle_ns", "idle", "change_ns"),
)
_GROUPS = (
    Column("group", "group", key=True),
    Column("transfer_a_ns", "transfer A", "ns"),
    Column("transfer_b_ns", "transfer B", "ns"),
    Column("wait_ns", "waiting", "change_ns"),
    Column("bandwidth_a", "bandwidth A", "bytes_per_second", priority=2),
    Column("bandwidth_b", "bandwidth B", "bytes_per_second", priority=2),
)
_KERNELS = (
    Column("name", "kernel", key=True),
    Column("change_ns", "mean change", "change_ns"),
    Column("rank", "most on rank", "number"),
    Column("a_ns", "A", "ns"),
    Column("b_ns", "B", "ns"),
)


def report(comparison: JobComparison, verbose: bool = False) -> Report:
    """The comparison; `verbose` lists all ranks, groups and kernels."""
    lead: list[Content] = [Text(comparison.sentence, "strong")]
    if comparison.causes:
        text = "; ".join(comparison.causes)
        lead.append(Text(f"{capitalised(text)}."))
    lead += [Text(f"{name}: {job.verdict.sentence}", "quiet") for name, job in _sides(comparison)]
    if comparison.reasons:
        lead.append(reason_notes(comparison.verdict, comparison.reasons))
    sections = [Section("answer", "Answer", tuple(lead), is_lead=True)]
    if comparison.verdict != "not_comparable":
        groups = tuple(
            (
                shown_ranks(one.ranks),
                one.transfer.a_ns,
                one.transfer.b_ns,
                one.wait.change_ns,
                *one.bandwidth,
            )
            for one in comparison.groups
        )
        sections += [
            Section("ranks", "Change of each rank, per step", (_table(_RANKS, _ranks(comparison.ranks), verbose),)),
            Section("groups", "Process groups, per step", (_table(_GROUPS, groups, verbose),)),
        ]
        kernels = _kernels(comparison.kernels)
        if kernels:
            sections.append(Section("kernels", "Kernels, per step", (_table(_KERNELS, kernels, verbose),)))
    title = " · ".join(
        f"{name} {job.name} ({several(len(job.ranks), 'rank')}, {several(len(job.step_numbers), 'step')})"
        for name, job in _sides(comparison)
    )
    return Report(title, tuple(sections))


def _sides(comparison: JobComparison) -> tuple[tuple[str, Job], tuple[str, Job]]:
    return ("A", comparison.a), ("B", comparison.b)


def _ranks(ranks: Sequence[ChangedRank]) -> tuple[tuple[Value, ...], ...]:
    return tuple(
        (
            str(one.rank),
            one.step.a_ns,
            one.step.b_ns,
            one.compute.change_ns,
            one.transfer.change_ns,
            one.wait.change_ns,
            one.idle.change_ns,
        )
        for one in ranks
    )


def _kernels(kernels: Sequence[ChangedKernel]) -> tuple[tuple[Value, ...], ...]:
    return tuple(
        (one.name, one.time.change_ns, str(one.most_on_rank), one.most.a_ns, one.most.b_ns)
        for one in kernels
        if one.most.change_ns
    )


def _table(columns: tuple[Column, ...], rows: tuple[tuple[Value, ...], ...], verbose: bool) -> Table:
    shown = rows if verbose else rows[:LISTED]
    hidden = len(rows) - len(shown)
    return Table(columns, shown, hidden, f"{hidden} more: -v" if hidden else "")
