"""The blocking face of the SDK."""

from collections.abc import Iterator
from types import TracebackType
from typing import Self

from convoy import flows, types
from convoy.flows import Manifests
from convoy.http import Blocking
from convoy.views import Explanation, JobList, JobView


class Fleet:
    """A fleet, by its address and a token: given, else CONVOY_URL and CONVOY_TOKEN, else as `convoy login` saved them."""

    def __init__(self, url: str = "", token: str = "") -> None:
        self._http = Blocking(url, token)

    def submit(self, manifests: Manifests) -> "Job":
        """Creates or changes one job: YAML, the path of a file, or dictionaries, with what it refers to beside it."""
        return Job(self._http, self._http.run(flows.submit(manifests)))

    def apply(self, manifests: Manifests) -> types.AppliedList:
        """Creates or changes any objects: all of them, or none."""
        return self._http.run(flows.apply(manifests))

    def job(self, name: str, namespace: str = "default", *, kind: str = "") -> "Job":
        return Job(self._http, self._http.run(flows.find(name, namespace, kind)))

    def jobs(self, namespace: str = "", **filters: str) -> "JobList[Job]":
        """Those of a namespace, or of all that the token may read. Filters are those of REST: ``state``, ``queue`` ..."""
        rows = self._http.run(flows.pages("jobs/", {"namespace": namespace, **filters}))
        return JobList(Job(self._http, job) for job in rows)

    def clusters(self) -> list[types.Cluster]:
        return self._http.run(flows.pages("clusters/", {}))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Fleet({str(self._http.client.base_url).removesuffix('api/v1/')!r})"


class Job(JobView):
    """A job, and what can be done with it."""

    def __init__(self, http: Blocking, value: types.JobDetail) -> None:
        super().__init__(value)
        self._http = http

    def refresh(self) -> Self:
        return self._take(flows.job_of(self.uid))

    def wait(self, state: str = "Succeeded", *, timeout_s: float | None = None) -> Self:
        """Returns once the job is in the state. Raises JobFailed when it ends in another one, TimedOut after ``timeout_s``."""
        value = self._http.run(flows.wait(self.uid, state, timeout_s))
        self.value = value or self.value
        return self

    def logs(
        self,
        *,
        follow: bool = False,
        pod: str = "",
        role: str = "",
        index: int | None = None,
        attempt: int | None = None,
        tail: int | None = None,
    ) -> Iterator[str]:
        """The lines of one pod, by default of the first one of the primary role; kept ones where the pod is gone."""
        params = flows.log_params(pod=pod, role=role, index=index, attempt=attempt, tail=tail, follow=follow)
        return self._http.lines(f"jobs/{self.uid}/logs/", params)

    def explain(self) -> Explanation:
        """Why it waits, or why its cluster was chosen, with a verdict for each cluster."""
        return Explanation(self._http.run(flows.explain(self.uid)))

    def events(self) -> list[types.Event]:
        return self._http.run(flows.pages(f"jobs/{self.uid}/events/", {}))

    def pods(self) -> list[types.Pod]:
        """Those that still exist in a cluster."""
        return self._http.run(flows.pages(f"jobs/{self.uid}/pods/", {}))

    def ended_pods(self) -> list[types.EndedPod]:
        """Those that have ended, and whether their logs are kept."""
        return self._http.run(flows.pages(f"jobs/{self.uid}/ended-pods/", {}))

    def attempts(self) -> list[types.Attempt]:
        return self._http.run(flows.pages(f"jobs/{self.uid}/attempts/", {}))

    def suspend(self) -> Self:
        return self._take(flows.act(self.uid, "suspend"))

    def resume(self) -> Self:
        return self._take(flows.act(self.uid, "resume"))

    def resize(self, role: str, replicas: int) -> Self:
        """Another number of pods, while it runs."""
        return self._take(flows.act(self.uid, "resize", {"role": role, "replicas": replicas}))

    def delete(self) -> Self:
        """The job stays until its copies are gone from the clusters: ``wait("Deleted")``."""
        return self._take(flows.delete(self.uid))

    def _take(self, flow: flows.Flow[types.JobDetail]) -> Self:
        self.value = self._http.run(flow)
        return self
