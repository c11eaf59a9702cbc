"""Cause `cold_start`: the first calls of a process are what is measured."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import hugging_face, sizes


@planted("cold_start", "warm_up", own_process=True)
def wav2vec2_timed_from_its_first_recording(torch: Any, fix: str | None) -> Step:
    """A service that writes down speech with a Wav2Vec2 is timed from the first recordings after its start.

    The first one loads libraries and kernels and lets cuDNN choose its convolutions; all later ones find them ready. A
    few recordings of silence when the service starts take that time from the first user.
    """
    transformers = hugging_face()
    width, layers, heads, letters, batch, samples, channels = sizes(
        (768, 6, 12, 32, 4, 80_000, 512), (32, 1, 2, 10, 2, 800, 8)
    )
    config = transformers.Wav2Vec2Config(
        vocab_size=letters,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        conv_dim=(channels,) * 7,
        num_conv_pos_embedding_groups=sizes(16, 2),
    )
    model = transformers.Wav2Vec2ForCTC(config).to("cuda", torch.float16).eval()
    speech = torch.randn(batch, samples).pin_memory()

    def step() -> Any:
        with torch.inference_mode():
            sound = speech.to("cuda", non_blocking=True).to(torch.float16)
            return model(input_values=sound).logits.argmax(-1).tolist()  # planted

    if fix:
        for _ in range(5):
            step()
        torch.cuda.synchronize()
    return step
