"""The ssh plugin: pods of a job log in to each other without a password.

Source: plugins.md section 5. The keys are made once per Job and live as long as it does. They
come into a directory of the volume of their own (``subPath``), because sshd trusts no directory
that everybody may write to, which a volume's own is on a cluster.
"""

import base64
from collections.abc import Iterable, Iterator

from vcjob.api import kinds, names
from vcjob.api.problems import Path, Problem
from vcjob.api.types import Object, Task
from vcjob.api.validation import dns_1123_subdomain
from vcjob.plugins import options, svc
from vcjob.plugins.arguments import MOST_PORT
from vcjob.plugins.base import AddToPod, Argument, KeyPairNeed, Plugin, Request
from vcjob.plugins.draft import PodDraft
from vcjob.plugins.hosts import pod_spec
from vcjob.plugins.mounts import mount_problems
from vcjob.plugins.ports import containers_of
from vcjob.plugins.roles import argument_path, made_name_problems
from vcjob.plugins.ssh_config import client_config
from vcjob.plugins.ssh_keys import UnreadableKey, fits

ROOT_PATH = "/root/.ssh"
_DIRECTORY = ".ssh"
_DEFAULT_PORT = 22
_RSA = ("id_rsa", "id_rsa.pub")
_ED25519 = ("id_ed25519", "id_ed25519.pub")


def _given_secret(request: Request) -> str:
    return request.job.metadata.annotations.get(names.SSH_SECRET, "")


def _makes_keys(request: Request) -> bool:
    return not _given_secret(request) and not request.text("ssh-private-key")


def _key_pairs(request: Request) -> Iterable[KeyPairNeed]:
    if not _makes_keys(request):
        return ()
    secret = names.ssh_secret_name(request.job.metadata.name)
    return (
        KeyPairNeed("ssh-rsa", "rsa-2048", secret, *_RSA),
        KeyPairNeed("ssh-ed25519", "ed25519", secret, *_ED25519),
    )


def _objects(request: Request) -> Iterator[Object]:
    content = {**_keys(request), "config": client_config(request.hosts, _port(request))}
    yield {
        "apiVersion": kinds.SECRET.api_version,
        "kind": kinds.SECRET.kind,
        "metadata": {"name": names.ssh_secret_name(request.job.metadata.name)},
        "data": {key: base64.b64encode(text.encode()).decode() for key, text in content.items()},
    }


def _keys(request: Request) -> dict[str, str]:
    """What of the Secret's content is keys; a Secret given by name keeps its own."""
    if _given_secret(request):
        return {}
    if not _makes_keys(request):
        public = request.text("ssh-public-key")
        private = request.text("ssh-private-key")
        return {"id_rsa": private, "id_rsa.pub": public, "authorized_keys": public}
    found: dict[str, str] = {}
    for need in _key_pairs(request):
        pair = request.key_pair(need)
        found |= {need.private_key: pair.private, need.public_key: pair.public}
    return {**found, "authorized_keys": found["id_rsa.pub"] + found["id_ed25519.pub"]}


def _port(request: Request) -> int:
    """The port for clients; Volcano, too, takes 22 for one that is none."""
    port = request.number("ssh-port")
    return port if 1 <= port <= MOST_PORT else _DEFAULT_PORT


def _pods(request: Request) -> AddToPod:
    volume = _volume(request)
    path = request.text("ssh-key-file-path")

    def add(pod: PodDraft) -> None:
        pod.add_volume(volume)
        for container in pod.all_containers():
            container.add_mount(volume["name"], path, _DIRECTORY)

    return add


