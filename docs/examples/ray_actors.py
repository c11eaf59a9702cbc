"""Data-parallel training on plain Ray actors, every one of which `warpline run` records (docs/recipes.md).

warpline run --output /shared/run1 ray_actors.py
"""

import os
import socket

import ray

WORKERS = 2
INJECTED = ("WARPLINE_CAPTURE", "PYTHONPATH", "KINETO_LOG_LEVEL", "TEARDOWN_CUPTI")
"""What `warpline run` gives its program; Ray gives it to the workers of every node."""


@ray.remote(num_cpus=1)
class Worker:
    """One rank."""

    def address(self) -> str:
        """Where rank 0 can be reached."""
        with socket.socket() as free:
            free.bind(("", 0))
            return f"tcp://{ray.util.get_node_ip_address()}:{free.getsockname()[1]}"

    def train(self, rank: int, address: str) -> str:
        """Forty steps."""
        import torch  # noqa: PLC0415 - in the worker
        from torch.nn.parallel import DistributedDataParallel  # noqa: PLC0415

        device = "cuda" if torch.cuda.is_available() else "cpu"
        backend = "nccl" if device == "cuda" else "gloo"
        torch.distributed.init_process_group(backend, init_method=address, rank=rank, world_size=WORKERS)
        layers = [torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)]
        model = DistributedDataParallel(torch.nn.Sequential(*layers).to(device))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(40):
            loss = model(torch.randn(64, 256, device=device)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.distributed.destroy_process_group()
        return ray.get_runtime_context().get_node_id()


if __name__ == "__main__":
    env_vars = {name: os.environ[name] for name in INJECTED if name in os.environ}
    ray.init(runtime_env={"env_vars": env_vars})
    workers = [Worker.options(scheduling_strategy="SPREAD").remote() for _ in range(WORKERS)]
    address = ray.get(workers[0].address.remote())
    nodes = ray.get([worker.train.remote(rank, address) for rank, worker in enumerate(workers)])
    print(f"{WORKERS} workers on {len(set(nodes))} nodes")
