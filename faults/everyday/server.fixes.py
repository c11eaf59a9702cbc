EXPERT = {"cause": "dispatch", "also": ["sync"], "best_fix": "batch",
          "why": "One 128-token request cannot fill the GPU: each costs some 170 launches plus three blocking reads, so answering "
                 "the waiting requests as one batch shares all of it."}
HANDLE = """    ids, mask = tokenize(request["text"])
    ids = torch.tensor([ids]).to(DEVICE)
    mask = torch.tensor([mask]).to(DEVICE)
    with torch.no_grad():
        intent_logits, tag_logits = model(ids, mask)
    probs = F.softmax(intent_logits, dim=-1).cpu().numpy()[0]
    tags = tag_logits.argmax(-1).cpu().numpy()[0]
    best = int(probs.argmax())
    return [{"id": request["id"], "intent": best, "score": float(probs[best]), "tags": tags[:int(mask.sum().item())].tolist()}]
"""
# batch: up to 16 waiting requests together; ms stays per request (done counts requests), factor 16
BATCHED = """    requests, finished = [request], False
    while len(requests) < 16:
        more = QUEUE[0].get()
        if more is None:
            QUEUE[0].put(None)
            break
        requests.append(more)
    rows = [tokenize(r["text"]) for r in requests]
    ids = torch.tensor([r[0] for r in rows]).to(DEVICE)
    mask = torch.tensor([r[1] for r in rows]).to(DEVICE)
    with torch.no_grad():
        intent_logits, tag_logits = model(ids, mask)
    probs = F.softmax(intent_logits, dim=-1).cpu().numpy()
    tags = tag_logits.argmax(-1).cpu().numpy()
    return [{"id": r["id"], "intent": int(p.argmax()), "score": float(p.max()), "tags": t[:sum(row[1])].tolist()}
            for r, row, p, t in zip(requests, rows, probs, tags)]
"""
QUEUE = ("    requests = queue.Queue(maxsize=64)\n", "    requests = queue.Queue(maxsize=64)\n    QUEUE.append(requests)\n")
DECL = ("def handle(model, request):", "QUEUE = []\n\n\ndef handle(model, request):")
batch = [(HANDLE, BATCHED), DECL, QUEUE]
bf16 = [("model = IntentModel().eval()", "model = IntentModel().to(torch.bfloat16).eval()"),
        ("F.softmax(intent_logits, dim=-1)", "F.softmax(intent_logits.float(), dim=-1)")]
tf32 = [("    torch.manual_seed(0)\n", "    torch.manual_seed(0)\n    torch.set_float32_matmul_precision('high')\n")]
remove_sync = [("int(mask.sum().item())", "length"), ("    ids = torch.tensor([ids]).to(DEVICE)\n",
               "    length = sum(mask)\n    ids = torch.tensor([ids]).to(DEVICE)\n"),
               ("    probs = F.softmax(intent_logits, dim=-1).cpu().numpy()[0]\n    tags = tag_logits.argmax(-1).cpu().numpy()[0]\n",
                "    both = torch.cat([F.softmax(intent_logits, dim=-1)[0], tag_logits.argmax(-1)[0].float()]).cpu().numpy()\n"
                "    probs, tags = both[:INTENTS], both[INTENTS:].astype(int)\n")]
pin_memory = [("torch.tensor([ids]).to(DEVICE)", "torch.tensor([ids]).pin_memory().to(DEVICE, non_blocking=True)"),
              ("torch.tensor([mask]).to(DEVICE)", "torch.tensor([mask]).pin_memory().to(DEVICE, non_blocking=True)")]
CAPTURE = """class Graphed:
    def __init__(self, model, rows):
        self.ids = torch.zeros(rows, MAX_LEN, dtype=torch.long, device=DEVICE)
        self.mask = torch.ones_like(self.ids)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(side):
            for _ in range(2):
                model(self.ids, self.mask)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(self.graph):
            self.out = model(self.ids, self.mask)

    def __call__(self, ids, mask):
        self.ids[:len(ids)].copy_(ids)
        self.mask[:len(mask)].copy_(mask)
        self.graph.replay()
        return [o[:len(ids)] for o in self.out]


def main():
"""
def graph(rows):
    return [("def main():\n", CAPTURE), ("    requests = queue.Queue(maxsize=64)\n",
            f"    model = Graphed(model, {rows})\n    requests = queue.Queue(maxsize=64)\n")]
best = [(HANDLE, BATCHED.replace("F.softmax(intent_logits, dim=-1)", "F.softmax(intent_logits.float(), dim=-1)")), DECL, QUEUE,
        bf16[0]] + graph(16)
FIXES = [("batch", batch), ("cuda_graph", graph(1)), ("bf16", bf16), ("tf32", tf32), ("remove_sync", remove_sync),
         ("pin_memory", pin_memory), ("best", best)]
