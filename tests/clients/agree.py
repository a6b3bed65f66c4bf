"""Run by an interpreter with torch, once for each of four ranks: trains, and leaves when all agree; twenty tries, a line each.

In each try one rank is asked to stop at a moment of its own, in the last one by SIGTERM. Arguments: a seed.
"""

import json
import os
import random
import signal
import sys
import threading
import time

import torch.distributed as dist

import convoy_runtime as convoy
from convoy_runtime import stopping

TRIES = 20
rank, draw = int(os.environ["RANK"]), random.Random(int(sys.argv[1]))
dist.init_process_group("gloo")
convoy.start(listen=False, watch=False)
for number in range(TRIES):
    stopping._stop = False
    dist.barrier()
    asked, after_s = draw.randrange(dist.get_world_size()), draw.uniform(0, 0.05)
    ask = convoy.request_stop if number < TRIES - 1 else lambda: os.kill(os.getpid(), signal.SIGTERM)
    if rank == asked:
        threading.Timer(after_s, ask).start()
    step = 0
    while True:
        time.sleep(draw.uniform(0, 0.002))  # a step; the ranks draw the same numbers, and sleep differently
        step += 1
        if convoy.agree():
            break
    print(json.dumps({"try": number, "rank": rank, "step": step}), flush=True)
    dist.barrier()
dist.destroy_process_group()
