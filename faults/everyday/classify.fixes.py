EXPERT = {"cause": "input", "also": [], "best_fix": "prefetch",
          "why": "Every batch is augmented sample by sample in float64 numpy in the training process (num_workers=0), which takes "
                 "many times longer than the GPU step; loader workers do it in parallel and ahead."}
prefetch = [("shuffle=True, drop_last=True)", "shuffle=True, drop_last=True, num_workers=12, persistent_workers=True)")]
pin_memory = [("shuffle=True, drop_last=True", "shuffle=True, drop_last=True, pin_memory=True"),
              ("images.to(DEVICE), labels.to(DEVICE)", "images.to(DEVICE, non_blocking=True), labels.to(DEVICE, non_blocking=True)")]
bf16 = [("            outputs = model(images)\n            loss = criterion(outputs, labels)",
         "            with torch.autocast(DEVICE, torch.bfloat16):\n                outputs = model(images)\n"
         "                loss = criterion(outputs, labels)")]
channels_last = [("resnet18().to(DEVICE)", "resnet18().to(DEVICE, memory_format=torch.channels_last)"),
                 ("            optimizer.zero_grad()\n", "            images = images.contiguous(memory_format=torch.channels_last)\n"
                  "            optimizer.zero_grad()\n")]
remove_sync = [("running_loss += loss.item()", "running_loss += loss.detach()"),
               ("(outputs.argmax(1) == labels).sum().item()", "(outputs.argmax(1) == labels).sum()")]
float32_augment = [("pos = np.linspace(0, side - 1, CROP)", "pos = np.linspace(0, side - 1, CROP, dtype=np.float32)"),
                   ("        lo = np.floor", "        img = img.astype(np.float32)\n        lo = np.floor"),
                   ("frac = np.minimum(lo + 1, side - 1), pos - lo", "frac = np.minimum(lo + 1, side - 1), (pos - lo).astype(np.float32)"),
                   ("np.array([0.299, 0.587, 0.114])", "np.array([0.299, 0.587, 0.114], dtype=np.float32)"),
                   ("np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])",
                    "np.array([0.485, 0.456, 0.406], dtype=np.float32), np.array([0.229, 0.224, 0.225], dtype=np.float32)")]
FIXES = [("prefetch", prefetch), ("pin_memory", pin_memory), ("bf16", bf16), ("channels_last", channels_last),
         ("remove_sync", remove_sync), ("float32_augment", float32_augment),
         ("best", prefetch + pin_memory + channels_last + remove_sync + float32_augment)]
