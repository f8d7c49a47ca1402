"""Where an API server is and who we are there: kubeconfig files and in-cluster service accounts.

Pure reading; nothing is asked of a server and no plug-in runs here. The reader is our own: of the
libraries, lightkube's (the light one) knows neither ``tls-server-name`` nor ``proxy-url`` nor
several files in KUBECONFIG nor version v1 of exec plug-ins, ends in a KeyError for what a file does
not hold, and brings a second HTTP client that takes 0.4 s to import; the official client is 126 MB.

Source of the rules: Kubernetes documentation, "Organizing Cluster Access Using kubeconfig Files",
and the reference of ``Config`` (kubeconfig v1).
"""

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from vcjob.api.suggestions import suggest
from vcjob.kubernetes.errors import KubeconfigError
from vcjob.kubernetes.server import EXEC_VERSIONS, ExecPlugin, Files, Server

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_DEFAULT_FILE = Path(".kube") / "config"


def kubeconfig_files(environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """The files that KUBECONFIG lists, else ``~/.kube/config``."""
    listed = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    return tuple(map(Path, listed)) if listed else (Path.home() / _DEFAULT_FILE,)


def read_kubeconfig(files: Sequence[Path], context: str = "") -> Server:
    """The server of a context, of the current one by default; raises KubeconfigError.

    Of several files the first that defines a name counts; files that do not exist are passed over
    unless none does.
    """
    config = _Config(files)
    name = context or config.current
    if not name:
        names = ", ".join(sorted(config.sections["contexts"]))
        if not names:
            raise KubeconfigError(f"{config.shown} has no context, so it names no cluster")
        raise KubeconfigError(
            f"{config.shown} sets no current-context; name one with --context: {names}"
        )
    chosen, _ = config.find("contexts", name, f"context {name!r}")
    cluster_name = config.text(chosen, "cluster", f"context {name!r}")
    if not cluster_name:
        raise KubeconfigError(f"{config.shown}: context {name!r} names no cluster")
    cluster, cluster_file = config.find(
        "clusters", cluster_name, f"cluster {cluster_name!r}, which context {name!r} names,"
    )
    user_name = config.text(chosen, "user", f"context {name!r}")
    user: dict[str, Any] = {}
    user_file = cluster_file
    if user_name:
        user, user_file = config.find(
            "users", user_name, f"user {user_name!r}, which context {name!r} names,"
        )
    return _server(
        name,
        config.text(chosen, "namespace", f"context {name!r}") or "default",
        _Section(cluster, f"cluster {cluster_name!r}", cluster_file),
        _Section(user, f"user {user_name!r}", user_file),
    )


def runs_in_pod(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process runs in a pod of a cluster, whichever server it is told to ask."""
    return bool(environment.get("KUBERNETES_SERVICE_HOST"))


def in_cluster_server(
    environment: Mapping[str, str] = os.environ, directory: Path = SERVICE_ACCOUNT
) -> Server:
    """The API server that a pod's service account is for; raises KubeconfigError."""
    if not runs_in_pod(environment):
        raise KubeconfigError(
            "KUBERNETES_SERVICE_HOST is not set, so this is no pod of a cluster; "
            "name a kubeconfig file"
        )
    host = environment["KUBERNETES_SERVICE_HOST"]
    port = environment.get("KUBERNETES_SERVICE_PORT", "") or "443"
    try:
        authority = (directory / "ca.crt").read_text()
        (directory / "token").read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(
            f"the service account cannot be read from {directory}: {_reason(error)}; "
            "does the pod set automountServiceAccountToken: false?"
        ) from error
    namespace = directory / "namespace"
    return Server(
        url=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        name="in-cluster",
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        authority=authority,
        files=Files(authority=str(directory / "ca.crt"), token=str(directory / "token")),
    )


class _Config:
    """Several kubeconfig files as one."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.shown = ", ".join(map(str, files))
        self.current = ""
        self.sections: dict[str, dict[str, tuple[dict[str, Any], Path]]] = {
            "contexts": {}, "clusters": {}, "users": {},
        }  # fmt: skip
        read = [file for file in files if self._read(file)]
        if not read:
            raise KubeconfigError(f"there is no kubeconfig file {self.shown}")

    def _read(self, file: Path) -> bool:
        try:
            content = yaml.load(file.read_bytes(), yaml.CSafeLoader)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise KubeconfigError(f"cannot read {file}: {error.strerror}") from error
        except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
            mark = getattr(error, "problem_mark", None)
            where = f", line {mark.line + 1}" if mark else ""
            raise KubeconfigError(f"{file} is not YAML{where}") from error
        if content is None:
            return True
        if not isinstance(content, dict) or content.get("kind", "Config") != "Config":
            raise KubeconfigError(f"{file} is not a kubeconfig file (kind: Config)")
        self.current = self.current or self.text(content, "current-context", str(file))
        for section, known in self.sections.items():
            for entry in content.get(section) or ():
                body = entry.get(section.removesuffix("s")) if isinstance(entry, dict) else None
                if not isinstance(body, dict) or not isinstance(entry.get("name"), str):
                    if isinstance(entry, dict) and body is None and "name" in entry:
                        body = {}
                    else:
                        raise KubeconfigError(f"{file}: an entry of {section} has a wrong shape")
                known.setdefault(entry["name"], (body, file))
        return True

    def find(self, section: str, name: str, what: str) -> tuple[dict[str, Any], Path]:
        """An entry and the file that defines it; ``what`` names it in the error."""
        known = self.sections[section]
        if name not in known:
            hint = suggest(name, known)
            raise KubeconfigError(
                f"{self.shown}: {what} is not defined{f'; {hint}' if hint else ''}"
            )
        return known[name]

    def text(self, body: dict[str, Any], field: str, where: str) -> str:
        value = body.get(field)
        if value is not None and not isinstance(value, str):
            raise KubeconfigError(f"{self.shown}: {field} of {where} is not a text")
        return value or ""


class _Section:
    """One cluster or user: fields that are texts, or files beside the kubeconfig file."""

    def __init__(self, body: dict[str, Any], what: str, file: Path) -> None:
        self.body = body
        self.what = what
        self.file = file

    def text(self, field: str) -> str:
        value = self.body.get(field)
        if value is not None and not isinstance(value, str):
            raise self.error(f"{field} is not a text")
        return value or ""

    def path(self, field: str) -> str:
        """A file's path; relative ones start at the kubeconfig file's directory."""
        value = self.text(field)
        return str(self.file.parent / Path(value).expanduser()) if value else ""

    def content(self, field: str) -> str:
        """Text that stands in the file (``…-data``, base64), else in a file of its own."""
        if data := self.text(f"{field}-data"):
            try:
                return base64.b64decode("".join(data.split()), validate=True).decode()
            except (binascii.Error, UnicodeDecodeError) as error:
                raise self.error(f"{field}-data is not base64 of a text") from error
        if not (path := self.kept_in(field)):
            return ""
        try:
            return Path(path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise self.error(f"{field} {path} cannot be read: {_reason(error)}") from error

    def kept_in(self, field: str) -> str:
        """The file that holds a field; empty if the kubeconfig file itself does."""
        return "" if self.text(f"{field}-data") else self.path(field)

    def error(self, what: str) -> KubeconfigError:
        return KubeconfigError(f"{self.file}: {self.what}: {what}")


def _server(name: str, namespace: str, cluster: _Section, user: _Section) -> Server:
    url = cluster.text("server")
    if not _names_a_server(url):
        raise cluster.error(f"server {url!r} is not a URL such as https://host:6443")
    if "auth-provider" in user.body and "exec" not in user.body:
        raise user.error("auth-provider is no longer known to Kubernetes; use an exec plug-in")
    certificate, key = user.content("client-certificate"), user.content("client-key")
    if bool(certificate) != bool(key):
        missing = "client-key" if certificate else "client-certificate"
        raise user.error(f"{missing} is missing")
    token_file = user.path("tokenFile")
    username, password = user.text("username"), user.text("password")
    return Server(
        url=url.rstrip("/"),
        name=name,
        namespace=namespace,
        authority=cluster.content("certificate-authority"),
        certificate=certificate,
        key=key,
        token="" if token_file else user.text("token"),
        files=Files(
            cluster.kept_in("certificate-authority"),
            user.kept_in("client-certificate"),
            user.kept_in("client-key"),
            token_file,
        ),
        basic=(username, password) if username else None,
        plugin=_plugin(user),
        proxy=cluster.text("proxy-url"),
        tls_name=cluster.text("tls-server-name"),
        unverified=bool(cluster.body.get("insecure-skip-tls-verify", False)),
        impersonate=_impersonate(user),
    )


def _names_a_server(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port, or an address in brackets, that is none
        return False


def _impersonate(user: _Section) -> tuple[tuple[str, str], ...]:
    headers = []
    if name := user.text("as"):
        headers.append(("Impersonate-User", name))
    if uid := user.text("as-uid"):
        headers.append(("Impersonate-Uid", uid))
    headers += [("Impersonate-Group", str(group)) for group in user.body.get("as-groups") or ()]
    for key, values in (user.body.get("as-user-extra") or {}).items():
        headers += [(f"Impersonate-Extra-{key}", str(value)) for value in values]
    return tuple(headers)


def _plugin(user: _Section) -> ExecPlugin | None:
    body = user.body.get("exec")
    if body is None:
        return None
    if not isinstance(body, dict) or not isinstance(body.get("command"), str):
        raise user.error("exec names no command")
    version = body.get("apiVersion")
    if version not in EXEC_VERSIONS:
        raise user.error(f"exec has apiVersion {version!r}; known are {', '.join(EXEC_VERSIONS)}")
    try:
        env = tuple((str(item["name"]), str(item["value"])) for item in body.get("env") or ())
    except (TypeError, KeyError) as error:
        raise user.error("env of exec is not a list of name and value") from error
    return ExecPlugin(
        command=body["command"],
        api_version=version,
        args=tuple(map(str, body.get("args") or ())),
        env=env,
        install_hint=str(body.get("installHint") or "").strip(),
        interactive_mode=str(body.get("interactiveMode") or "IfAvailable"),
        provide_cluster_info=bool(body.get("provideClusterInfo", False)),
        directory=str(user.file.parent),
    )


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is not a text"
