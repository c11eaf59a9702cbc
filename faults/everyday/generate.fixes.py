EXPERT = {"cause": "dispatch", "also": ["sync"], "best_fix": "cuda_graph",
          "why": "A decode step at batch 1 is several hundred tiny kernels; Python and launch time dominate, so a static cache and a "
                 "captured decode step removes nearly all of it."}
ATT_CAT = """        if cache is not None:
            k = torch.cat([cache[0], k], dim=2)
            v = torch.cat([cache[1], v], dim=2)
"""
MASK = """        if T > 1:
            mask = torch.full((T, k.shape[2]), float("-inf"), device=x.device, dtype=x.dtype)
            scores = scores + mask.triu(1)
"""
POS = "pos = torch.arange(start, start + x.shape[2], device=x.device).float()"
GEN = """    ids = torch.tensor([prompt]).to(DEVICE)
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
"""
STATE = """def new_caches():
    shape = (1, HEADS, PROMPT_LEN + NEW_TOKENS + 1, DIM // HEADS)
    return [tuple(torch.zeros(shape, device=DEVICE, dtype=torch.bfloat16) for _ in range(2)) for _ in range(LAYERS)]


@torch.no_grad()
def generate("""
preallocate = [
    (ATT_CAT, "        cache[0][:, :, start:start + T], cache[1][:, :, start:start + T] = k, v\n"
              "        whole, (k, v) = cache, (c[:, :, :start + T] for c in cache)\n"),
    ("reshape(B, T, DIM)), (k, v)", "reshape(B, T, DIM)), whole"),
    ("@torch.no_grad()\ndef generate(", STATE), ("[None] * LAYERS", "new_caches()")]
# torch.multinomial checks its input on the host; the same draw without that
no_check = ("torch.multinomial(F.softmax(values, dim=-1), 1)",
            "(F.softmax(values, dim=-1) / torch.empty_like(values).exponential_(1)).argmax(-1, keepdim=True)")
graph_model = [
    no_check,
    (POS, "pos = start.float()"),
    (ATT_CAT, "        k, v = cache[0].index_copy_(2, start, k), cache[1].index_copy_(2, start, v)\n"),
    (MASK, "        keep = torch.arange(k.shape[2], device=x.device)[None, :] <= start[:, None]\n"
           "        scores = scores.masked_fill(~keep, float('-inf'))\n"),
    ("@torch.no_grad()\ndef generate(", STATE.replace("@torch.no_grad()", """def capture(model):
    caches = new_caches()
    token = torch.zeros(1, 1, dtype=torch.long, device=DEVICE)
    pos = torch.full((1,), PROMPT_LEN, device=DEVICE)
    def work():
        logits, _ = model(token, pos, caches)
        token.copy_(sample(logits[:, -1]))
        pos.add_(1)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph, token, pos, caches


STATIC = []


@torch.no_grad()"""))]
GEN_GRAPH = """    if not STATIC:
        STATIC.extend(capture(model))
    graph, token, pos, caches = STATIC
    ids = torch.tensor([prompt]).to(DEVICE)
    logits, _ = model(ids, torch.arange(len(prompt), device=DEVICE), caches)
    token.copy_(sample(logits[:, -1]))
    pos.fill_(len(prompt))
    out = []
    for i in range(new_tokens):
        t = token.item()
        if t == EOS:
            break
        out.append(t)
        graph.replay()
    return out
"""
cuda_graph = graph_model + [(GEN, GEN_GRAPH)]
sdpa = [("""        scores = q @ k.transpose(-2, -1) / math.sqrt(DIM // HEADS)
""" + MASK + """        probs = F.softmax(scores.float(), dim=-1).to(x.dtype)
        return self.o((probs @ v).transpose""", """        y = F.scaled_dot_product_attention(q, k, v, is_causal=T > 1)
        return self.o(y.transpose""")]
remove_sync = [("""        token = nxt.item()
        if token == EOS:
            break
        out.append(token)
""", """        out.append(nxt)
        if i % 32 == 31 and EOS in torch.cat(out[-32:]).flatten().tolist():
            break
"""), ("    return out\n", "    return torch.cat(out).flatten().tolist()\n"), no_check]
precompute = [("def rope(x, start):", """HALF = DIM // HEADS // 2
with torch.device(DEVICE):
    ANGLES = torch.arange(2048).float()[:, None] / (10000 ** (torch.arange(HALF).float() / HALF))
    COS, SIN = ANGLES.cos().bfloat16(), ANGLES.sin().bfloat16()


def rope(x, start):"""),
    ("""    freqs = 1.0 / (10000 ** (torch.arange(half, device=x.device).float() / half))
    """ + POS + """
    angles = pos[:, None] * freqs[None, :]
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
""", "    cos, sin = COS[start:start + x.shape[2]], SIN[start:start + x.shape[2]]\n")]
# batch: four prompts decoded together; ms is per token of any prompt (total counts all of them), factor 4
batch = [("torch.tensor([prompt])", "torch.tensor([prompt] * 4)"),
         ("        token = nxt.item()\n        if token == EOS:\n            break\n        out.append(token)",
          "        tokens = nxt.flatten().tolist()\n        if all(t == EOS for t in tokens):\n            break\n        out.extend(tokens)")]
# best: one graph, mask and rope tables shared through fused attention, tokens read every 32
best = [(a, b) for a, b in graph_model if "masked_fill" not in b and a != POS] + [
    (precompute[0]),
    (precompute[1][0], "    cos, sin = COS[start], SIN[start]\n"),
    (sdpa[0][0], """        keep = torch.arange(k.shape[2], device=x.device)[None, :] <= start[:, None]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
        return self.o(y.transpose"""),
    (GEN, GEN_GRAPH.replace("""        t = token.item()
        if t == EOS:
            break
        out.append(t)
        graph.replay()
    return out
""", """        out.append(token.clone())
        if i % 32 == 31 and EOS in torch.cat(out[-32:]).flatten().tolist():
            break
        graph.replay()
    return torch.cat(out).flatten().tolist()
"""))]
FIXES = [("cuda_graph", cuda_graph), ("preallocate", preallocate), ("sdpa", sdpa), ("remove_sync", remove_sync),
         ("precompute", precompute), ("batch", batch), ("best", best)]
