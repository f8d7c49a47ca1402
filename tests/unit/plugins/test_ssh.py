import base64

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from vcjob.api.problems import Problem
from vcjob.api.types import Job, Object
from vcjob.core.blueprint import Blueprint
from vcjob.core.render import rendered_objects
from vcjob.plugins.base import KeyPair
from vcjob.plugins.registry import installed_plugins
from vcjob.plugins.ssh_keys import UnreadableKey, fits

REGISTRY = installed_plugins(third_party=False)
MADE = {
    "ssh-rsa": KeyPair("rsa private", "ssh-rsa AAAA\n"),
    "ssh-ed25519": KeyPair("ed25519 private", "ssh-ed25519 BBBB\n"),
}
SECRET = "vcjob.dev/ssh-secret"


def blueprint(
    *arguments: str,
    pod: Object | None = None,
    annotations: dict[str, str] | None = None,
    name: str = "j",
    volumes: list[Object] | None = None,
) -> Blueprint:
    template = {"spec": {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}],
                         **(pod or {})}}  # fmt: skip
    spec = {
        "tasks": [{"name": "w", "replicas": 2, "template": template}],
        "plugins": {"ssh": list(arguments)},
        "volumes": volumes or [],
    }
    job = {"metadata": {"name": name, "annotations": annotations or {}}, "spec": spec}
    return Blueprint(Job.of(job), REGISTRY, MADE)


def content(made: Blueprint) -> dict[str, str]:
    (secret,) = made.supporting_objects()
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


def own_key(form: serialization.PrivateFormat, password: bytes = b"") -> tuple[str, str]:
    key = ed25519.Ed25519PrivateKey.generate()
    lock = (
        serialization.BestAvailableEncryption(password)
        if password
        else serialization.NoEncryption()
    )
    private = key.private_bytes(serialization.Encoding.PEM, form, lock)
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return private.decode(), f"{public.decode()} me@home\n"


def containers(*users: int | None) -> Object:
    """A pod spec whose containers run as these users."""
    listed = [
        {"name": f"c{number}", **({} if user is None else {"securityContext": {"runAsUser": user}})}
        for number, user in enumerate(users)
    ]
    return {"containers": listed, "initContainers": []}


OPENSSH = own_key(serialization.PrivateFormat.OpenSSH)
PKCS8 = own_key(serialization.PrivateFormat.PKCS8)
LOCKED = own_key(serialization.PrivateFormat.PKCS8, b"secret")


def told(made: Blueprint) -> list[Problem]:
    """Problems but that of svc, which these Jobs leave out to be short."""
    return [problem for problem in made.problems if "without the plugin svc" not in problem.message]


def test_ssh_without_names_draws_a_warning() -> None:
    (problem,) = blueprint().problems
    assert (problem.warning, problem.hint) == (True, "add svc: []")
    with_svc = msgspec.structs.replace(blueprint().job.spec, plugins={"ssh": (), "svc": ()})
    job = msgspec.structs.replace(blueprint().job, spec=with_svc)
    assert Blueprint(job, REGISTRY, MADE).problems == ()


def test_both_pairs_are_in_the_secret_and_may_log_in() -> None:
    made = blueprint()
    found = content(made)
    assert [(n.name, n.algorithm, n.secret) for n in made.key_pairs] == [
        ("ssh-rsa", "rsa-2048", "j-ssh"),
        ("ssh-ed25519", "ed25519", "j-ssh"),
    ]
    assert made.lacking_key_pairs == ()
    assert found["id_rsa"] == "rsa private"
    assert found["id_ed25519.pub"] == "ssh-ed25519 BBBB\n"
    assert found["authorized_keys"] == "ssh-rsa AAAA\nssh-ed25519 BBBB\n"


