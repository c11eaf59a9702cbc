"""Many ranks of one job: who is late, why, and what it costs.

`files` finds the ranks of a folder, `summary` keeps of each what the rest needs, `match` finds the same collective on
all ranks, `clocks` aligns their clocks, `waits` splits a collective into waiting and transfer, `program` and `replay`
run all ranks together, `straggler` names who is waited for and `reasons` says why. `job` puts it together.
"""
