"""Becomes another program that dies with its parent: ``tether.py SIGNAL PARENT PROGRAM ARG...``.

Run as a script, before anything is imported. Where the kernel has no such tie (not Linux), the next start cleans up.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> None:
    death_signal, parent, program = int(argv[0]), int(argv[1]), argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, death_signal)
        if os.getppid() != parent:
            sys.exit("the supervisor is gone")
    os.execvp(program[0], program)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])
