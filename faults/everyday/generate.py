"""Text generation with a small Llama-like model in plain PyTorch: kv-cache, top-k sampling, one prompt at a time."""
import math, os, random, time
import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL, QUICK = os.environ.get("SMALL") == "1", os.environ.get("QUICK") == "1"
SCALE = float(os.environ.get("STEPS_SCALE", 1))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DIM, LAYERS, HEADS, VOCAB = (32, 2, 2, 200) if SMALL else (1024, 16, 16, 32000)
NEW_TOKENS = max(4, int((8 if SMALL else 160 if QUICK else 256) * SCALE))
PROMPTS = 2 if SMALL or QUICK else 6
PROMPT_LEN, EOS = (8 if SMALL else 64), 2


def rope(x, start):
    half = x.shape[-1] // 2
    freqs = 1.0 / (10000 ** (torch.arange(half, device=x.device).float() / half))
    pos = torch.arange(start, start + x.shape[2], device=x.device).float()
    angles = pos[:, None] * freqs[None, :]
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    x1, x2 = x[..., :half], x[..., half:]
    return torch.cat([x1 * cos - x2 * sin, x1 * sin + x2 * cos], dim=-1)


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        h = x.float()
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * h.to(x.dtype)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(DIM, DIM, bias=False) for _ in range(4))

    def forward(self, x, start, cache):
        B, T, _ = x.shape
        q, k, v = (proj(x).view(B, T, HEADS, -1).transpose(1, 2) for proj in (self.q, self.k, self.v))
        q, k = rope(q, start), rope(k, start)
        if cache is not None:
            k = torch.cat([cache[0], k], dim=2)
            v = torch.cat([cache[1], v], dim=2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(DIM // HEADS)
        if T > 1:
            mask = torch.full((T, k.shape[2]), float("-inf"), device=x.device, dtype=x.dtype)
            scores = scores + mask.triu(1)
        probs = F.softmax(scores.float(), dim=-1).to(x.dtype)
        return self.o((probs @ v).transpose(1, 2).reshape(B, T, DIM)), (k, v)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2, self.attn = RMSNorm(DIM), RMSNorm(DIM), Attention()
        self.w1, self.w3 = nn.Linear(DIM, DIM * 8 // 3, bias=False), nn.Linear(DIM, DIM * 8 // 3, bias=False)
        self.w2 = nn.Linear(DIM * 8 // 3, DIM, bias=False)

    def forward(self, x, start, cache):
        a, cache = self.attn(self.n1(x), start, cache)
        x = x + a
        h = self.n2(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h)), cache


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = RMSNorm(DIM), nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, ids, start, caches):
        x, new = self.embed(ids), []
        for block, cache in zip(self.blocks, caches):
            x, cache = block(x, start, cache)
            new.append(cache)
        return self.head(self.norm(x)), new


def sample(logits, temperature=0.8, top_k=50):
    logits = logits.float() / temperature
    values, index = torch.topk(logits, top_k)
    choice = torch.multinomial(F.softmax(values, dim=-1), 1)
    return index.gather(-1, choice)


@torch.no_grad()
def generate(model, prompt, new_tokens):
    ids = torch.tensor([prompt]).to(DEVICE)
    logits, caches = model(ids, 0, [None] * LAYERS)
    out = []
    for i in range(new_tokens):
        nxt = sample(logits[:, -1])
        token = nxt.item()
        if token == EOS:
            break
        out.append(token)
        logits, caches = model(nxt, len(prompt) + i, caches)
    return out


def main():
    torch.manual_seed(0)
    random.seed(0)
    with torch.device(DEVICE):
        model = Llama().to(torch.bfloat16).eval()
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.0f}M parameters")
    prompts = [[random.randrange(3, VOCAB) for _ in range(PROMPT_LEN)] for _ in range(PROMPTS)]
    generate(model, prompts[0], NEW_TOKENS // 4)  # warm up
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    t0, total = time.perf_counter(), 0
    for n, prompt in enumerate(prompts):
        begin = time.perf_counter()
        out = generate(model, prompt, NEW_TOKENS)
        total += len(out)
        print(f"prompt {n}: {len(out)} tokens, {len(out) / (time.perf_counter() - begin):.1f} tokens/s, {out[:6]}...", flush=True)
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    print(f"ms_per_step={(time.perf_counter() - t0) * 1000 / total:.3f}")


if __name__ == "__main__":
    main()
