"""The costs of one trace: those of its host and those of its device, found once."""

from __future__ import annotations

from msgspec import Struct

from warpline.analyses.device import trace_device, trace_host_link, trace_peers
from warpline.errors import WarplineError
from warpline.hardware import roof_of
from warpline.replay.costs.device import DeviceCosts, device_costs
from warpline.replay.costs.host import DEFAULT, HostCosts, host_costs
from warpline.trace.trace import Trace


class Costs(Struct, frozen=True):
    """Costs of the host and the device that recorded a trace."""

    host: HostCosts
    device: DeviceCosts


def find_costs(trace: Trace) -> Costs:
    """Costs of the host that recorded a trace and of the (first) device in it."""
    try:
        _, chip = trace_device(trace)
        roof = roof_of(chip) if chip else None
    except WarplineError:
        roof = None
    peers = () if roof else tuple(roof_of(peer) for peer in trace_peers(trace))
    return Costs(host_costs(trace), device_costs(roof, trace_host_link(trace), peers))


def default_costs() -> Costs:
    """Costs of an unknown host and device."""
    return Costs(DEFAULT, device_costs(None))
