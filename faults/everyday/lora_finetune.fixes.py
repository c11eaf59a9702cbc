EXPERT = {"cause": "dispatch", "also": ["sync"], "best_fix": "batch",
          "why": "Two short sequences per micro-batch give the GPU a few ms of work while Python launches well over a thousand "
                 "kernels per micro-batch; the same 16 samples in one batch cost one set of launches instead of eight."}
# batch: the optimizer step covers the same 16 samples, so no dividing is needed (factor 1)
batch = [("MICRO_BATCH = 2\nACCUM = 8", "MICRO_BATCH = 16\nACCUM = 1")]
remove_sync = [("running += loss.item()", "running += loss.detach()"),
               ("                print(f\"step {step}/{STEPS} loss", "                if step % 10 == 0: print(f\"step {step}/{STEPS} loss")]
bf16 = [("            loss = model(**batch).loss / ACCUM",
         "            with torch.autocast(DEVICE, torch.bfloat16):\n                loss = model(**batch).loss / ACCUM"),
        ("    model.train()\n", "    for n, p in model.named_parameters():\n        if not p.requires_grad:\n"
         "            p.data = p.data.bfloat16()\n    model.train()\n")]
tf32 = [("    torch.manual_seed(0)\n", "    torch.manual_seed(0)\n    torch.set_float32_matmul_precision('high')\n")]
fused_optimizer = [("AdamW(params, lr=2e-4)", "AdamW(params, lr=2e-4, fused=True)")]
prefetch = [("collate_fn=collate)", "collate_fn=collate, num_workers=4, pin_memory=True, persistent_workers=True)")]
FIXES = [("batch", batch), ("remove_sync", remove_sync), ("bf16", bf16), ("tf32", tf32),
         ("fused_optimizer", fused_optimizer),
         ("best", batch + remove_sync + bf16 + fused_optimizer + prefetch)]
