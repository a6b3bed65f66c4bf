"""A job that wants to report its progress gets what its pods need where there is a supervisor, and is sent everywhere."""

import base64
import hashlib

import pytest
import yaml

from fleet.kube.resources import NAMESPACES, PYTORCH_JOBS, SECRETS, SERVICES
from fleet.models import Event
from jobs.kinds.progress_reports import WANTED
from jobs.runtime import progress
from jobs.services.dispatch.copies.progress_reports import NAMESPACE, SERVICE, TLS
from tests.jobs.services import lost_cluster
from tests.support import books
from tests.support.passive import passive_member
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "j" * 53
PATH = PYTORCH_JOBS.path("default", NAME)


@pytest.fixture
def north(tmp_path):
    with passive_member(tmp_path) as made:
        yield made


def supervised(north) -> None:
    north.client.create(NAMESPACES.path(), {"metadata": {"name": NAMESPACE}})
    spec = {"selector": {"app": SERVICE}, "ports": [{"port": 8443}]}
    north.client.create(SERVICES.path(NAMESPACE), {"metadata": {"name": SERVICE}, "spec": spec})


def send(north, *documents: str) -> dict:
    books.apply(POLICY, *documents)
    lost_cluster.cycle()
    north.work(PYTORCH_JOBS)
    return north.client.get(PATH)


def opened(north, path: str) -> dict[str, str]:
    """The files of a Secret."""
    data = north.client.get(path)["data"]
    return {name: base64.b64decode(text).decode() for name, text in data.items()}


def job(wanted: str = "true", **env: str) -> str:
    body = yaml.safe_load(pytorch_job(NAME))
    for role in body["spec"]["pytorchReplicaSpecs"].values():
        role["template"]["spec"]["containers"][0]["env"] = [{"name": key, "value": text} for key, text in env.items()]
    return books.annotated(WANTED, wanted, yaml.safe_dump(body))


def containers(copy: dict) -> list[dict]:
    return [role["template"]["spec"] for role in copy["spec"]["pytorchReplicaSpecs"].values()]


def test_its_pods_get_address_token_and_authority_and_its_copy_the_tokens_digest(north):
    supervised(north)
    copy = send(north, job())
    uid, attempt = str(books.job(NAME).uid), copy["metadata"]["labels"]["convoy.dev/attempt"]
    secret = SECRETS.path("default", f"convoy-report-{uid}-{attempt}")
    files = opened(north, secret)
    assert copy["metadata"]["annotations"][progress.TOKEN_DIGEST] == hashlib.sha256(files["token"].encode()).hexdigest()
    assert files["ca.crt"] == opened(north, SECRETS.path(NAMESPACE, TLS))["ca.crt"]
    owner = north.client.get(secret)["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"]) == ("PyTorchJob", copy["metadata"]["uid"]), (
        "the member removes it with the copy"
    )
    for spec in containers(copy):
        env = {each["name"]: each["value"] for each in spec["containers"][0]["env"]}
        assert env["KUBEFLOW_TRAINER_SERVER_URL"] == f"https://{SERVICE}.{NAMESPACE}.svc:8443{PATH}/status"
        (volume,) = [each for each in spec["volumes"] if each["name"] == "convoy-report"]
        (mount,) = [each for each in spec["containers"][0]["volumeMounts"] if each["name"] == "convoy-report"]
        assert volume["secret"]["secretName"] == f"convoy-report-{uid}-{attempt}" and mount["readOnly"]
        for variable, file in (("TOKEN", "token"), ("CA_CERT", "ca.crt")):
            assert env[f"KUBEFLOW_TRAINER_SERVER_{variable}"] == f"{mount['mountPath']}/{file}"


def test_the_certificate_of_the_door_is_made_once(north):
    supervised(north)
    send(north, job())
    before = opened(north, SECRETS.path(NAMESPACE, TLS))
    assert set(before) == {"tls.crt", "tls.key", "ca.crt"}
    books.apply(yaml.safe_dump({**(body := yaml.safe_load(job())), "metadata": {**body["metadata"], "name": "other"}}))
    lost_cluster.cycle()
    north.work(PYTORCH_JOBS)
    assert north.client.get(PYTORCH_JOBS.path("default", "other"))
    assert opened(north, SECRETS.path(NAMESPACE, TLS)) == before


def test_a_worker_that_died_after_the_copy_was_made_leaves_the_secret_to_the_next(north, monkeypatch):
    supervised(north)

    def die(*_):
        raise SystemExit

    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr("jobs.services.dispatch.copies.progress_reports.send", die)
        send(north, job())
    assert north.items(SECRETS) == []
    north.work(PYTORCH_JOBS)
    (secret,) = north.items(SECRETS)
    token = base64.b64decode(secret["data"]["token"])
    assert north.client.get(PATH)["metadata"]["annotations"][progress.TOKEN_DIGEST] == hashlib.sha256(token).hexdigest()


def test_it_is_sent_without_where_there_is_no_supervisor_and_says_so(north):
    copy = send(north, job())
    assert progress.TOKEN_DIGEST not in (copy["metadata"].get("annotations") or {}) and north.items(SECRETS) == []
    assert "KUBEFLOW" not in str(copy)
    assert f"no Service {SERVICE} in {NAMESPACE}" in Event.objects.get(reason="ProgressNotReported").message


@pytest.mark.parametrize("wanted", ["false", "True", ""])
def test_who_does_not_ask_for_it_is_left_alone(north, wanted):
    supervised(north)
    assert "KUBEFLOW" not in str(send(north, job(wanted))) and north.items(SECRETS) == []


def test_a_container_with_a_server_of_its_own_keeps_it(north):
    supervised(north)
    copy = send(north, job(KUBEFLOW_TRAINER_SERVER_URL="https://mine"))
    for spec in containers(copy):
        assert [each["value"] for each in spec["containers"][0]["env"] if "KUBEFLOW" in each["name"]] == [
            "https://mine"
        ]
        assert not spec.get("volumes")
