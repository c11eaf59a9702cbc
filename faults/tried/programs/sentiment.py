"""Fine-tuning a BERT classifier on reviews of different lengths, padded to the longest of the batch."""
import random, sys, time, zlib
import torch
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LAYERS, DIM, HEADS, LONGEST, BATCH = (12, 768, 12, 256, 16) if DEVICE == "cuda" else (2, 32, 2, 32, 4)
VOCAB = 30522


class Reviews(Dataset):
    WORDS = "a an the film was truly boring great plot acting awful lovely long short again never".split()

    def __init__(self, n):
        rng = random.Random(0)
        self.rows = [(" ".join(rng.choices(self.WORDS, k=rng.randint(20, LONGEST))), rng.randint(0, 1)) for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        text, label = self.rows[i]
        return [101] + [zlib.crc32(word.encode()) % VOCAB for word in text.split()][:LONGEST - 2] + [102], label


def collate(batch):
    longest = max(len(ids) for ids, _ in batch)
    ids = torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in batch])
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": torch.tensor([label for _, label in batch])}


def main(epochs):
    torch.manual_seed(0)
    loader = DataLoader(Reviews(4000), batch_size=BATCH, shuffle=True, collate_fn=collate, num_workers=2)
    config = BertConfig(hidden_size=DIM, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=4 * DIM, num_labels=2)
    model = BertForSequenceClassification(config).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    scheduler = get_linear_schedule_with_warmup(optimizer, 100, epochs * len(loader))
    for epoch in range(epochs):
        model.train()
        start, losses, correct = time.time(), [], 0
        for step, batch in enumerate(loader):
            batch = {name: tensor.to(DEVICE) for name, tensor in batch.items()}
            output = model(**batch)
            output.loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            losses.append(output.loss.item())
            correct += (output.logits.argmax(-1) == batch["labels"]).sum().item()
            if step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {sum(losses) / len(losses):.4f} "
                      f"{(time.time() - start) / (step + 1) * 1000:.1f} ms", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