def _volume(request: Request) -> Object:
    """The volume of the keys, in one directory.

    Modes are Volcano's: root's own keys must be root's alone, while other users can read only what
    all may read, and ssh does not mind that in files of root.
    """
    name = names.ssh_secret_name(request.job.metadata.name)
    mode = 0o600 if _is_root_path(request.text("ssh-key-file-path")) else 0o644
    keys = [("id_rsa", "id_rsa"), ("id_rsa.pub", "id_rsa.pub")]
    if given := _given_secret(request):
        keys.append(("id_rsa.pub", "authorized_keys"))
        sources = [
            {"secret": {"name": given, "items": _items(keys)}},
            {"secret": {"name": name, "items": _items([("config", "config")])}},
        ]
        return {"name": name, "projected": {"sources": sources, "defaultMode": mode}}
    keys += [("authorized_keys", "authorized_keys"), ("config", "config")]
    if _makes_keys(request):
        keys += [(key, key) for key in _ED25519]
    secret = {"secretName": name, "items": _items(keys), "defaultMode": mode}
    return {"name": name, "secret": secret}


def _is_root_path(path: str) -> bool:
    return path.rstrip("/") == ROOT_PATH


def _items(files: Iterable[tuple[str, str]]) -> list[Object]:
    return [{"key": key, "path": f"{_DIRECTORY}/{file}"} for key, file in files]


def _problems(request: Request) -> Iterator[Problem]:
    yield from made_name_problems(request, "a volume", names.ssh_secret_name)
    path = request.text("ssh-key-file-path")
    yield from _path_problems(request, path)
    volume = names.ssh_secret_name(request.job.metadata.name)
    yield from mount_problems(request, volume, path, "the keys")
    if svc.PLUGIN.name not in request.job.spec.plugins:
        hint = "add svc: []"
        message = "pods have no names without the plugin svc, so that ssh does not find them"
        yield Problem(message, request.path, hint, warning=True)
    yield from _secret_problems(request)
    yield from _given_key_problems(request)
    yield from _user_problems(request, path)


def _path_problems(request: Request, path: str) -> Iterator[Problem]:
    where = argument_path(request, "ssh-key-file-path")
    hint = "give a directory such as /home/NAME/.ssh"
    if not path.startswith("/") or ":" in path:
        message = f'--ssh-key-file-path="{path}" must begin with / and have no ":"'
        yield Problem(message, where, hint)
    elif not path.strip("/") or ".." in path.split("/"):
        message = f'--ssh-key-file-path="{path}" must name a directory, without ".."'
        yield Problem(message, where, hint)
    elif svc.PLUGIN.name in request.job.spec.plugins and _overlap(path, svc.MOUNT_PATH):
        message = (
            f"the plugin svc mounts the host lists at {svc.MOUNT_PATH}, and of two volumes none "
            "can be within the other"
        )
        yield Problem(message, where, hint)


def _overlap(one: str, other: str) -> bool:
    """Whether a directory is the other one, or within it, or around it."""
    first, second = (f"{path.rstrip('/')}/" for path in (one, other))
    return first.startswith(second) or second.startswith(first)


def _secret_problems(request: Request) -> Iterator[Problem]:
    given = request.job.metadata.annotations.get(names.SSH_SECRET)
    where = options.option_path(names.SSH_SECRET)
    if given is None:
        return
    if wrong := dns_1123_subdomain(given):
        message = f'{names.SSH_SECRET} is the name of a Secret, so "{given}" must {wrong}'
        yield Problem(message, where)
    elif given == names.ssh_secret_name(request.job.metadata.name):
        hint = "give yours another name"
        yield Problem(f'the plugin ssh makes a Secret "{given}" itself', where, hint)
    elif request.text("ssh-private-key"):
        yield Problem(
            f"--ssh-private-key has no effect, because {names.SSH_SECRET} names a Secret",
            argument_path(request, "ssh-private-key"),
            warning=True,
        )


