EXPERT = {"cause": "healthy", "also": ["kernel"], "best_fix": "torch_compile",
          "why": "Large batch, bf16, fused attention and optimizer, pinned prefetching loader: the GPU is busy with its own work; only "
                 "compiling away the elementwise passes gains something."}
torch_compile = [("model = TwoTower().to(DEVICE)", "model = TwoTower().to(DEVICE)\n    for tower in (model.image, model.text):\n"
                  "        for b in tower.blocks:\n            b.compile(dynamic=False)")]
prefetch = [("num_workers=2 if SMALL else 4", "num_workers=2 if SMALL else 10")]
# batch: twice the pairs per step, ms divided by 2 (factor 2)
batch = [("batch_size=BATCH", "batch_size=BATCH * 2"), ("* 1000 / (STEPS", "* 1000 / 2 / (STEPS")]
device_data = [("from_numpy(rng.integers(0, 256, (n, 3, IMAGE, IMAGE), dtype=np.uint8))",
                "from_numpy(rng.integers(0, 256, (n, 3, IMAGE, IMAGE), dtype=np.uint8)).to(DEVICE)"),
               ("from_numpy(rng.integers(0, VOCAB, (n, TEXT)))", "from_numpy(rng.integers(0, VOCAB, (n, TEXT))).to(DEVICE)"),
               ("num_workers=2 if SMALL else 4,\n                        pin_memory=True, persistent_workers=True, ", "num_workers=0, ")]
bf16_params = [("TwoTower().to(DEVICE)", "TwoTower().to(DEVICE).bfloat16()"), ("images = (images.float() / 255.0 - 0.5) / 0.5",
                "images = ((images.float() / 255.0 - 0.5) / 0.5).bfloat16()")]
FIXES = [("torch_compile", torch_compile), ("prefetch", prefetch), ("batch", batch), ("device_data", device_data),
         ("bf16_params", bf16_params), ("best", torch_compile + device_data)]
