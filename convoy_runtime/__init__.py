"""For a training script that runs under Convoy: hears that it is to stop, reports how far it is, and shows where it hangs.

Standard library only, and optional: without Convoy around it every function still works and reports nothing. Importing it has
no effect; `start` installs what listens and watches. It must not know Convoy's own packages: it runs in a user's image.
"""

from convoy_runtime.agreement import agree
from convoy_runtime.reporting import report, saved
from convoy_runtime.starting import start
from convoy_runtime.stopping import request_stop, stop_requested

__all__ = ["agree", "report", "request_stop", "saved", "start", "stop_requested"]
