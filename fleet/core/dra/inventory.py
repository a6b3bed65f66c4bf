"""The devices of a member that claims ask for (resource.k8s.io/v1): how many of each class its nodes have, how many are taken.

Devices come from ResourceSlices, classes from DeviceClasses, and what is taken from allocations of ResourceClaims. Counted
are devices of one node that have no taint; where devices are parts of the same hardware (counters), one of a class counts for
all that it shares with. Where classes have devices or hardware of a node in common, only the narrowest has any there (that of
the fewest devices in the member, then of the longest selectors): each amount is given by itself, and the same device would be
given twice. It knows no database and no wire. A member's answer is not trusted to be sound: what cannot be read is absent.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fleet.core.dra import classes, selectors
from fleet.core.dra.selectors import Device, Unknown
from fleet.kube import quantities
from fleet.kube.quantities import QuantityError

Amounts = dict[str, int]
Key = tuple[str, str]
"""Namespace and name."""
Manifest = Mapping[str, Any]
DeviceId = tuple[str, str, str]
"""Driver, pool and name."""
_MOST = 128
"""Devices of a slice, by Kubernetes' own limit."""
_MOST_CLASSES = 128
"""Of a member, the first by name: each is asked of every device. Others have no devices."""


@dataclass(frozen=True, slots=True)
class ObservedDevice:
    id: DeviceId
    seen: Device
    counters: frozenset[tuple[str, str, str]] = frozenset()
    """Sets of counters it consumes from: hardware that it shares with other devices."""


@dataclass(frozen=True, slots=True)
class ObservedSlice:
    node: str
    pool: tuple[str, str]
    generation: int
    devices: tuple[ObservedDevice, ...]


@dataclass(frozen=True, slots=True)
class ObservedClass:
    name: str
    selectors: tuple[str, ...]


@dataclass(slots=True)
class _NodeDevices:
    devices: list[tuple[ObservedDevice, tuple[str, ...]]] = field(default_factory=list)
    """Each with the resources of its classes."""
    counters: dict[DeviceId, frozenset[tuple[str, str, str]]] = field(default_factory=dict)


@dataclass(slots=True)
class DeviceInventory:
    """Of one member. ``touched`` are nodes whose amounts may have changed; the reader clears it."""

    touched: set[str] = field(default_factory=set)
    is_on: bool = False
    """Whether all of it is seen. Without one of the parts no node has devices."""
    _slices: dict[str, ObservedSlice] = field(default_factory=dict)
    _classes: dict[str, ObservedClass] = field(default_factory=dict)
    _claims: dict[Key, tuple[DeviceId, ...]] = field(default_factory=dict)
    _nodes: dict[str, _NodeDevices] = field(default_factory=dict)
    _node_of: dict[DeviceId, str] = field(default_factory=dict)
    _taken: Counter[DeviceId] = field(default_factory=Counter)

    def update_slices(self, present: Mapping[str, ObservedSlice], gone: Iterable[str] = (), *, listed: bool) -> None:
        self._slices = dict(present) if listed else {**self._slices, **present}
        for name in gone:
            self._slices.pop(name, None)
        self._count_devices()

    def update_classes(self, present: Mapping[str, ObservedClass], gone: Iterable[str] = (), *, listed: bool) -> None:
        self._classes = dict(present) if listed else {**self._classes, **present}
        for name in gone:
            self._classes.pop(name, None)
        self._count_devices()

    def update_claims(
        self, present: Mapping[Key, tuple[DeviceId, ...]], gone: Iterable[Key] = (), *, listed: bool
    ) -> None:
        for key in list(self._claims) if listed else []:
            self._release(key)
        for key in gone:
            self._release(key)
        for key, devices in present.items():
            self._release(key)
            self._claims[key] = devices
            self._taken.update(devices)
            self.touched |= {self._node_of[each] for each in devices if each in self._node_of}

    def switch(self, *, on: bool) -> None:
        if on != self.is_on:
            self.is_on = on
            self.touched |= self._nodes.keys()

    def is_allocated(self, claim: Key) -> bool:
        return bool(self._claims.get(claim))

    def of_node(self, node: str) -> tuple[Amounts, Amounts]:
        """How many devices of each class the node has, and how many of them are taken."""
        offered, taken = Counter[str](), Counter[str]()
        known = self._nodes.get(node)
        if known is None or not self.is_on:
            return {}, {}
        shared = {counter for each, counters in known.counters.items() if self._taken[each] > 0 for counter in counters}
        for device, resources in known.devices:
            offered.update(resources)
            if self._taken[device.id] > 0 or device.counters & shared:
                taken.update(resources)
        return dict(offered), dict(taken)

    def _release(self, key: Key) -> None:
        for device in self._claims.pop(key, ()):
            self._taken[device] -= 1
            if not self._taken[device]:
                del self._taken[device]
            if device in self._node_of:
                self.touched.add(self._node_of[device])

    def _count_devices(self) -> None:
        """Slices of an older generation of their pool are left out: their devices may be described anew."""
        newest: dict[tuple[str, str], int] = {}
        for each in self._slices.values():
            newest[each.pool] = max(newest.get(each.pool, 0), each.generation)
        named = sorted((each for each in self._classes.values() if each.name), key=lambda each: each.name)
        known = named[:_MOST_CLASSES]
        matchers = list(_matchers(known))
        before, self._nodes, self._node_of = self._nodes, {}, {}
        for each in self._slices.values():
            if each.node and each.generation == newest[each.pool]:
                node = self._nodes.setdefault(each.node, _NodeDevices())
                for device in each.devices:
                    resources = tuple(name for name, matches in matchers if matches(device.seen))
                    node.devices.append((device, resources))
                    node.counters[device.id] = device.counters
                    self._node_of[device.id] = each.node
        of_class = Counter(name for node in self._nodes.values() for _, resources in node.devices for name in resources)
        length = {classes.resource_of(each.name): sum(map(len, each.selectors)) for each in known}
        narrowest = sorted(of_class, key=lambda name: (of_class[name], -length[name], name))
        for node in self._nodes.values():
            node.devices = list(_once_each_counter(_without_broader_classes(node.devices, narrowest)))
        self.touched |= before.keys() | self._nodes.keys()