def test_every_container_gets_the_directory() -> None:
    pod = blueprint("--ssh-key-file-path=/home/me/.ssh").pod("w", 1)
    mount = {"name": "j-ssh", "mountPath": "/home/me/.ssh", "subPath": ".ssh"}
    for container in (*pod["spec"]["containers"], *pod["spec"]["initContainers"]):
        assert container["volumeMounts"] == [mount]
    (volume,) = pod["spec"]["volumes"]
    files = {item["path"] for item in volume["secret"]["items"]}
    assert files == {f".ssh/{key}" for key in content(blueprint())}


def test_a_secret_given_by_name_has_the_keys_and_ours_the_configuration() -> None:
    made = blueprint(annotations={SECRET: "mine"})
    assert (made.key_pairs, list(content(made)), told(made)) == ((), ["config"], [])
    (volume,) = made.pod("w", 0)["spec"]["volumes"]
    files = {
        item["path"]: (source["secret"]["name"], item["key"])
        for source in volume["projected"]["sources"]
        for item in source["secret"]["items"]
    }
    assert files == {
        ".ssh/id_rsa": ("mine", "id_rsa"),
        ".ssh/id_rsa.pub": ("mine", "id_rsa.pub"),
        ".ssh/authorized_keys": ("mine", "id_rsa.pub"),
        ".ssh/config": ("j-ssh", "config"),
    }


def given(private: str, public: str) -> Blueprint:
    return blueprint(f"--ssh-private-key={private}", f"--ssh-public-key={public}")


@pytest.mark.parametrize("pair", [OPENSSH, PKCS8])
def test_given_keys_are_kept_verbatim_and_draw_a_warning(pair: tuple[str, str]) -> None:
    made = given(*pair)
    found = content(made)
    assert (found["id_rsa"], found["id_rsa.pub"], found["authorized_keys"]) == (*pair, pair[1])
    assert "id_ed25519" not in found
    assert made.key_pairs == ()
    (problem,) = told(made)
    assert problem.warning
    assert SECRET in problem.hint


@pytest.mark.parametrize(
    ("made", "says", "warning"),
    [
        (given(OPENSSH[0], PKCS8[1]), "does not belong to --ssh-private-key", False),
        (given(OPENSSH[0], "nonsense"), "does not belong to --ssh-private-key", False),
        (given(OPENSSH[0], ""), "without a public key nobody can log in", True),
        (given("nonsense", PKCS8[1]), "no private key in a form that ssh takes", True),
        (given(*LOCKED), "has a passphrase", True),
        (blueprint("--ssh-public-key=x"), "--ssh-public-key has no effect alone", True),
        (blueprint("--ssh-port=0"), "--ssh-port=0 is no port", False),
        (blueprint("--ssh-key-file-path=home"), 'must begin with / and have no ":"', False),
        (blueprint("--ssh-key-file-path="), 'must begin with / and have no ":"', False),
        (blueprint("--ssh-key-file-path=//"), "must name a directory", False),
        (blueprint("--ssh-key-file-path=/root/../x"), "must name a directory", False),
        (blueprint(name="j" * 60), "makes a volume named", False),
        (blueprint(annotations={SECRET: "No Name"}), "is the name of a Secret", False),
        (blueprint(annotations={SECRET: ""}), "is the name of a Secret", False),
        (blueprint(annotations={SECRET: "j-ssh"}), 'makes a Secret "j-ssh" itself', False),
        (
            blueprint(f"--ssh-private-key={OPENSSH[0]}", f"--ssh-public-key={OPENSSH[1]}",
                      annotations={SECRET: "mine"}),
            "--ssh-private-key has no effect", True,
        ),
        (
            blueprint(volumes=[{"mountPath": "/root/.ssh", "volumeClaimName": "c"}]),
            "mounts the keys at /root/.ssh too", False,
        ),
        (
            blueprint(pod={"volumes": [{"name": "j-ssh", "emptyDir": {}}]}),
            'adds a volume of the same name "j-ssh"', False,
        ),
        (
            blueprint(pod={"securityContext": {"runAsUser": 1000}}),
            "run as user 1000, who may not read /root/.ssh", True,
        ),
        (
            blueprint(pod={"securityContext": {"fsGroup": 1000}}),
            "lets others read the keys of root", True,
        ),
        (
            blueprint("--ssh-key-file-path=/x/.ssh", pod={"securityContext": {"runAsUser": 0}}),
            "takes no key of its own user that others may read", True,
        ),
        (blueprint(pod=containers(1000)), "run as user 1000, who may not read /root/.ssh", True),
        (
            blueprint(pod={**containers(1000, None), "securityContext": {"fsGroup": 5}}),
            "lets others read the keys of root", True,
        ),
        (
            blueprint("--ssh-key-file-path=/x/.ssh",
                      pod={**containers(0), "securityContext": {"runAsUser": 1000}}),
            "takes no key of its own user that others may read", True,
        ),
    ],
)  # fmt: skip
def test_what_is_told(made: Blueprint, says: str, warning: bool) -> None:
    found = [problem for problem in told(made) if says in problem.message]
    assert [problem.warning for problem in found] == [warning]


