import copy

from vcjob.plugins.draft import PodDraft

SPEC = {
    "containers": [{"name": "c", "env": [{"name": "A"}], "ports": [{"containerPort": 22}]}],
    "initContainers": [{"name": "i"}],
    "hostname": "given",
}


def test_additions_are_appended_and_never_change_the_template() -> None:
    before = copy.deepcopy(SPEC)
    pod = PodDraft("j-a-0", "a", 0, SPEC, {}, {})
    pod.set_default("hostname", "other")
    pod.set_default("subdomain", "j")
    pod.add_volume({"name": "v"})
    pod.add_init_container({"name": "wait"})
    for container in pod.all_containers():
        container.add_env([{"name": "B"}])
        container.add_mount("v", "/v", sub_path="x")
        container.add_port("ssh", 22)
    pod.containers[0].set_command(["sh"])
    mount = {"name": "v", "mountPath": "/v", "subPath": "x"}
    port = {"name": "ssh", "containerPort": 22}
    assert pod.finished_spec() == {
        "containers": [
            {
                "name": "c",
                "env": [{"name": "A"}, {"name": "B"}],
                "ports": [{"containerPort": 22}],
                "volumeMounts": [mount],
                "command": ["sh"],
            }
        ],
        "initContainers": [
            {"name": name, "env": [{"name": "B"}], "volumeMounts": [mount], "ports": [port]}
            for name in ("i", "wait")
        ],
        "hostname": "given",
        "subdomain": "j",
        "volumes": [{"name": "v"}],
    }
    assert before == SPEC


def test_what_is_not_there_is_not_made() -> None:
    assert PodDraft("p", "a", 0, {}, {}, {}).finished_spec() == {}
