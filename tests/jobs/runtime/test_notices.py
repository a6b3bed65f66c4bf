"""Records are read again as they were written, and only from the object that they name."""

from hypothesis import given
from hypothesis import strategies as st

from jobs.runtime import notices as notice
from jobs.runtime.notices import JobRecord, Notice, PodRecord, Scope

times = st.integers(1_700_000_000_000, 2_000_000_000_000).map(lambda ms: ms / 1000)
words = st.text("abcdefghij-.0123456789", min_size=1, max_size=60)
notices = st.builds(Notice, words, words, words, times, times, st.sampled_from(Scope), st.integers(0, 99))
pods = st.builds(PodRecord, words, st.none() | times, st.none() | times, st.none() | st.integers(0, 10**9))


@given(notices)
def test_it_reads_a_pods_notice_as_it_was_written(given_notice):
    assert notice.read_notice(given_notice.written("uid-1"), "uid-1") == given_notice
    assert notice.read_notice(given_notice.written("uid-1"), "uid-2") is None


@given(
    st.lists(
        st.tuples(notices, st.dictionaries(words, pods, max_size=4)), max_size=4, unique_by=lambda pair: pair[0].id
    )
)
def test_it_reads_a_jobs_record_as_it_was_written(entries):
    records = {about.id: JobRecord(about, dict(by_name), about.deadline) for about, by_name in entries}
    read = notice.read_records(notice.written(records, "uid-1"), "uid-1")
    assert read.keys() == records.keys()
    for id, record in records.items():
        assert read[id].pods == record.pods and read[id].stopped == record.stopped
        assert (read[id].notice.at, read[id].notice.deadline) == (record.notice.at, record.notice.deadline)
    assert notice.read_records(notice.written(records, "uid-1"), "another") == {}


@given(st.text() | st.none() | st.integers() | st.recursive(st.none() | st.text(), st.lists).map(str))
def test_it_reads_nothing_of_what_a_stranger_wrote(text):
    assert notice.read_notice(text, "uid-1") is None
    assert notice.read_records(text, "uid-1") == {}


def test_it_stays_within_what_an_annotation_may_hold():
    about = [Notice(f"n-{i}", "aws-spot", "n" * 200, 1e9 + i, 1e9, Scope.JOB) for i in range(20)]
    many = {f"worker-{i}-{'x' * 200}": PodRecord("u" * 36, 1e9, 1e9, 10) for i in range(1000)}
    text = notice.written({one.id: JobRecord(one, dict(many)) for one in about}, "uid-1")
    assert len(text) <= notice.LONGEST
    assert about[-1].id in notice.read_records(text, "uid-1")


def test_it_leaves_out_pods_whose_names_cannot_be_stored():
    about = Notice("n-1", "aws-spot", "node-1", 1e9, 1e9, Scope.PODS)
    pods_named = {"worker-1": PodRecord("u1"), "worker-\0": PodRecord("u2"), "w" * 254: PodRecord("u3")}
    read = notice.read_records(notice.written({"n-1": JobRecord(about, pods_named)}, "uid-1"), "uid-1")
    assert read["n-1"].pods.keys() == {"worker-1"}