@pytest.mark.parametrize("context", [{"runAsUser": 1000}, {"runAsUser": 1000, "fsGroup": 1000}])
def test_a_user_with_keys_in_its_home_is_fine(context: dict[str, int]) -> None:
    """User cases P41 and P43: what this machine's ssh says is in tests/local."""
    made = blueprint("--ssh-key-file-path=/home/me/.ssh", pod={"securityContext": context})
    assert told(made) == []


def test_the_user_of_a_container_counts_before_that_of_its_pod() -> None:
    pod = {**containers(0), "securityContext": {"runAsUser": 1000, "fsGroup": None}}
    assert told(blueprint(pod=pod)) == []


@pytest.mark.parametrize(
    ("path", "mode"),
    [("/root/.ssh", 0o600), ("/root/.ssh/", 0o600), ("/home/me/.ssh", 0o644)],
)
def test_modes_are_those_that_ssh_wants_of_files_there(path: str, mode: int) -> None:
    (volume,) = blueprint(f"--ssh-key-file-path={path}").pod("w", 0)["spec"]["volumes"]
    assert volume["secret"]["defaultMode"] == mode


@pytest.mark.parametrize(
    ("path", "taken"),
    [("/etc/volcano/", True), ("/etc/volcano/k", True), ("/etc", True), ("/etc/volcanoes", False)],
)
def test_the_place_of_the_host_lists_is_taken(path: str, taken: bool) -> None:
    made = blueprint(f"--ssh-key-file-path={path}")
    assert told(made) == []
    plugins = {**made.job.spec.plugins, "svc": ()}
    spec = msgspec.structs.replace(made.job.spec, plugins=plugins)
    found = Blueprint(msgspec.structs.replace(made.job, spec=spec), REGISTRY).problems
    assert [one.warning for one in found] == ([False] if taken else [])
    assert all("svc mounts the host lists at /etc/volcano" in one.message for one in found)


def test_no_key_is_shown() -> None:
    for private, public in (OPENSSH, LOCKED, ("PRIVATE nonsense", "x")):
        made = given(private, public)
        shown = f"{told(made)} {list(rendered_objects(made))}"
        assert private.splitlines()[0] not in shown.replace(str(made.job), "")
    shown = str(list(rendered_objects(blueprint())))
    assert base64.b64encode(b"rsa private").decode() not in shown
    assert "rsa private" not in repr(MADE)


def test_without_keys_a_placeholder_stands_there() -> None:
    made = blueprint().with_key_pairs({})
    assert [need.name for need in made.lacking_key_pairs] == ["ssh-rsa", "ssh-ed25519"]
    assert content(made)["id_rsa"].startswith("<private key (rsa-2048")


def test_an_rsa_key_fits_its_public_key_whatever_its_comment() -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    assert fits(private, public.decode())
    assert fits(private, f"{public.decode()} somebody")
    assert fits(private, f'from="10.0.0.0/8" {public.decode()}')
    with pytest.raises(UnreadableKey) as caught:
        fits(private.replace("A", "!"), public.decode())
    assert private[40:80] not in str(caught.value)
