"""The face of the SDK for asyncio: the same as `convoy.fleet`, with ``await``."""

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from convoy import flows, types
from convoy.flows import Manifests
from convoy.http import NonBlocking
from convoy.views import Explanation, JobList, JobView


class AsyncFleet:
    """A fleet, by its address and a token: given, else CONVOY_URL and CONVOY_TOKEN, else as `convoy login` saved them."""

    def __init__(self, url: str = "", token: str = "") -> None:
        self._http = NonBlocking(url, token)

    async def submit(self, manifests: Manifests) -> "AsyncJob":
        """Creates or changes one job: YAML, the path of a file, or dictionaries, with what it refers to beside it."""
        return AsyncJob(self._http, await self._http.run(flows.submit(manifests)))

    async def apply(self, manifests: Manifests) -> types.AppliedList:
        """Creates or changes any objects: all of them, or none."""
        return await self._http.run(flows.apply(manifests))

    async def job(self, name: str, namespace: str = "default", *, kind: str = "") -> "AsyncJob":
        return AsyncJob(self._http, await self._http.run(flows.find(name, namespace, kind)))

    async def jobs(self, namespace: str = "", **filters: str) -> "JobList[AsyncJob]":
        """Those of a namespace, or of all that the token may read. Filters are those of REST: ``state``, ``queue`` ..."""
        rows = await self._http.run(flows.pages("jobs/", {"namespace": namespace, **filters}))
        return JobList(AsyncJob(self._http, job) for job in rows)

    async def clusters(self) -> list[types.Cluster]:
        return await self._http.run(flows.pages("clusters/", {}))

    async def close(self) -> None:
        await self._http.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncFleet({str(self._http.client.base_url).removesuffix('api/v1/')!r})"


class AsyncJob(JobView):
    """A job, and what can be done with it."""

    def __init__(self, http: NonBlocking, value: types.JobDetail) -> None:
        super().__init__(value)
        self._http = http

    async def refresh(self) -> Self:
        return await self._take(flows.job_of(self.uid))

    async def wait(self, state: str = "Succeeded", *, timeout_s: float | None = None) -> Self:
        """Returns once the job is in the state. Raises JobFailed when it ends in another one, TimedOut after ``timeout_s``."""
        value = await self._http.run(flows.wait(self.uid, state, timeout_s))
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
    ) -> AsyncIterator[str]:
        """The lines of one pod, by default of the first one of the primary role; kept ones where the pod is gone."""
        params = flows.log_params(pod=pod, role=role, index=index, attempt=attempt, tail=tail, follow=follow)
        return self._http.lines(f"jobs/{self.uid}/logs/", params)

    async def explain(self) -> Explanation:
        """Why it waits, or why its cluster was chosen, with a verdict for each cluster."""
        return Explanation(await self._http.run(flows.explain(self.uid)))

    async def events(self) -> list[types.Event]:
        return await self._http.run(flows.pages(f"jobs/{self.uid}/events/", {}))

    async def pods(self) -> list[types.Pod]:
        """Those that still exist in a cluster."""
        return await self._http.run(flows.pages(f"jobs/{self.uid}/pods/", {}))

    async def ended_pods(self) -> list[types.EndedPod]:
        """Those that have ended, and whether their logs are kept."""
        return await self._http.run(flows.pages(f"jobs/{self.uid}/ended-pods/", {}))

    async def attempts(self) -> list[types.Attempt]:
        return await self._http.run(flows.pages(f"jobs/{self.uid}/attempts/", {}))

    async def suspend(self) -> Self:
        return await self._take(flows.act(self.uid, "suspend"))

    async def resume(self) -> Self:
        return await self._take(flows.act(self.uid, "resume"))

    async def resize(self, role: str, replicas: int) -> Self:
        """Another number of pods, while it runs."""
        return await self._take(flows.act(self.uid, "resize", {"role": role, "replicas": replicas}))

    async def delete(self) -> Self:
        """The job stays until its copies are gone from the clusters: ``wait("Deleted")``."""
        return await self._take(flows.delete(self.uid))

    async def _take(self, flow: flows.Flow[types.JobDetail]) -> Self:
        self.value = await self._http.run(flow)
        return self