def _given_key_problems(request: Request) -> Iterator[Problem]:
    private, public = request.text("ssh-private-key"), request.text("ssh-public-key")
    where = argument_path(request, "ssh-private-key")
    if not private:
        if public:
            hint = "give --ssh-private-key too, or neither: then keys are made for the Job"
            where = argument_path(request, "ssh-public-key")
            yield Problem("--ssh-public-key has no effect alone", where, hint, warning=True)
        return
    yield Problem(
        "there is a private key in the manifest: whoever may read the Job can log in to its pods",
        where,
        "leave it out, and keys are made for the Job; or put id_rsa and id_rsa.pub into a Secret "
        f"and name it in the annotation {names.SSH_SECRET}",
        warning=True,
    )
    try:
        fit = fits(private, public)
    except UnreadableKey as error:
        yield Problem(f"--ssh-private-key: {error}", where, warning=True)
        return
    if not public.strip():
        hint = "give --ssh-public-key; ssh-keygen -y prints it"
        yield Problem("without a public key nobody can log in", where, hint, warning=True)
    elif not fit:
        where = argument_path(request, "ssh-public-key")
        hint = "ssh-keygen -y prints the right one"
        yield Problem("--ssh-public-key does not belong to --ssh-private-key", where, hint)


def _user_problems(request: Request, path: str) -> Iterator[Problem]:
    """A user who cannot read the keys, or whose keys ssh refuses."""
    at_root = _is_root_path(path)
    for position, task in enumerate(request.job.spec.tasks):
        spec_path: Path = ("spec", "tasks", position, "template", "spec")
        users = _users_of(task, spec_path)
        for where, user in users.items():
            if user and at_root:
                yield Problem(
                    f'pods of task "{task.name}" run as user {user}, who may not read {ROOT_PATH}',
                    where,
                    "give a directory in that user's home: --ssh-key-file-path=/home/NAME/.ssh",
                    warning=True,
                )
            elif user == 0 and not at_root:
                yield Problem(
                    f'pods of task "{task.name}" run as root, and ssh takes no key of its own '
                    "user that others may read",
                    where,
                    f"leave --ssh-key-file-path out, so that keys are in {ROOT_PATH} with mode "
                    "0600",
                    warning=True,
                )
        has_group = _security_context(pod_spec(task)).get("fsGroup") is not None
        if at_root and has_group and not all(users.values()):
            yield Problem(
                f'the fsGroup of task "{task.name}" lets others read the keys of root, and ssh '
                "refuses such keys",
                (*spec_path, "securityContext", "fsGroup"),
                "leave fsGroup out, or run as another user with keys elsewhere: "
                "--ssh-key-file-path=/home/NAME/.ssh",
                warning=True,
            )


def _users_of(task: Task, spec_path: Path) -> dict[Path, int | None]:
    """As whom the containers of a task run, by where that stands; None: as their images say."""
    users: dict[Path, int | None] = {}
    for group in ("containers", "initContainers"):
        for index, container in enumerate(containers_of(task, group)):
            path, owner = (*spec_path, group, index), container
            if not isinstance(_security_context(container).get("runAsUser"), int):
                path, owner = spec_path, pod_spec(task)
            user = _security_context(owner).get("runAsUser")
            users[(*path, "securityContext", "runAsUser")] = user if isinstance(user, int) else None
    return users


def _security_context(owner: Object) -> Object:
    given = owner.get("securityContext")
    return given if isinstance(given, dict) else {}


PLUGIN = Plugin(
    name="ssh",
    help="Lets pods log in to each other by ssh: keys made once for the Job, and a client "
    "configuration that knows all hosts.",
    arguments=(
        Argument("ssh-key-file-path", ROOT_PATH, "the directory of keys and configuration"),
        Argument(
            "ssh-private-key", "", "a private key to use instead of keys made for the Job",
            secret=True,
        ),
        Argument("ssh-public-key", "", "the public key that belongs to it"),
        Argument("ssh-port", _DEFAULT_PORT, "the port of the ssh servers", port=True),
    ),
    kinds=(kinds.SECRET,),
    key_pairs=_key_pairs,
    problems=_problems,
    objects=_objects,
    pods=_pods,
)  # fmt: skip
