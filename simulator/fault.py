"""Injects faults into a running simulator from the command line: ``python -m simulator.fault --home DIR MEMBER FAULT ...``."""

import argparse
import sys
from pathlib import Path

from simulator import fault_parser, faults_control


def main(arguments: list[str] | None = None) -> int:
    faults = "\n".join(f"  {usage}" for usage in fault_parser.USAGE.values())
    parser = argparse.ArgumentParser(
        prog="python -m simulator.fault",
        description="Inject a fault into a member of a running simulator.",
        epilog=f"faults:\n{faults}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--home", type=Path, required=True, help="the simulator's home")
    parser.add_argument("member")
    parser.add_argument("fault", nargs="+")
    options = parser.parse_args(arguments)
    try:
        fault_parser.parse(options.fault)
        print(faults_control.send(options.home, options.member, options.fault))
    except ValueError as e:
        print(e, file=sys.stderr)
        return 2
    except OSError as e:
        print(f"no simulator answers in {options.home}: {e.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
