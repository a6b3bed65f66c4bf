#!/usr/bin/env python3
"""The one entrance: ``python3 manage.py up`` on a fresh machine, and every Django command after that.

This file must run on any Python, however old or bare, so that what is missing is said in a sentence, not a traceback.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036
    version = ".".join(str(part) for part in sys.version_info[:2])
    sys.exit("Convoy needs Python 3.11 or newer, and this is Python " + version + ": run it with a newer python3.")

from deploy.bootstrap.entry import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
