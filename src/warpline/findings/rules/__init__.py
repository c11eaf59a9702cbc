"""One file a rule; the list is in the order in which equal gains are preferred."""

from __future__ import annotations

from warpline.findings.rule import Rule
from warpline.findings.rules import (
    allocator_churn,
    below_roofline,
    cat_growth,
    channels_first,
    cold_start,
    copy_not_overlapped,
    exposed_collective,
    fp32_gemm,
    full_precision,
    hidden_sync,
    large_copy_to_host,
    launch_bound,
    many_small_copies,
    many_small_gemms,
    misaligned_gemm,
    pageable_copy,
    per_parameter_optimizer,
    redundant_copies,
    results_not_overlapped,
    slow_input,
    uncompiled,
    unfused_attention,
    unfused_elementwise,
    unfused_optimizer,
)

RULES: tuple[Rule, ...] = tuple(
    module.RULE
    for module in (
        cold_start,
        slow_input,
        hidden_sync,
        pageable_copy,
        large_copy_to_host,
        many_small_copies,
        copy_not_overlapped,
        results_not_overlapped,
        allocator_churn,
        cat_growth,
        redundant_copies,
        unfused_attention,
        fp32_gemm,
        misaligned_gemm,
        channels_first,
        per_parameter_optimizer,
        unfused_optimizer,
        many_small_gemms,
        exposed_collective,
        full_precision,
        unfused_elementwise,
        launch_bound,
        uncompiled,
        below_roofline,
    )
)
