"""Speech recognition: log-mel features of varying length, convolutional subsampling, transformer encoder, CTC."""
import math, os, time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SMALL, QUICK = os.environ.get("SMALL") == "1", os.environ.get("QUICK") == "1"
STEPS = max(6, int((6 if SMALL else 30 if QUICK else 120) * float(os.environ.get("STEPS_SCALE", 1))))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MELS, DIM, LAYERS, HEADS, BATCH, UTTERANCES = (16, 32, 2, 2, 4, 24) if SMALL else (80, 256, 8, 4, 32, 3000)
SHORT, LONG = (60, 120) if SMALL else (300, 1500)
CHARS = 29


class Utterances(Dataset):
    def __init__(self, n, seed=0):
        rng = np.random.default_rng(seed)
        self.frames = rng.integers(SHORT, LONG, n)
        self.audio = rng.standard_normal((LONG * 4, MELS)).astype(np.float32)
        self.starts = rng.integers(0, LONG * 3, n)
        self.texts = [rng.integers(1, CHARS, f // 16) for f in self.frames]

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, i):
        feats = self.audio[self.starts[i]:self.starts[i] + self.frames[i]]
        feats = (feats - feats.mean(0)) / (feats.std(0) + 1e-5)
        return torch.from_numpy(feats), torch.from_numpy(self.texts[i])


def collate(batch):
    feats = nn.utils.rnn.pad_sequence([f for f, _ in batch], batch_first=True)
    texts = nn.utils.rnn.pad_sequence([t for _, t in batch], batch_first=True)
    return feats, torch.tensor([len(f) for f, _ in batch]), texts, torch.tensor([len(t) for _, t in batch])


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.q, self.k, self.v, self.o = (nn.Linear(DIM, DIM) for _ in range(4))
        self.ff = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * DIM, DIM))

    def forward(self, x, pad):
        B, T, _ = x.shape
        h = self.n1(x)
        q, k, v = (f(h).view(B, T, HEADS, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(DIM // HEADS)
        scores = scores.masked_fill(pad[:, None, None, :], -1e9)
        attn = F.dropout(F.softmax(scores, dim=-1), 0.1, self.training)
        x = x + self.o((attn @ v).transpose(1, 2).reshape(B, T, DIM))
        return x + self.ff(self.n2(x))


class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 32, 3, 2, 1), nn.ReLU())
        self.proj = nn.Linear(32 * (MELS // 4), DIM)
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(LAYERS))
        self.head = nn.Linear(DIM, CHARS)

    def forward(self, feats, lengths):
        x = self.conv(feats[:, None])
        x = self.proj(x.permute(0, 2, 1, 3).flatten(2))
        lengths = (lengths + 3) // 4
        pad = torch.arange(x.shape[1])[None, :] >= lengths[:, None]
        pad = pad.to(x.device)
        for layer in self.layers:
            x = layer(x, pad)
        return F.log_softmax(self.head(x), dim=-1), lengths


def main():
    torch.manual_seed(0)
    data = Utterances(UTTERANCES)
    loader = DataLoader(data, batch_size=BATCH, shuffle=True, drop_last=True, num_workers=1 if SMALL else 2, collate_fn=collate)
    model = Recognizer().to(DEVICE)
    criterion = nn.CTCLoss(blank=0, zero_infinity=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    step, total = 0, 0.0
    while step < STEPS:
        for feats, lengths, texts, text_lengths in loader:
            if step == STEPS // 3:
                if DEVICE == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            feats, texts = feats.to(DEVICE), texts.to(DEVICE)
            log_probs, out_lengths = model(feats, lengths)
            loss = criterion(log_probs.transpose(0, 1), texts, out_lengths, text_lengths)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item()
            step += 1
            if step % 10 == 0:
                print(f"step {step} loss {total / step:.4f} frames {feats.shape[1]}", flush=True)
            # long utterances ran out of memory once
            del feats, texts, log_probs, loss
            torch.cuda.empty_cache()
            if step >= STEPS:
                break
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    print(f"ms_per_step={(time.perf_counter() - t0) * 1000 / (STEPS - STEPS // 3):.3f}")


if __name__ == "__main__":
    main()
