"""A fine-tuning with stock transformers and nothing of Convoy: saves on SIGTERM, and goes on from what it saved.

The Kubeflow SDK reports once before it. Environment: STEPS, STEP_S, OUT.
"""

import os
import time
from pathlib import Path

import torch
from kubeflow.trainer import update_trainjob_status
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

OUT, STEPS, STEP_S = Path(os.environ["OUT"]), int(os.environ["STEPS"]), float(os.environ["STEP_S"])


class Words(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 4000

    def __getitem__(self, index: int) -> dict:
        time.sleep(STEP_S)
        words = torch.randint(0, 64, (16,))
        return {"input_ids": words, "labels": words}


torch.set_num_threads(1)
print("sdk", update_trainjob_status(progress_percent=0, metrics={"total_steps": STEPS, "loss": 9.5}), flush=True)
config = GPT2Config(n_layer=1, n_head=2, n_embd=32, vocab_size=64, n_positions=32)
arguments = TrainingArguments(
    output_dir=str(OUT), max_steps=STEPS, per_device_train_batch_size=1, logging_steps=5, save_steps=10**9, use_cpu=True,
    enable_jit_checkpoint=True, disable_tqdm=True,
)  # fmt: skip
trainer = Trainer(model=GPT2LMHeadModel(config), args=arguments, train_dataset=Words())
resumes = OUT.is_dir() and any(each.name.startswith("checkpoint-") for each in OUT.iterdir())
print("begins", "again" if resumes else "anew", flush=True)
trainer.train(resume_from_checkpoint=resumes)
print("ended at step", trainer.state.global_step, flush=True)
