"""Toy inference server: a thread puts requests on a queue, the worker loop answers them one by one."""
import os, queue, random, threading, time, zlib
import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL, QUICK = os.environ.get("SMALL") == "1", os.environ.get("QUICK") == "1"
REQUESTS = max(40, int((48 if SMALL else 960 if QUICK else 3200) * float(os.environ.get("STEPS_SCALE", 1))))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DIM, LAYERS, HEADS, VOCAB, MAX_LEN = (32, 2, 2, 200, 16) if SMALL else (768, 12, 12, 30000, 128)
INTENTS, TAGS = 40, 9
WORDS = "book a table for two cancel my order where is the nearest open pharmacy play some jazz set alarm seven".split()


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.fc1, self.fc2 = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x, mask):
        B, T, _ = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.n1(x + self.out(a.transpose(1, 2).reshape(B, T, DIM)))
        return self.n2(x + self.fc2(F.gelu(self.fc1(x))))


class IntentModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, DIM), nn.Embedding(MAX_LEN, DIM)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.intent, self.tags = nn.Linear(DIM, INTENTS), nn.Linear(DIM, TAGS)

    def forward(self, ids, mask):
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1], device=ids.device))
        mask = mask[:, None, None, :].bool()
        for layer in self.layers:
            x = layer(x, mask)
        return self.intent(x[:, 0]), self.tags(x)


def tokenize(text):
    ids = [1] + [zlib.crc32(w.encode()) % (VOCAB - 2) + 2 for w in text.split()][:MAX_LEN - 1]
    mask = [1] * len(ids) + [0] * (MAX_LEN - len(ids))
    return ids + [0] * (MAX_LEN - len(ids)), mask


def clients(requests):
    rng = random.Random(0)
    for i in range(REQUESTS):
        requests.put({"id": i, "text": " ".join(rng.choices(WORDS, k=rng.randint(4, 100))), "arrived": time.perf_counter()})
    requests.put(None)


def handle(model, request):
    ids, mask = tokenize(request["text"])
    ids = torch.tensor([ids]).to(DEVICE)
    mask = torch.tensor([mask]).to(DEVICE)
    with torch.no_grad():
        intent_logits, tag_logits = model(ids, mask)
    probs = F.softmax(intent_logits, dim=-1).cpu().numpy()[0]
    tags = tag_logits.argmax(-1).cpu().numpy()[0]
    best = int(probs.argmax())
    return [{"id": request["id"], "intent": best, "score": float(probs[best]), "tags": tags[:int(mask.sum().item())].tolist()}]


def main():
    torch.manual_seed(0)
    with torch.device(DEVICE):
        model = IntentModel().eval()
    requests = queue.Queue(maxsize=64)
    threading.Thread(target=clients, args=(requests,), daemon=True).start()
    done, first, latencies, t0 = 0, 0, [], None
    while True:
        request = requests.get()
        if request is None:
            break
        if t0 is None and done >= REQUESTS // 4:
            if DEVICE == "cuda":
                torch.cuda.synchronize()
            t0, first = time.perf_counter(), done
        for answer in handle(model, request):
            done += 1
            latencies.append(time.perf_counter() - request["arrived"])
            if done % 200 == 0:
                p50 = sorted(latencies[-200:])[len(latencies[-200:]) // 2]
                print(f"{done} served, p50 {p50 * 1000:.1f} ms, last {answer['intent']} ({answer['score']:.2f})", flush=True)
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    print(f"ms_per_step={(time.perf_counter() - t0) * 1000 / (done - first):.3f}")


if __name__ == "__main__":
    main()
