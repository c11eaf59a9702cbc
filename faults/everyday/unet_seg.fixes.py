EXPERT = {"cause": "sync", "also": ["dispatch", "transfer"], "best_fix": "remove_sync",
          "why": "The metrics read about sixty scalars and the whole prediction back to the host every step and loop over 21 classes in "
                 "numpy meanwhile; the GPU waits, and one confusion matrix kept on the GPU gives the same numbers."}
HIST = """            acc = (pred == masks).float().mean().item()
            history.append((loss.item(), acc, iou_per_class(pred, masks), dice_score(pred, masks)))
"""
CONF = """def confusion(pred, target):
    index = (target * CLASSES + pred).flatten()
    return torch.zeros(CLASSES * CLASSES, device=index.device).scatter_add_(0, index, torch.ones_like(index, dtype=torch.float32))


def metrics(flat):
    m = flat.view(CLASSES, CLASSES)
    inter, rows, cols = m.diagonal(), m.sum(1), m.sum(0)
    union, both = rows + cols - inter, rows + cols
    iou = torch.where(union > 0, inter / union, torch.nan).nanmean()
    dice = torch.where(both > 0, 2 * inter / both, torch.nan)[1:].nanmean()
    return torch.stack([inter.sum() / m.sum(), iou, dice])


def main():
"""
reduce_before_copy = [("def main():\n", CONF), (HIST, """            numbers = torch.cat([loss.detach()[None], metrics(confusion(pred, masks))])
            history.append(numbers.cpu().numpy())
""")]
remove_sync = [("def main():\n", CONF), (HIST, """            history.append(torch.cat([loss.detach()[None], metrics(confusion(pred, masks))]))
"""), ("l, a, i, d = np.mean(history[-10:], axis=0)", "l, a, i, d = torch.stack(history[-10:]).mean(0).tolist()")]
item_only = [("inter, total = (p & t).sum().item(), p.sum().item() + t.sum().item()\n", "inter, total = torch.stack([(p & t).sum(), p.sum() + t.sum()]).tolist()\n")]
bf16 = [("            logits = model(images)\n            loss = F.cross_entropy(logits, masks)\n",
         "            with torch.autocast(DEVICE, torch.bfloat16):\n                logits = model(images)\n"
         "                loss = F.cross_entropy(logits, masks)\n")]
channels_last = [("UNet().to(DEVICE)", "UNet().to(DEVICE, memory_format=torch.channels_last)"),
                 ("            logits = model(images)\n", "            images = images.contiguous(memory_format=torch.channels_last)\n            logits = model(images)\n")]
fused_optimizer = [("lr=1e-3)", "lr=1e-3, fused=True)")]
pin_memory = [("drop_last=True,\n", "drop_last=True, pin_memory=True,\n"),
              ("images.to(DEVICE), masks.to(DEVICE)", "images.to(DEVICE, non_blocking=True), masks.to(DEVICE, non_blocking=True)")]
FIXES = [("remove_sync", remove_sync), ("reduce_before_copy", reduce_before_copy), ("coalesce_copies", item_only), ("bf16", bf16),
         ("channels_last", channels_last), ("pin_memory", pin_memory),
         ("best", remove_sync + channels_last + fused_optimizer + pin_memory + [
             ("            logits = model(images)\n            loss = F.cross_entropy(logits, masks)\n", bf16[0][1])])]
