"""torch's own key_averages() of three CUDA programs, and the exported trace of the same steps.

    python key_averages.py FOLDER

Afterwards `warpline scrub --keep names` on each trace, and xz.
"""

import gzip
import json
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile, record_function, schedule

FIELDS = ("self_cpu_time_total", "cpu_time_total", "self_device_time_total", "device_time_total")


def training():
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.LayerNorm(512), nn.Dropout(0.1), nn.Linear(512, 16)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())

    def step():
        with record_function("load"):
            x, y = torch.randn(64, 256).cuda(), torch.randint(16, (64,)).pin_memory().cuda(non_blocking=True)
        with record_function("train"):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        loss.item()

    return step


def attention():
    layer = nn.TransformerEncoderLayer(256, 4, 512, batch_first=True, dropout=0.0).cuda().half()
    side = torch.cuda.Stream()
    x = torch.randn(8, 128, 256, device="cuda", dtype=torch.float16)

    def step():
        layer(x).sum().backward()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.zeros(1 << 20, device="cuda").cumsum(0).cpu()
        torch.cuda.current_stream().wait_stream(side)
        conv = functional.conv2d(torch.randn(4, 3, 32, 32, device="cuda"), torch.randn(8, 3, 3, 3, device="cuda"))
        conv.double().to(torch.float32).contiguous().topk(4)
        x.nonzero()
        torch.block_diag(*[torch.ones(3, 3, device="cuda") for _ in range(3)]).to(torch.int64).unique()

    return step


def graph():
    model = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512)).cuda().eval()
    x = torch.randn(32, 512, device="cuda")
    side = torch.cuda.Stream()
    with torch.no_grad():
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            model(x)
        torch.cuda.current_stream().wait_stream(side)
        held = torch.cuda.CUDAGraph()
        with torch.cuda.graph(held):
            y = model(x)

    def step():
        with record_function("outer"):
            x.copy_(torch.randn(32, 512, device="cuda"))
            with record_function("replay"):
                held.replay()
            with record_function("read"):
                y.sum().item()
                y.clone().zero_()

    return step


def rows(averages):
    kept = [event for event in averages if str(event.device_type) == "DeviceType.CPU"]
    times = [[round(1000 * getattr(event, field)) for field in FIELDS] for event in kept]
    return [[event.key, event.input_shapes or [], event.count, *time] for event, time in zip(kept, times, strict=True)]


def main(folder: Path) -> None:
    torch.manual_seed(0)
    found = {}
    for name, make in (("training", training), ("attention", attention), ("graph", graph)):
        step = make()
        for _ in range(3):
            step()
        torch.cuda.synchronize()

        def ready(prof, name=name):
            prof.export_chrome_trace(str(folder / f"{name}.json.gz"))
            found[name] = {
                "plain": rows(prof.key_averages()),
                "shape": rows(prof.key_averages(group_by_input_shape=True)),
            }

        plan = schedule(wait=0, warmup=1, active=2, repeat=1)
        both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
        with profile(activities=both, record_shapes=True, schedule=plan, on_trace_ready=ready) as prof:
            for _ in range(3):
                step()
                torch.cuda.synchronize()
                prof.step()
    with gzip.open(folder / "key_averages.json.gz", "wt") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
