"""Ray Train, every worker of which `warpline run` records (docs/recipes.md).

warpline run --output /shared/run1 ray_train.py
"""

import os

import ray
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model

INJECTED = ("WARPLINE_CAPTURE", "PYTHONPATH", "KINETO_LOG_LEVEL", "TEARDOWN_CUPTI")
"""What `warpline run` gives its program; Ray gives it to the workers of every node."""


def train_loop() -> None:
    """Forty steps of one worker."""
    import torch  # noqa: PLC0415 - in the worker

    model = prepare_model(torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)))
    device = next(model.parameters()).device
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(40):
        loss = model(torch.randn(64, 256, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    env_vars = {name: os.environ[name] for name in INJECTED if name in os.environ}
    ray.init(runtime_env={"env_vars": env_vars})
    use_gpu = ray.cluster_resources().get("GPU", 0) >= 2
    scaling = ScalingConfig(num_workers=2, use_gpu=use_gpu, placement_strategy="SPREAD")
    TorchTrainer(train_loop, scaling_config=scaling, run_config=RunConfig(name="recipe")).fit()
