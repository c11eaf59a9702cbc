EXPERT = {"cause": "memory", "also": ["sync", "kernel"], "best_fix": "no_empty_cache",
          "why": "empty_cache() after every step hands gigabytes back to the driver, so each step pays dozens of cudaFree and cudaMalloc "
                 "calls, which also stop the host from running ahead."}
no_empty_cache = [("            torch.cuda.empty_cache()\n", "")]
sdpa = [("""        scores = q @ k.transpose(-2, -1) / math.sqrt(DIM // HEADS)
        scores = scores.masked_fill(pad[:, None, None, :], -1e9)
        attn = F.dropout(F.softmax(scores, dim=-1), 0.1, self.training)
        x = x + self.o((attn @ v).transpose""", """        a = F.scaled_dot_product_attention(q, k, v, ~pad[:, None, None, :], 0.1 if self.training else 0.0)
        x = x + self.o(a.transpose""")]
bf16 = [("            log_probs, out_lengths = model(feats, lengths)\n",
         "            with torch.autocast(DEVICE, torch.bfloat16):\n                log_probs, out_lengths = model(feats, lengths)\n"
         "            log_probs = log_probs.float()\n")]
tf32 = [("    torch.manual_seed(0)\n", "    torch.manual_seed(0)\n    torch.set_float32_matmul_precision('high')\n")]
remove_sync = [("total += loss.item()", "total += loss.detach()")]
prefetch = [("num_workers=1 if SMALL else 2, collate_fn=collate)", "num_workers=2 if SMALL else 8, collate_fn=collate, pin_memory=True)"),
            ("feats.to(DEVICE), texts.to(DEVICE)", "feats.to(DEVICE, non_blocking=True), texts.to(DEVICE, non_blocking=True)")]
bucket = [("    loader = DataLoader(data, batch_size=BATCH, shuffle=True, drop_last=True,",
           "    order = np.argsort(data.frames)\n    batches = [order[i:i + BATCH].tolist() for i in range(0, len(order) - BATCH + 1, BATCH)]\n"
           "    np.random.default_rng(0).shuffle(batches)\n    loader = DataLoader(data, batch_sampler=batches,")]
FIXES = [("no_empty_cache", no_empty_cache), ("sdpa", sdpa), ("bf16", bf16), ("tf32", tf32), ("remove_sync", remove_sync),
         ("prefetch", prefetch), ("bucket", bucket),
         ("best", no_empty_cache + sdpa + bf16 + remove_sync + prefetch + bucket)]
