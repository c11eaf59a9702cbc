EXPERT = {"cause": "transfer", "also": ["sync"], "best_fix": "drop_copies",
          "why": "The whole 350 MiB corpus is copied from pageable memory to the GPU again for every batch of queries; it fits on the "
                 "device and needs to be there once."}
drop_copies = [("    stats = {", "    corpus = corpus.to(DEVICE)\n    stats = {"),
               ("        chunk = corpus[i:i + CHUNK].to(DEVICE)\n", "        chunk = corpus[i:i + CHUNK]\n")]
pin_memory = [("    stats = {", "    corpus = corpus.pin_memory()\n    stats = {"),
              ("corpus[i:i + CHUNK].to(DEVICE)", "corpus[i:i + CHUNK].to(DEVICE, non_blocking=True)")]
bf16 = [("    stats = {", "    corpus = corpus.bfloat16()\n    stats = {"), ("    queries = queries.to(DEVICE)\n", "    queries = queries.to(DEVICE).bfloat16()\n")]
# batch: four times the queries per step, ms divided by 4 (factor 4)
batch = [("queries = docs[answers].clone()", "queries = docs[answers].clone()"), ("(8, 10) if SMALL else (64, 100)", "(32, 10) if SMALL else (256, 100)"),
         ("* 1000 / (BATCHES", "* 1000 / 4 / (BATCHES")][1:]
coalesce_copies = [("        scores.append(s.cpu())\n        index.append(j.cpu() + i)\n", "        scores.append(s)\n        index.append(j + i)\n"),
                   ("    return index.gather(1, best)\n", "    return index.gather(1, best).cpu()\n")]
tf32 = [("    torch.manual_seed(0)\n", "    torch.manual_seed(0)\n    torch.set_float32_matmul_precision('high')\n")]
FIXES = [("drop_copies", drop_copies), ("pin_memory", pin_memory), ("bf16", bf16), ("batch", batch),
         ("coalesce_copies", coalesce_copies), ("tf32", tf32), ("best", drop_copies + coalesce_copies + batch + tf32)]
