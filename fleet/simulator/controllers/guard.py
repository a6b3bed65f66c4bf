"""Runs one command and takes its whole process group down with the simulator. Started as a script of its own.

The simulator holds the other end of standard input; when it dies, however it dies, that end closes and the group is
killed. Needs nothing but the standard library, and leaves with the command's exit code (128 + signal when killed).
"""

import os
import signal
import subprocess
import sys
import threading


def main(command: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    except OSError as e:
        print(f"cannot start {command[0]!r}: {e.strerror}", file=sys.stderr, flush=True)
        return 127 if isinstance(e, FileNotFoundError) else 126
    threading.Thread(target=_die_with_parent, daemon=True).start()
    code = child.wait()
    return code if code >= 0 else 128 - code


def _die_with_parent() -> None:
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
