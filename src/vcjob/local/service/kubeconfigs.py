"""How clients find the engine: a kubeconfig file of its own, and an entry in the user's.

The user's file is changed as kubectl changes it: under a lock file ``FILE.lock`` that only one can
make, and at once; its mode and its current context stay. Source: Kubernetes documentation,
"Organizing Cluster Access Using kubeconfig Files".
"""

import base64
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from vcjob.api.errors import VcjobError
from vcjob.local.service.home import write_private

NAME = "vcjob"
"""Of the context, the cluster and the user."""

_LISTS = ("clusters", "users", "contexts")
_LOCK_SECONDS = 5.0
_LOCK_PAUSE = 0.05


class KubeconfigRefused(VcjobError):
    """The user's kubeconfig file cannot be read or changed; it is as it was."""


def kubeconfig(address: str, authority: str, token: str) -> dict[str, Any]:
    """The content of a kubeconfig for an engine at ``address``."""
    encoded = base64.b64encode(authority.encode()).decode()
    cluster = {"server": address, "certificate-authority-data": encoded}
    context = {"cluster": NAME, "user": NAME, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": context}],
        "current-context": NAME,
    }


def write_kubeconfig(path: Path, content: Mapping[str, Any]) -> None:
    """Write a file of its own; raises StateUnusable."""
    write_private(path, yaml.safe_dump(dict(content), sort_keys=False).encode())


def user_kubeconfig(environment: Mapping[str, str] = os.environ) -> Path:
    """The file that kubectl would change: the first of KUBECONFIG, else ~/.kube/config."""
    given = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    return Path(given[0]) if given else Path.home() / ".kube" / "config"


def merge(path: Path, content: Mapping[str, Any]) -> None:
    """Add what ``content`` holds to a user's file; raises KubeconfigRefused.

    An entry of the same names that is not an engine's (another address than loopback) is left, and
    the merge refused.
    """

    def changed(there: dict[str, Any]) -> dict[str, Any]:
        if _is_foreign(there):
            raise KubeconfigRefused(
                f"{path} has a cluster {NAME!r} of its own: rename it, or use the engine's own "
                "kubeconfig file"
            )
        merged = {**_without(there)}
        for part in _LISTS:
            merged[part] = [*(merged.get(part) or ()), *content[part]]
        return merged

    _change(path, changed, create=True)


def unmerge(path: Path) -> None:
    """Take the engine's entries out of a user's file again; raises KubeconfigRefused."""
    _change(path, lambda there: there if _is_foreign(there) else _without(there), create=False)


def _without(config: dict[str, Any]) -> dict[str, Any]:
    left = dict(config)
    for part in _LISTS:
        entries = left.get(part)
        if isinstance(entries, list):
            left[part] = [entry for entry in entries if _name(entry) != NAME]
    return left


def _is_foreign(config: dict[str, Any]) -> bool:
    for entry in config.get("clusters") or ():
        if _name(entry) == NAME:
            cluster = entry.get("cluster")
            server = str((cluster if isinstance(cluster, dict) else {}).get("server") or "")
            return "//127.0.0.1:" not in server and "//localhost:" not in server
    return False


def _name(entry: Any) -> Any:
    return entry.get("name") if isinstance(entry, dict) else None


def _change(
    path: Path, change: Callable[[dict[str, Any]], dict[str, Any]], *, create: bool
) -> None:
    target = Path(os.path.realpath(path))  # a link stays a link
    if not create and not target.exists():
        return
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(target):
            there, mode = _read(target)
            changed = change(there)
            if changed != there:
                text = yaml.safe_dump(changed, sort_keys=False)
                write_private(target, text.encode(), mode)
    except OSError as error:
        raise KubeconfigRefused(f"{path} cannot be changed: {error.strerror}") from error


def _read(path: Path) -> tuple[dict[str, Any], int]:
    try:
        text = path.read_text()
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return {"apiVersion": "v1", "kind": "Config"}, 0o600
    try:
        config = yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise KubeconfigRefused(f"{path} is not YAML; it is left as it is") from error
    if config is None:
        return {"apiVersion": "v1", "kind": "Config"}, mode
    lists = [config.get(part) for part in _LISTS] if isinstance(config, dict) else [0]
    if not all(part is None or isinstance(part, list) for part in lists):
        raise KubeconfigRefused(f"{path} is not a kubeconfig file; it is left as it is")
    return config, mode


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = path.with_name(f"{path.name}.lock")
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            break
        except FileExistsError as error:
            if time.monotonic() > deadline:
                raise KubeconfigRefused(
                    f"{path} is locked by another program; if none is at work, remove {lock}"
                ) from error
            time.sleep(_LOCK_PAUSE)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
