"""``python -m tests.faults.engine --seeds 500``: runs schedules and reports them; ``--seed N`` runs one again."""

import sys

from tests.faults.engine import running

if __name__ == "__main__":
    sys.exit(running.main(sys.argv[1:]))
