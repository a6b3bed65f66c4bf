"""Ports for servers that other processes start, which listen on them seconds later, and again after they were killed."""

import random

from deploy.bootstrap import ports


def free_port() -> int:
    """Below those that the system gives to outgoing connections, so that none takes it before it is listened on."""
    dice = random.SystemRandom()
    while not ports.is_free(port := dice.randrange(10_000, 32_000)):
        continue
    return port
