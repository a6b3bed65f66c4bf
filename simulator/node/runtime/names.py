"""The /etc/hosts of isolated pods, with the names of their member's Services and pods. No I/O.

A member has no DNS server, and all resolvers read this file. A Service resolves to the addresses of the pods it selects, so a
Service whose port differs from its target port does not work.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from simulator.machinery.objects import Object, is_finished, labels_of, name_of, namespace_of, uid_of

DOMAIN = "svc.cluster.local"


def hosts_file(
    pod: Object, pods: Iterable[tuple[Object, str]], services: Iterable[Object], gateway: str, api: str
) -> str:
    """The file of one pod, with ``services`` and the ``pods`` (with addresses) that they select. Services of other namespaces
    are known by names with their namespace; ``api`` is the name under which the member's API answers at the gateway.
    """
    living = [(other, address) for other, address in pods if not is_finished(other)]
    lines = ["127.0.0.1 localhost", f"{gateway} {api} kubernetes.default.svc kubernetes.default kubernetes"]
    lines += [f"{address} {hostname(pod)}" for other, address in living if uid_of(other) == uid_of(pod)]
    by_namespace: dict[str, list[tuple[Object, str]]] = defaultdict(list)
    for other, address in living:
        by_namespace[namespace_of(other)].append((other, address))
    for service in sorted(services, key=name_of):
        namespace = namespace_of(service)
        lines += _service(service, by_namespace[namespace], bare=namespace == namespace_of(pod))
    return "\n".join(lines) + "\n"


def hostname(pod: Object) -> str:
    return str(pod["spec"].get("hostname") or name_of(pod))[:63]


def _service(service: Object, pods: list[tuple[Object, str]], *, bare: bool) -> list[str]:
    selector: Mapping[str, str] = (service.get("spec") or {}).get("selector") or {}
    if not selector:
        return []
    name, namespace = name_of(service), namespace_of(service)
    selected = [(pod, address) for pod, address in pods if selector.items() <= labels_of(pod).items()]
    lines = [f"{address} {_spellings(name, namespace, bare=bare)}" for _, address in selected]
    members = [(pod, address) for pod, address in selected if pod["spec"].get("subdomain") == name]
    return lines + [
        f"{address} {_spellings(f'{hostname(pod)}.{name}', namespace, bare=bare)}" for pod, address in members
    ]


def _spellings(name: str, namespace: str, *, bare: bool) -> str:
    """All forms of the name that a pod's search path resolves; without its namespace those of its own alone."""
    return f"{f'{name} ' if bare else ''}{name}.{namespace} {name}.{namespace}.svc {name}.{namespace}.{DOMAIN}"
