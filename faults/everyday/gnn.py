"""Full-graph node classification: GraphSAGE with mean aggregation by gather and index_add, a citation-graph sized input."""
import os, time
import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL, QUICK = os.environ.get("SMALL") == "1", os.environ.get("QUICK") == "1"
EPOCHS = max(6, int((6 if SMALL else 24 if QUICK else 110) * float(os.environ.get("STEPS_SCALE", 1))))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
NODES, EDGES, FEATS, HIDDEN, CLASSES = (200, 1000, 16, 32, 5) if SMALL else (170_000, 2_400_000, 128, 256, 40)
torch.set_float32_matmul_precision("high")


def make_graph():
    g = torch.Generator(device=DEVICE).manual_seed(0)
    # popular nodes are cited more often
    dst = (torch.rand(EDGES, device=DEVICE, generator=g) ** 2 * NODES).long()
    src = torch.randint(0, NODES, (EDGES,), device=DEVICE, generator=g)
    src, dst = torch.cat([src, dst]), torch.cat([dst, src])
    labels = torch.randint(0, CLASSES, (NODES,), device=DEVICE, generator=g)
    centres = torch.randn(CLASSES, FEATS, device=DEVICE, generator=g)
    x = centres[labels] * 0.3 + torch.randn(NODES, FEATS, device=DEVICE, generator=g)
    train = torch.rand(NODES, device=DEVICE, generator=g) < 0.55
    return x, src, dst, labels, train


class SAGEConv(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.own, self.neighbours = nn.Linear(n_in, n_out), nn.Linear(n_in, n_out, bias=False)

    def forward(self, x, src, dst, degree):
        messages = x[src]
        total = torch.zeros_like(x).index_add_(0, dst, messages)
        return self.own(x) + self.neighbours(total / degree)


class SAGE(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([SAGEConv(FEATS, HIDDEN), SAGEConv(HIDDEN, HIDDEN), SAGEConv(HIDDEN, CLASSES)])
        self.norms = nn.ModuleList([nn.BatchNorm1d(HIDDEN), nn.BatchNorm1d(HIDDEN)])

    def forward(self, x, src, dst, degree):
        for i, conv in enumerate(self.convs):
            x = conv(x, src, dst, degree)
            if i < 2:
                x = F.dropout(F.relu(self.norms[i](x)), 0.5, self.training)
        return x


def main():
    torch.manual_seed(0)
    x, src, dst, labels, train = make_graph()
    degree = torch.zeros(NODES, device=DEVICE).index_add_(0, dst, torch.ones(len(dst), device=DEVICE)).clamp(min=1)[:, None]
    train_idx, test_idx = train.nonzero().squeeze(1), (~train).nonzero().squeeze(1)
    model = SAGE().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    print(f"{NODES} nodes, {len(src)} edges, {sum(p.numel() for p in model.parameters())} parameters")
    for epoch in range(EPOCHS):
        if epoch == EPOCHS // 3:
            if DEVICE == "cuda":
                torch.cuda.synchronize()
            t0 = time.perf_counter()
        model.train()
        optimizer.zero_grad()
        out = model(x, src, dst, degree)
        loss = F.cross_entropy(out[train_idx], labels[train_idx])
        loss.backward()
        optimizer.step()
        if epoch % 10 == 0:
            model.eval()
            with torch.no_grad():
                pred = model(x, src, dst, degree).argmax(dim=-1)
                acc = (pred[test_idx] == labels[test_idx]).float().mean()
            print(f"epoch {epoch:03d} loss {loss.item():.4f} test acc {acc.item():.4f}", flush=True)
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    print(f"ms_per_step={(time.perf_counter() - t0) * 1000 / (EPOCHS - EPOCHS // 3):.3f}")


if __name__ == "__main__":
    main()
