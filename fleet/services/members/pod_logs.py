"""The end of a pod's log, read by Convoy itself from the pod's member and within bounds: a tenant may write without end.

Logs that a person reads are streamed instead (`jobs.services.inspect.logs`, `fleet.kubeapi.pod_logs`).
"""

from fleet.kube.resources import PODS
from fleet.models import Pod
from fleet.services.members import member_clients

LINES = 400
BYTES = 512 * 1024
_ANSWER_S = 5.0


def tail(pod: Pod, *, container: str = "", previous: bool = False) -> str:
    """The last lines of the log; with ``previous`` of the run before the last restart. Raises `MemberError`.

    Call it outside of a transaction.
    """
    params = {"tailLines": str(LINES), "limitBytes": str(BYTES)}
    params |= {"container": container} if container else {}
    params |= {"previous": "true"} if previous else {}
    client = member_clients.client(pod.cluster, timeout_s=_ANSWER_S)
    return client.get_start(PODS.path(pod.namespace, pod.name, "log"), params, limit=BYTES, within_s=_ANSWER_S)
