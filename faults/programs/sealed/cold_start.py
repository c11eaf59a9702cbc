"""Cause `cold_start`: the first calls of a process are what is measured."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import hugging_face, sizes


@planted("cold_start", "warm_up", own_process=True)
def clip_timed_from_its_first_request(torch: Any, fix: str | None) -> Step:
    """A service that matches images with captions by CLIP is timed from the first request after its start.

    The first request loads libraries and kernels and allocates memory; all later ones find them ready. A few requests
    that nobody waits for, made when the service starts, take that time from the first user.
    """
    transformers = hugging_face()
    width, layers, heads, pixels, batch, words = sizes((768, 6, 12, 224, 8, 64), (32, 2, 2, 32, 2, 8))
    shared = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads, "projection_dim": width}
    text = {"vocab_size": 1000, "max_position_embeddings": words, "intermediate_size": 2 * width, "eos_token_id": 999}
    vision = {"image_size": pixels, "patch_size": 16, "intermediate_size": 4 * width}
    config = transformers.CLIPConfig(
        text_config={**shared, **text, "bos_token_id": 998, "pad_token_id": 0},
        vision_config={**shared, **vision},
        projection_dim=width,
    )
    model = transformers.CLIPModel(config).to("cuda", torch.float16).eval()
    captions = torch.randint(1, 998, (batch, words), device="cuda")
    captions[:, -1] = 999
    images = torch.randn(batch, 3, pixels, pixels, device="cuda", dtype=torch.float16)

    def step() -> Any:
        with torch.inference_mode():
            matches = model(input_ids=captions, pixel_values=images).logits_per_image  # planted
            return matches.float().softmax(-1).argmax(-1).tolist()

    if fix:
        for _ in range(5):
            step()
        torch.cuda.synchronize()
    return step
