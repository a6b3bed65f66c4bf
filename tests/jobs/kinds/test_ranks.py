"""What a copy's pods are told of their ranks and their domain."""

from jobs.kinds import ranks, registry

PYTORCH = registry.kind_of("kubeflow.org/v1", "PyTorchJob")


def job(**spec) -> dict:
    replicas = {
        role: {"template": {"spec": {"containers": [{"name": "pytorch"}], **spec}}} for role in ("Master", "Worker")
    }
    return {"metadata": {"name": "llama"}, "spec": {"pytorchReplicaSpecs": replicas}}


def worker(made: dict) -> dict:
    return made["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]


def test_each_role_gets_its_nodes_in_the_order_of_ranks():
    made = job()
    assert ranks.write(PYTORCH, made, {"worker": [["a", 2], ["b", 1]]}) == {}
    assert worker(made)["metadata"]["annotations"] == {"convoy.dev/ranks": "a*2 b"}
    assert "metadata" not in made["spec"]["pytorchReplicaSpecs"]["Master"]["template"]


def test_the_processes_find_the_list_and_their_own_node():
    made = job(containers=[{"name": "pytorch", "env": [{"name": "CONVOY_NODE", "value": "mine"}]}])
    ranks.write(PYTORCH, made, {"worker": [["a", 2]]})
    [mine, theirs] = worker(made)["spec"]["containers"][0]["env"]
    assert mine == {"name": "CONVOY_NODE", "value": "mine"} and theirs["name"] == "CONVOY_RANKS"
    assert theirs["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.annotations['convoy.dev/ranks']"


def test_a_list_too_long_for_every_pod_is_a_file_of_the_role():
    made = job(volumes=[{"name": "data", "emptyDir": {}}])
    lists = ranks.write(PYTORCH, made, {"worker": [[f"node-{i}", 1] for i in range(5000)]})
    assert lists["worker"].startswith("node-0 node-1 ") and "metadata" not in worker(made)
    assert worker(made)["spec"]["volumes"][1] == {"name": "convoy-ranks", "configMap": {"name": "llama-convoy-ranks"}}
    [container] = worker(made)["spec"]["containers"]
    assert container["volumeMounts"] == [{"name": "convoy-ranks", "mountPath": "/etc/convoy/ranks", "readOnly": True}]
    assert container["env"][0] == {"name": "CONVOY_RANKS_FILE", "value": "/etc/convoy/ranks/worker"}


def test_lists_that_no_configmap_holds_are_not_handed_over():
    made = job()
    assert ranks.write(PYTORCH, made, {"worker": [[f"{i:0240}", 1] for i in range(4500)]}) == {}
    assert "volumes" not in worker(made)["spec"]


def test_a_domain_with_a_label_becomes_a_node_selector():
    made = job(nodeSelector={"gpu": "a100"})
    ranks.pin(PYTORCH, made, "rack", ["r1"])
    assert worker(made)["spec"]["nodeSelector"] == {"gpu": "a100", "rack": "r1"}


def test_a_domain_without_a_label_holds_beside_every_term_of_an_affinity():
    condition = {"key": "gpu", "operator": "Exists"}
    required = {"nodeSelectorTerms": [{"matchExpressions": [condition]}, {}]}
    made = job(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})
    ranks.pin(PYTORCH, made, "host", ["a", "b"])
    wanted = {"key": "host", "operator": "In", "values": ["a", "b"]}
    found = worker(made)["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert found == {"nodeSelectorTerms": [{"matchExpressions": [condition, wanted]}, {}]}


def test_device_plugins_find_the_gpus_where_a_template_can_say_them():
    visible, group = "topology.kubernetes.io/gpu-visible", "topology.kubernetes.io/gpu-group"
    made = job(containers=[{"name": "pytorch", "image": "x", "resources": {"limits": {"aliyun.com/gpu": 2}}}])
    ranks.write_gpus(PYTORCH, made, {"worker": [["a", 1]]}, {"a": [4, 5]})
    notes = worker(made)["metadata"]["annotations"]
    assert (notes[visible], notes[group]) == ("4,5", "4,5")
    made = job(containers=[{"name": "pytorch", "image": "x", "resources": {"limits": {"aliyun.com/gpu": 1}}}])
    ranks.write_gpus(PYTORCH, made, {"worker": [["a", 2]]}, {"a": [4, 5]})
    notes = worker(made)["metadata"]["annotations"]
    assert notes[visible] == "4,5" and group not in notes


def test_each_role_is_told_the_gpus_of_its_nodes():
    made = job()
    ranks.write_gpus(PYTORCH, made, {"worker": [["a", 2], ["b", 1]]}, {"a": [4, 5], "c": [1]})
    assert worker(made)["metadata"]["annotations"] == {"convoy.dev/gpu-sets": "a=4,5"}
