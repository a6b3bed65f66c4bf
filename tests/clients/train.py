"""A small elastic training as a user would write it: a gradient step a moment, a checkpoint every few steps, resumed from."""

import json
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS, STEP_S, EVERY = int(os.environ["STEPS"]), float(os.environ["STEP_S"]), 5
FILE = Path(os.environ["CHECKPOINTS"], "last.pt")


def log(event: str, step: int) -> None:
    print(
        json.dumps({"event": event, "step": step, "rank": dist.get_rank(), "world": dist.get_world_size()}), flush=True
    )


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model, step = DistributedDataParallel(torch.nn.Linear(32, 1)), 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if FILE.exists():
        saved = torch.load(FILE)
        model.module.load_state_dict(saved["model"])
        step = saved["step"]
    log("start", step)
    while step < STEPS:
        loss = model(torch.randn(8, 32)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        time.sleep(STEP_S)
        if step % EVERY == 0 and dist.get_rank() == 0:
            torch.save({"model": model.module.state_dict(), "step": step}, FILE.with_suffix(".new"))
            FILE.with_suffix(".new").replace(FILE)
            log("checkpoint", step)
    log("end", step)
    dist.barrier()
    dist.destroy_process_group()


main()
