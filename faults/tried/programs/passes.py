"""A Hugging Face Trainer that adds up the gradients of eight passes with two samples each."""
import sys
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

BATCH, PASSES = 2, 8


class Toy(torch.utils.data.Dataset):
    def __len__(self):
        return 400_000

    def __getitem__(self, i):
        ids = torch.randint(0, 50257, (512,))
        return {"input_ids": ids, "labels": ids.clone(), "attention_mask": torch.ones_like(ids)}


if __name__ == "__main__":
    args = TrainingArguments(output_dir="out", per_device_train_batch_size=BATCH, gradient_accumulation_steps=PASSES,
                             max_steps=int(sys.argv[1]) if len(sys.argv) > 1 else 4000, logging_steps=1, report_to=[],
                             save_strategy="no", disable_tqdm=True)
    Trainer(model=GPT2LMHeadModel(GPT2Config()), args=args, train_dataset=Toy()).train()
