"""Embedding a corpus with a BERT encoder for search: mean pooling, the vectors collected in numpy."""
import random, sys, time, zlib
import numpy as np
import torch
from transformers import BertConfig, BertModel

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LAYERS, DIM, HEADS, BATCH = (6, 384, 12, 64) if DEVICE == "cuda" else (2, 32, 2, 4)


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        config = BertConfig(hidden_size=DIM, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=4 * DIM)
        self.bert = BertModel(config, add_pooling_layer=False)

    def forward(self, ids, mask):
        hidden = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        mask = mask.unsqueeze(-1).float()
        pooled = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(pooled, dim=1)


def tokenize(texts, length=128):
    ids = torch.zeros(len(texts), length, dtype=torch.long)
    for i, text in enumerate(texts):
        words = [zlib.crc32(w.encode()) % 30522 for w in text.split()][:length]
        ids[i, :len(words)] = torch.tensor(words)
    return ids, (ids != 0).long()


@torch.no_grad()
def main(rounds):
    torch.manual_seed(0)
    rng = random.Random(0)
    vocabulary = [f"word{i}" for i in range(5000)]
    corpus = [" ".join(rng.choices(vocabulary, k=rng.randint(40, 128))) for _ in range(4096)]
    model = Encoder().to(DEVICE).eval()
    for r in range(rounds):
        start, vectors = time.time(), []
        for i in range(0, len(corpus), BATCH):
            ids, mask = tokenize(corpus[i:i + BATCH])
            out = model(ids.to(DEVICE), mask.to(DEVICE))
            vectors.append(out.cpu().numpy())
        index = np.concatenate(vectors)
        print(f"round {r}: {len(index) / (time.time() - start):.0f} texts/s, norm {np.linalg.norm(index[0]):.4f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
