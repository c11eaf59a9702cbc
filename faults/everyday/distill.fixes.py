EXPERT = {"cause": "healthy", "also": ["kernel"], "best_fix": "torch_compile",
          "why": "Large bf16 batches, frozen teacher without gradients, pinned prefetching loader and no readings in between: the GPU is "
                 "busy; only fusing elementwise passes is left."}
torch_compile = [("    optimizer = torch.optim.AdamW(", "    for b in [*teacher.blocks, *student.blocks]:\n        b.compile(dynamic=False)\n    optimizer = torch.optim.AdamW(")]
bf16_params = [(".eval().requires_grad_(False)", ".eval().requires_grad_(False).bfloat16()"),
               ("teacher_logits = teacher(images)", "teacher_logits = teacher(images.bfloat16())")]
prefetch = [("num_workers=1 if SMALL else 6", "num_workers=2 if SMALL else 12")]
streams = [("            with torch.no_grad():\n                teacher_logits = teacher(images)\n            student_logits = student(images)\n",
            """            side.wait_stream(torch.cuda.current_stream())
            with torch.no_grad(), torch.cuda.stream(side):
                teacher_logits = teacher(images)
            student_logits = student(images)
            torch.cuda.current_stream().wait_stream(side)
"""), ("    running = torch.zeros(", "    side = torch.cuda.Stream()\n    running = torch.zeros(")]
# batch: twice the images per step, ms divided by 2 (factor 2)
batch = [("batch_size=BATCH, sampler", "batch_size=2 * BATCH, sampler"), ("num_samples=BATCH * STEPS", "num_samples=2 * BATCH * STEPS"),
         ("* 1000 / (STEPS", "* 1000 / 2 / (STEPS")]
FIXES = [("torch_compile", torch_compile), ("bf16_params", bf16_params), ("prefetch", prefetch), ("streams", streams), ("batch", batch),
         ("best", torch_compile + bf16_params)]
