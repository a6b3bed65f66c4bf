"""What an exporter prints is read for what it is, and nothing that it prints does harm."""

from datetime import UTC, datetime, timedelta

import pytest

from fleet.core import gpu_readings
from fleet.core.gpu_readings import MOST_GPUS, Reading, carry_idle, parse

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LABELS = 'gpu="{gpu}",UUID="GPU-{gpu}",device="nvidia0",modelName="NVIDIA A100",container="c",namespace="ns",pod="p"'


def line(metric: str, value: object, gpu: object = 0, more: str = "") -> str:
    return f"{metric}{{{LABELS.format(gpu=gpu)}{more}}} {value}\n"


def test_it_reads_use_memory_power_temperature_and_the_pod() -> None:
    text = "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
    text += line("DCGM_FI_DEV_GPU_UTIL", 93) + line("DCGM_FI_DEV_FB_USED", 61000) + line("DCGM_FI_DEV_FB_FREE", 20000)
    text += (
        line("DCGM_FI_DEV_POWER_USAGE", "312.46") + line("DCGM_FI_DEV_GPU_TEMP", 64) + line("DCGM_FI_DEV_SM_CLOCK", 1)
    )
    [reading] = parse(text.encode())
    expected = Reading("0", "GPU-0", "NVIDIA A100", 93, 61000, 81000, 312.5, 64, "ns", "p", "c")
    assert reading == expected and gpu_readings.loaded(gpu_readings.stored([reading])) == [reading]


def test_gpus_are_in_the_order_of_their_numbers() -> None:
    text = "".join(line("DCGM_FI_DEV_GPU_UTIL", 1, gpu) for gpu in (10, 2, 0))
    assert [each.gpu for each in parse(text.encode())] == ["0", "2", "10"]


def test_what_the_driver_does_not_know_is_not_known() -> None:
    """DCGM prints numbers such as 9223372036854775794 for it."""
    text = (
        line("DCGM_FI_DEV_GPU_UTIL", 9223372036854775794)
        + line("DCGM_FI_DEV_GPU_TEMP", "NaN")
        + line("DCGM_FI_DEV_POWER_USAGE", -3)
    )
    [reading] = parse(text.encode())
    assert (reading.utilization, reading.temperature, reading.power) == (None, None, None)


def test_instances_of_a_divided_gpu_are_apart_and_their_engine_stands_for_their_use() -> None:
    text = line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.25, more=',GPU_I_ID="7"') + line("DCGM_FI_DEV_FB_USED", 10)
    assert [(each.gpu, each.utilization) for each in parse(text.encode())] == [("0", None), ("0/7", 25.0)]


def test_older_names_of_labels_are_known() -> None:
    text = b'DCGM_FI_DEV_GPU_UTIL{gpu="0",pod_name="p",pod_namespace="ns",container_name="c"} 5\n'
    [reading] = parse(text)
    assert reading.owner == ("ns", "p") and reading.container == "c"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x00\xff\xfe" * 1000,
        b"DCGM_FI_DEV_GPU_UTIL{",
        b'DCGM_FI_DEV_GPU_UTIL{gpu="0" 5\n',
        b'DCGM_FI_DEV_GPU_UTIL{gpu="0"} five\n',
        b'DCGM_FI_DEV_GPU_UTIL{gpu="-1"} 5\n',
        b'DCGM_FI_DEV_GPU_UTIL{gpu="\xd9\xa3"} 5\n',
        b'DCGM_FI_DEV_GPU_UTIL{UUID="x"} 5\n',
        b'DCGM_FI_DEV_GPU_UTIL{gpu="0",pod="' + b"x" * 5000 + b'"} 5\n',
        b"<html>DCGM_FI_DEV_GPU_UTIL</html>",
    ],
)
def test_nonsense_reads_as_nothing(text: bytes) -> None:
    assert parse(text) == []


def test_a_line_that_cannot_be_read_leaves_the_others_alone() -> None:
    text = b'DCGM_FI_DEV_GPU_UTIL{gpu="0"} five\n' + line("DCGM_FI_DEV_GPU_UTIL", 5, 1).encode()
    assert [each.gpu for each in parse(text)] == ["1"]


def test_values_and_labels_are_read_as_prometheus_reads_them() -> None:
    labels = '{gpu="0", pod="a\\\\b\\"c}d{e",modelName="x=\\"1\\",y",}'
    for value, expected in (
        ("5", 5),
        ("5e0 1700000000000", 5),
        ("+5.04", 5),
        ("1" * 400, None),
        ("+Inf", None),
        ("0x5", None),
    ):
        text = f"DCGM_FI_DEV_GPU_UTIL{labels} {value}\r\n"
        for reading in parse(text.encode()):
            assert (reading.pod, reading.model, reading.utilization) == ('a\\b"c}d{e', 'x="1",y', expected)
        assert len(parse(text.encode())) == (0 if value == "0x5" else 1)


def test_it_reads_so_much_text_and_stops_when_there_is_no_time_left() -> None:
    pod = ',x="' + "y" * 3000 + '"'
    text = "".join(line("DCGM_FI_DEV_GPU_UTIL", 1, gpu, pod) for gpu in range(MOST_GPUS * 3)).encode()
    assert len(parse(text)) == MOST_GPUS
    same = (line("DCGM_FI_DEV_GPU_UTIL", 1, 0, pod) * 300).encode()
    assert [each.gpu for each in parse(same + line("DCGM_FI_DEV_GPU_UTIL", 1, 1).encode())] == ["0"]
    left = iter([False, False, True])
    assert [each.gpu for each in parse(text, is_over=lambda: next(left))] == ["0", "1"]


def test_it_reads_so_many_gpus_and_no_more_labels_than_it_keeps() -> None:
    text = "".join(line("DCGM_FI_DEV_GPU_UTIL", 1, gpu) for gpu in range(3000)).encode()
    assert len(parse(text)) == MOST_GPUS
    [reading] = parse(b'DCGM_FI_DEV_GPU_UTIL{gpu="0",pod="' + b"x" * 300 + b'",modelName="a\x07b"} 5\n')
    assert (reading.pod, reading.model) == ("", "")


def busy(utilization: float | None, pod: str = "p", since: str = "") -> Reading:
    return Reading("0", utilization=utilization, namespace="ns", pod=pod, idle_since=since)


@pytest.mark.parametrize(
    ("reading", "before", "since"),
    [
        (busy(2), [], NOW),
        (busy(2), [busy(1, since=(NOW - timedelta(hours=1)).isoformat())], NOW - timedelta(hours=1)),
        (busy(2), [busy(1, "other", since=(NOW - timedelta(hours=1)).isoformat())], NOW),
        (busy(2), [busy(80)], NOW),
        (busy(50), [busy(1, since=(NOW - timedelta(hours=1)).isoformat())], None),
        (busy(None), [busy(1, since=(NOW - timedelta(hours=1)).isoformat())], None),
        (busy(0, ""), [], None),
    ],
    ids=["first", "still", "another pod", "was busy", "busy", "not known", "no pod"],
)
def test_idle_counts_from_when_the_same_pod_was_first_seen_idle(
    reading: Reading, before: list[Reading], since: datetime | None
) -> None:
    [carried] = carry_idle([reading], before, NOW, threshold=5)
    assert carried.idle_since == (since.isoformat() if since else "")
