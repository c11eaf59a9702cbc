"""Electricity-load forecaster: two LSTM cells, encoder over a week of readings, autoregressive decoder for a day."""
import os, time
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SMALL, QUICK = os.environ.get("SMALL") == "1", os.environ.get("QUICK") == "1"
STEPS = max(6, int((6 if SMALL else 45 if QUICK else 240) * float(os.environ.get("STEPS_SCALE", 1))))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FEATS, HIDDEN, LOOKBACK, HORIZON, BATCH = (4, 16, 12, 4, 8) if SMALL else (8, 256, 168, 24, 128)


class Load(Dataset):
    def __init__(self, hours, seed=0):
        rng = np.random.default_rng(seed)
        t = np.arange(hours)[:, None]
        phase = rng.uniform(0, 6.28, (1, FEATS))
        self.series = np.sin(2 * np.pi * t / 24 + phase) + 0.5 * np.sin(2 * np.pi * t / 168 + phase) \
            + 0.1 * rng.standard_normal((hours, FEATS))
        self.mean, self.std = self.series.mean(0), self.series.std(0)

    def __len__(self):
        return len(self.series) - LOOKBACK - HORIZON

    def __getitem__(self, i):
        window = (self.series[i:i + LOOKBACK + HORIZON] - self.mean) / self.std
        return torch.FloatTensor(window[:LOOKBACK]), torch.FloatTensor(window[LOOKBACK:])


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1 = nn.LSTMCell(FEATS, HIDDEN)
        self.lstm2 = nn.LSTMCell(HIDDEN, HIDDEN)
        self.linear = nn.Linear(HIDDEN, FEATS)

    def forward(self, x):
        n = x.size(0)
        h1, c1 = torch.zeros(n, HIDDEN).to(DEVICE), torch.zeros(n, HIDDEN).to(DEVICE)
        h2, c2 = torch.zeros(n, HIDDEN).to(DEVICE), torch.zeros(n, HIDDEN).to(DEVICE)
        for t in range(x.size(1)):
            h1, c1 = self.lstm1(x[:, t], (h1, c1))
            h2, c2 = self.lstm2(h1, (h2, c2))
        y, outputs = self.linear(h2), []
        for t in range(HORIZON):
            outputs.append(y)
            h1, c1 = self.lstm1(y, (h1, c1))
            h2, c2 = self.lstm2(h1, (h2, c2))
            y = self.linear(h2)
        return torch.stack(outputs, dim=1)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Load(24 * 365 if not SMALL else 400), batch_size=BATCH, shuffle=True, drop_last=True)
    model = Forecaster().to(DEVICE)
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step, losses = 0, []
    while step < STEPS:
        for x, y in loader:
            if step == STEPS // 3:
                if DEVICE == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            x, y = x.to(DEVICE), y.to(DEVICE)
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
            step += 1
            if step % 20 == 0:
                print(f"step {step} mse {np.mean(losses[-20:]):.5f}", flush=True)
            if step >= STEPS:
                break
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    print(f"ms_per_step={(time.perf_counter() - t0) * 1000 / (STEPS - STEPS // 3):.3f}")


if __name__ == "__main__":
    main()
