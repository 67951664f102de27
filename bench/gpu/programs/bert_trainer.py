"""BERT base from scratch with the transformers Trainer at its defaults: fp32, batch 8."""

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Words(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 640

    def __getitem__(self, at: int) -> dict[str, torch.Tensor]:
        torch.manual_seed(at)
        ids = torch.randint(0, 30000, (128,))
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": torch.tensor(at % 2)}


arguments = TrainingArguments(output_dir="bert_out", max_steps=70, logging_steps=10, report_to=[], save_strategy="no")
Trainer(BertForSequenceClassification(BertConfig()), arguments, train_dataset=Words()).train()