def _matchers(observed: Iterable[ObservedClass]) -> Iterable[tuple[str, Callable[[Device], bool]]]:
    """The resource of each class whose selectors are known here, and whether a device is of it."""
    for each in observed:
        try:
            parts = [selectors.parse(expression) for expression in each.selectors]
        except Unknown:
            continue
        yield classes.resource_of(each.name), partial(_is_of_all, parts)


def _is_of_all(parts: Sequence[Callable[[Device], bool]], device: Device) -> bool:
    return all(selects(device) for selects in parts)


def _without_broader_classes(
    devices: Sequence[tuple[ObservedDevice, tuple[str, ...]]], narrowest: Iterable[str]
) -> Iterable[tuple[ObservedDevice, tuple[str, ...]]]:
    """Of a node, without the classes that share a device with a narrower one: a claim of them may get any of their devices."""
    hardware: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for device, resources in devices:
        for name in resources:
            hardware[name] |= {("device", *device.id), *device.counters}
    used: set[tuple[str, ...]] = set()
    counted: set[str] = set()
    for name in narrowest:
        if name in hardware and not hardware[name] & used:
            counted.add(name)
            used |= hardware[name]
    for device, resources in devices:
        yield device, tuple(name for name in resources if name in counted)


def _once_each_counter(
    devices: Iterable[tuple[ObservedDevice, tuple[str, ...]]],
) -> Iterable[tuple[ObservedDevice, tuple[str, ...]]]:
    """Of each class the devices that can all be taken at once: of those that share hardware the first."""
    used: dict[str, set[tuple[str, str, str]]] = defaultdict(set)
    for device, resources in devices:
        kept = tuple(name for name in resources if not device.counters & used[name])
        for name in kept:
            used[name] |= device.counters
        yield device, kept


def read_slice(manifest: Manifest) -> ObservedSlice:
    spec = _part(manifest, "spec")
    driver, pool = str(spec.get("driver") or ""), _part(spec, "pool")
    name, generation = str(pool.get("name") or ""), pool.get("generation")
    devices = _listed(spec, "devices")
    return ObservedSlice(
        node=str(spec.get("nodeName") or ""),
        pool=(driver, name),
        generation=generation if isinstance(generation, int) else 0,
        devices=tuple(_device(driver, name, each) for each in devices[:_MOST] if not _tainted(each)),
    )


def read_class(manifest: Manifest) -> ObservedClass:
    expressions = [_part(each, "cel").get("expression") for each in _listed(_part(manifest, "spec"), "selectors")]
    return ObservedClass(str(_part(manifest, "metadata").get("name") or ""), tuple(map(str, expressions)))


def read_claim(manifest: Manifest) -> tuple[DeviceId, ...]:
    """The devices that are allocated to the claim. One that is taken for administration takes nothing from others."""
    results = _listed(_part(_part(_part(manifest, "status"), "allocation"), "devices"), "results")
    taken = [each for each in results if not each.get("adminAccess")]
    return tuple((str(each.get("driver")), str(each.get("pool")), str(each.get("device"))) for each in taken)


def _device(driver: str, pool: str, body: Manifest) -> ObservedDevice:
    attributes: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, value in _part(body, "attributes").items():
        domain, _, short = str(name).rpartition("/")
        if isinstance(value, Mapping) and len(value) == 1:
            attributes[domain or driver][short] = next(iter(value.values()))
    capacity: dict[str, dict[str, int]] = defaultdict(dict)
    for name, value in _part(body, "capacity").items():
        domain, _, short = str(name).rpartition("/")
        try:
            capacity[domain or driver][short] = quantities.units(value["value"])
        except (QuantityError, KeyError, TypeError, ValueError):
            continue
    sets = [str(each.get("counterSet")) for each in _listed(body, "consumesCounters")]
    seen = Device(driver, attributes, capacity)
    return ObservedDevice(
        (driver, pool, str(body.get("name") or "")), seen, frozenset((driver, pool, each) for each in sets)
    )


def _tainted(device: Manifest) -> bool:
    return any(taint.get("effect") in ("NoSchedule", "NoExecute") for taint in _listed(device, "taints"))


def _part(manifest: Manifest, name: str) -> Manifest:
    part = manifest.get(name)
    return part if isinstance(part, Mapping) else {}


def _listed(manifest: Manifest, name: str) -> list[Manifest]:
    entries = manifest.get(name)
    return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
