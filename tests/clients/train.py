"""A small elastic training as a user would write it: a gradient step a moment, every few steps a flash checkpoint.

Those of steps that are multiples of ``TO_DISK`` go to disk as well. With ``LOST_AT`` a process of the first start is killed at
that step. It ends after ``STEPS``; with ``HELD`` not before there is a file ``finish`` beside the checkpoints.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from dlrover.trainer.torch.flash_checkpoint.ddp import DdpCheckpointer, StorageType
from torch.nn.parallel import DistributedDataParallel

STEPS, STEP_S, EVERY = int(os.environ["STEPS"]), float(os.environ["STEP_S"]), 5
TO_DISK = int(os.environ.get("TO_DISK") or EVERY)
LOST_AT, HELD = int(os.environ.get("LOST_AT") or 0), bool(os.environ.get("HELD"))
FOLDER = Path(os.environ["CHECKPOINTS"])
IS_FIRST = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"


def log(event: str, step: int) -> None:
    """In one write: the agent, which logs the saving, writes into the same output."""
    record = {"event": event, "step": step, "rank": dist.get_rank(), "world": dist.get_world_size()}
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


def is_over(step: int) -> bool:
    """As rank 0 sees it, so that all ranks end with the same step."""
    over = torch.tensor([int(step >= STEPS and (not HELD or (FOLDER / "finish").exists()))])
    dist.broadcast(over, 0)
    return bool(over.item())


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model, step = DistributedDataParallel(torch.nn.Linear(32, 1)), 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    checkpointer = DdpCheckpointer(str(FOLDER))
    if saved := checkpointer.load_checkpoint():
        model.module.load_state_dict(saved["model"])
        step = saved["step"]
    log("start", step)
    began = step
    while not is_over(step):
        loss = model(torch.randn(8, 32)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        time.sleep(STEP_S)
        if step % EVERY == 0:
            state = {"model": model.module.state_dict(), "step": step}
            kind = StorageType.DISK if step % TO_DISK == 0 else StorageType.MEMORY
            checkpointer.save_checkpoint(step, state, storage_type=kind)
            log("checkpoint", step)
        if step == LOST_AT and began == 0 and IS_FIRST and dist.get_rank() == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    log("end", step)
    dist.barrier()
    dist.destroy_process_group()


main()
