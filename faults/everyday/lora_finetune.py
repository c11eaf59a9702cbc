"""LoRA fine-tuning of a GPT-2 sized model on instruction data, small micro-batches + gradient accumulation."""
import os, random, time, zlib
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel

SMALL, QUICK = os.environ.get("SMALL") == "1", os.environ.get("QUICK") == "1"
STEPS = max(4, int((4 if SMALL else 12 if QUICK else 60) * float(os.environ.get("STEPS_SCALE", 1))))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LAYERS, DIM, HEADS, VOCAB, MAX_LEN = (2, 32, 2, 300, 96) if SMALL else (12, 768, 12, 50257, 256)
MICRO_BATCH = 2
ACCUM = 8
EXAMPLES = 64 if SMALL else 2000


class LoRALayer(nn.Module):
    """Wraps one of GPT-2's Conv1D layers."""
    def __init__(self, base, r=8, alpha=16):
        super().__init__()
        n_in, n_out = base.weight.shape
        self.base = base
        self.A = nn.Parameter(torch.randn(n_in, r) * 0.01)
        self.B = nn.Parameter(torch.zeros(r, n_out))
        self.dropout = nn.Dropout(0.05)
        self.scale = alpha / r

    def forward(self, x):
        return self.base(x) + self.dropout(x) @ self.A @ self.B * self.scale


def add_lora(model):
    for p in model.parameters():
        p.requires_grad = False
    for block in model.transformer.h:
        block.attn.c_attn = LoRALayer(block.attn.c_attn)
        block.attn.c_proj = LoRALayer(block.attn.c_proj)
    n = sum(p.numel() for p in model.parameters() if p.requires_grad)
    total = sum(p.numel() for p in model.parameters())
    print(f"trainable params: {n:,} || all params: {total:,} || trainable%: {100 * n / total:.3f}")
    return model


class Instructions(Dataset):
    """Made-up instruction / answer pairs, tokenised when asked for."""
    WORDS = "the a of to write list explain how why model river bread winter code table seven train light".split()

    def __init__(self, n, seed=0):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(n):
            text = lambda lo, hi: " ".join(rng.choices(self.WORDS, k=rng.randint(lo, hi)))
            self.rows.append({"instruction": text(8, 40), "output": text(30, 190)})

    def __len__(self):
        return len(self.rows)

    def tokenize(self, text):
        return [zlib.crc32(w.encode()) % (VOCAB - 1) + 1 for w in text.split()]

    def __getitem__(self, i):
        row = self.rows[i]
        prompt = self.tokenize("### Instruction: " + row["instruction"] + " ### Response:")
        answer = self.tokenize(row["output"])
        ids = (prompt + answer)[:MAX_LEN]
        labels = ([-100] * len(prompt) + answer)[:MAX_LEN]
        return ids, labels


def collate(batch):
    longest = max(len(ids) for ids, _ in batch)
    input_ids = torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in batch])
    labels = torch.tensor([lab + [-100] * (longest - len(lab)) for _, lab in batch])
    mask = torch.tensor([[1] * len(ids) + [0] * (longest - len(ids)) for ids, _ in batch])
    return {"input_ids": input_ids, "attention_mask": mask, "labels": labels}


def main():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=VOCAB, n_positions=MAX_LEN, n_embd=DIM, n_layer=LAYERS, n_head=HEADS, use_cache=False,
                        bos_token_id=0, eos_token_id=0)
    with torch.device(DEVICE):
        model = add_lora(GPT2LMHeadModel(config))
    model.train()
    loader = DataLoader(Instructions(EXAMPLES), batch_size=MICRO_BATCH, shuffle=True, drop_last=True, collate_fn=collate)
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, lr=2e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)

    step, micro, running = 0, 0, 0.0
    while step < STEPS:
        for batch in loader:
            if step == STEPS // 3 and micro % ACCUM == 0:
                if DEVICE == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            batch = {k: v.to(DEVICE) for k, v in batch.items()}
            loss = model(**batch).loss / ACCUM
            loss.backward()
            running += loss.item()
            micro += 1
            if micro % ACCUM == 0:
                torch.nn.utils.clip_grad_norm_(params, 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                step += 1
                print(f"step {step}/{STEPS} loss {running:.4f} lr {scheduler.get_last_lr()[0]:.2e}", flush=True)
                running = 0.0
                if step >= STEPS:
                    break
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    print(f"ms_per_step={(time.perf_counter() - t0) * 1000 / (STEPS - STEPS // 3):.3f}")


if __name__ == "__main__":
    main()
