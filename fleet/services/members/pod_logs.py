"""The end of a pod's log, read by Convoy itself from the pod's member and within bounds: a tenant may write without end.

Logs that a person reads are streamed instead (`jobs.services.inspect.logs`, `fleet.kubeapi.pod_logs`).
"""

from fleet.kube.resources import PODS
from fleet.member.client import MemberClient
from fleet.models import Pod

LINES = 400
BYTES = 512 * 1024
ANSWER_S = 5.0


def tail(
    client: MemberClient, pod: Pod, *, container: str = "", previous: bool = False, timestamps: bool = False
) -> str:
    """The last lines of the log; with ``previous`` of the run before the last restart. Raises `MemberError`.

    With ``timestamps`` each line begins with the time at which the kubelet received it. Call it outside of a transaction.
    """
    params = {"tailLines": str(LINES), "limitBytes": str(BYTES)}
    params |= {"container": container} if container else {}
    params |= {"previous": "true"} if previous else {}
    params |= {"timestamps": "true"} if timestamps else {}
    return client.get_start(PODS.path(pod.namespace, pod.name, "log"), params, limit=BYTES, within_s=ANSWER_S)
