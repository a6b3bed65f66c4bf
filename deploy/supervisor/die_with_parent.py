"""Becomes another program that dies with its parent: ``die_with_parent.py SIGNAL PARENT PROGRAM ARG...``.

With the signal ``group`` it stays and runs the program as its child, and its whole process group dies with the parent: for a
tool that starts further processes. Run as a script, before anything is imported. Where the kernel has no such tie (not
Linux), the next start cleans up.
"""

import ctypes
import os
import signal
import sys
from types import FrameType

PR_SET_PDEATHSIG = 1
GROUP = "group"


def main(argv: list[str]) -> None:
    death_signal, parent, program = argv[0], int(argv[1]), argv[2:]
    if death_signal == GROUP:
        signal.signal(signal.SIGTERM, _end_group)
    if sys.platform == "linux":
        number = signal.SIGTERM if death_signal == GROUP else int(death_signal)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(number))
        if os.getppid() != parent:
            sys.exit("the supervisor is gone")
    if death_signal == GROUP:
        code = os.waitstatus_to_exitcode(os.waitpid(os.spawnvp(os.P_NOWAIT, program[0], program), 0)[1])  # noqa: S606
        os._exit(code if code >= 0 else 128 - code)
    os.execvp(program[0], program)  # noqa: S606


def _end_group(_number: int, _frame: FrameType | None) -> None:
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
