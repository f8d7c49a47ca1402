"""An API server and who we are there, as plain data."""

import msgspec

EXEC_VERSIONS = (
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
)
"""What exec plug-ins may speak."""


class ExecPlugin(msgspec.Struct, frozen=True, rename="camel"):
    """A program that hands out credentials. ``directory`` is that of the kubeconfig file.

    ``interactive_mode`` is whether it may use our standard input: Never, IfAvailable, Always.
    """

    command: str
    api_version: str = EXEC_VERSIONS[0]
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"
    directory: str = ""


class Files(msgspec.Struct, frozen=True):
    """Paths of what is kept in files; empty for what is not."""

    authority: str = ""
    certificate: str = ""
    key: str = ""
    token: str = ""

    def any(self) -> bool:
        """Whether there is one."""
        return self != Files()


class Server(msgspec.Struct, frozen=True):
    """An API server and the credentials for it, as one context names them.

    Attributes:
        url: ``https://host:port``, perhaps with a path; without a slash at its end.
        name: what messages call it: the context's name.
        namespace: the context's namespace, "default" where it has none.
        authority: PEM text of the certificate authorities; empty for those of this machine.
        certificate: PEM text of the client certificate, or empty.
        key: PEM text of its key, or empty.
        token: a bearer token, or empty.
        files: the files that hold some of these four; they are read again, as they may change.
        basic: user name and password, or None.
        plugin: the program to ask for credentials, or None.
        proxy: URL of the proxy, or empty.
        tls_name: the name that the server's certificate must bear, where it is not the host's.
        unverified: take any certificate of the server.
        impersonate: headers by which to act as somebody else.
    """

    url: str
    name: str = ""
    namespace: str = "default"
    authority: str = ""
    certificate: str = ""
    key: str = ""
    token: str = ""
    files: Files = Files()
    basic: tuple[str, str] | None = None
    plugin: ExecPlugin | None = None
    proxy: str = ""
    tls_name: str = ""
    unverified: bool = False
    impersonate: tuple[tuple[str, str], ...] = ()

    @property
    def shown(self) -> str:
        """What messages call the server."""
        return f"{self.name} ({self.url})" if self.name else self.url

    def __repr__(self) -> str:
        return f"Server({self.url!r}, {self.name!r})"  # credentials must not get into logs
