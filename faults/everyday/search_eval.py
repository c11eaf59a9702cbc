"""Retrieval evaluation: encode a corpus, then search it for batches of queries and report recall and MRR."""
import os, time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL, QUICK = os.environ.get("SMALL") == "1", os.environ.get("QUICK") == "1"
BATCHES = max(4, int((4 if SMALL else 24 if QUICK else 160) * float(os.environ.get("STEPS_SCALE", 1))))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DOCS, TOKENS, VOCAB, DIM, CHUNK = (500, 8, 100, 16, 200) if SMALL else (240_000, 48, 30_000, 384, 40_000)
QUERY_BATCH, TOP = (8, 10) if SMALL else (64, 100)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.net = nn.Sequential(nn.Linear(DIM, DIM * 4), nn.GELU(), nn.Linear(DIM * 4, DIM))

    def forward(self, ids):
        x = self.embed(ids).mean(dim=1)
        return F.normalize(x + self.net(x), dim=-1)


def encode(model, ids, batch_size=2048):
    out = []
    with torch.no_grad():
        for i in range(0, len(ids), batch_size):
            out.append(model(ids[i:i + batch_size].to(DEVICE)).cpu())
    return torch.cat(out)


def search(queries, corpus):
    """Top documents of each query; the corpus goes through the GPU in chunks so that it always fits."""
    scores, index = [], []
    queries = queries.to(DEVICE)
    for i in range(0, len(corpus), CHUNK):
        chunk = corpus[i:i + CHUNK].to(DEVICE)
        s, j = torch.topk(queries @ chunk.T, TOP, dim=1)
        scores.append(s.cpu())
        index.append(j.cpu() + i)
    scores, index = torch.cat(scores, dim=1), torch.cat(index, dim=1)
    best = scores.topk(TOP, dim=1).indices
    return index.gather(1, best)


def judge(found, answers, stats):
    for row, answer in zip(found.tolist(), answers.tolist()):
        rank = row.index(answer) + 1 if answer in row else None
        stats["r1"].append(rank == 1)
        stats["r10"].append(rank is not None and rank <= 10)
        stats["mrr"].append(1.0 / rank if rank else 0.0)


def main():
    torch.manual_seed(0)
    model = Encoder().to(DEVICE).eval()
    docs = torch.randint(0, VOCAB, (DOCS, TOKENS))
    begin = time.perf_counter()
    corpus = encode(model, docs)
    print(f"encoded {len(corpus)} documents in {time.perf_counter() - begin:.1f} s, {corpus.numel() * 4 / 2**20:.0f} MiB", flush=True)
    stats = {"r1": [], "r10": [], "mrr": []}
    for n in range(BATCHES):
        if n == BATCHES // 4:
            if DEVICE == "cuda":
                torch.cuda.synchronize()
            t0 = time.perf_counter()
        answers = torch.randint(0, DOCS, (QUERY_BATCH,))
        queries = docs[answers].clone()
        queries[torch.rand(queries.shape) < 0.7] = 1  # a query shares some of the words of its document
        found = search(encode(model, queries), corpus)
        judge(found, answers, stats)
        if n % 10 == 0:
            print(f"batch {n}/{BATCHES} " + " ".join(f"{k} {np.mean(v):.3f}" for k, v in stats.items()), flush=True)
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    print(f"ms_per_step={(time.perf_counter() - t0) * 1000 / (BATCHES - BATCHES // 4):.3f}")


if __name__ == "__main__":
    main()
