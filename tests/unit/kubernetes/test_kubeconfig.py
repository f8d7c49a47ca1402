"""Kubeconfig files: what is read from them, and what is said of everything that is wrong."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from vcjob.kubernetes.errors import KubeconfigError
from vcjob.kubernetes.kubeconfig import (
    in_cluster_server,
    kubeconfig_files,
    read_kubeconfig,
)
from vcjob.kubernetes.server import Files

Config = dict[str, Any]


def config(cluster: Config | None = None, user: Config | None = None, **more: Any) -> Config:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "contexts": [
            {"name": "lab", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
            {"name": "bare", "context": {"cluster": "c"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": "https://lab:6443/", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        **more,
    }


def write(path: Path, content: Config) -> Path:
    path.write_text(yaml.safe_dump(content))
    return path


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_the_current_context_is_read(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("CA")
    cluster = {
        "certificate-authority": "ca.pem",
        "tls-server-name": "inside",
        "proxy-url": "http://proxy:3128",
        "insecure-skip-tls-verify": True,
    }
    user = {
        "client-certificate-data": encoded("CERT"),
        "client-key-data": encoded("KEY"),
        "token": "t0ken",
        "as": "somebody",
        "as-groups": ["a", "b"],
    }
    server = read_kubeconfig([write(tmp_path / "config", config(cluster, user))])
    assert (server.url, server.name, server.namespace) == ("https://lab:6443", "lab", "team")
    assert (server.authority, server.certificate, server.key) == ("CA", "CERT", "KEY")
    assert (server.token, server.tls_name, server.proxy) == ("t0ken", "inside", "http://proxy:3128")
    assert server.unverified
    assert server.impersonate == (
        ("Impersonate-User", "somebody"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"),
    )  # fmt: skip
    assert "t0ken" not in repr(server)


def test_another_context_may_have_no_user_and_no_namespace(tmp_path: Path) -> None:
    server = read_kubeconfig([write(tmp_path / "config", config())], "bare")
    assert (server.name, server.namespace, server.token) == ("bare", "default", "")


def test_files_are_relative_to_the_kubeconfig_file_and_a_token_file_comes_first(
    tmp_path: Path,
) -> None:
    user = {"tokenFile": "secret/token", "token": "old"}
    server = read_kubeconfig([write(tmp_path / "config", config(user=user))])
    assert (server.files.token, server.token) == (str(tmp_path / "secret" / "token"), "")


def test_a_plugin_is_read(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./login",
        "args": ["--quiet"],
        "env": [{"name": "A", "value": "b"}],
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    server = read_kubeconfig([write(tmp_path / "config", config(user={"exec": plugin}))])
    assert server.plugin is not None
    assert (server.plugin.command, server.plugin.args) == ("./login", ("--quiet",))
    assert server.plugin.interactive_mode == "Never"
    assert (server.plugin.env, server.plugin.directory) == ((("A", "b"),), str(tmp_path))


def test_of_several_files_the_first_that_defines_a_name_counts(tmp_path: Path) -> None:
    first = write(tmp_path / "one", {
        "contexts": [{"name": "mine", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://first"}}],
    })  # fmt: skip
    second = write(tmp_path / "two", config())
    files = [tmp_path / "missing", first, second]
    assert read_kubeconfig(files).name == "lab"
    assert read_kubeconfig(files, "mine").url == "https://first"


def test_files_come_from_the_environment() -> None:
    assert kubeconfig_files({"KUBECONFIG": "/a:/b:"}) == (Path("/a"), Path("/b"))
    assert kubeconfig_files({}) == (Path.home() / ".kube" / "config",)


EXEC = "client.authentication.k8s.io"


@pytest.mark.parametrize(
    ("content", "context", "said"),
    [
        (config(), "lob", "context 'lob' is not defined; did you mean \"lab\"?"),
        (config(clusters=[]), "", "cluster 'c', which context 'lab' names, is not defined"),
        (config(users=[]), "", "user 'u', which context 'lab' names, is not defined"),
        ({**config(), "current-context": ""}, "", "sets no current-context; name one with"),
        ({"contexts": []}, "", "has no context, so it names no cluster"),
        *(
            (config({"server": url}), "", f"server '{url}' is not a URL such as https://host:6443")
            for url in ("lab", "https://", "https://lab:99999", "https://lab:many", "ftp://lab",
                        "https://[lab", "https://:6443")
        ),
        (config({"certificate-authority": "no"}), "", "authority {0}/no cannot be read"),
        (config({"certificate-authority-data": "%"}), "", "-data is not base64 of a text"),
        (config(user={"client-certificate-data": "QQ=="}), "", "client-key is missing"),
        (config(user={"token": 5}), "", "token is not a text"),
        (config(user={"auth-provider": {}}), "", "auth-provider is no longer known"),
        (config(user={"exec": {"command": "x", "apiVersion": f"{EXEC}/v1alpha1"}}), "",
         f"exec has apiVersion '{EXEC}/v1alpha1'"),
        (config(user={"exec": {"apiVersion": f"{EXEC}/v1"}}), "", "exec names no command"),
        ({"kind": "Pod"}, "", "is not a kubeconfig file"),
        (config(contexts=[7]), "", "an entry of contexts has a wrong shape"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(tmp_path: Path, content: Config, context: str, said: str) -> None:
    file = write(tmp_path / "config", content)
    with pytest.raises(KubeconfigError) as caught:
        read_kubeconfig([file], context)
    assert said.format(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_missing_or_is_no_yaml_is_named(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="there is no kubeconfig file"):
        read_kubeconfig([tmp_path / "missing"])
    broken = tmp_path / "broken"
    broken.write_text("a: b\nc: [")
    with pytest.raises(KubeconfigError, match=r"broken is not YAML, line \d"):
        read_kubeconfig([broken])
    with pytest.raises(KubeconfigError, match="cannot read"):
        read_kubeconfig([tmp_path])


def test_a_pod_finds_its_own_cluster(tmp_path: Path) -> None:
    for name, text in (("ca.crt", "CA"), ("token", "t"), ("namespace", "team\n")):
        (tmp_path / name).write_text(text)
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    server = in_cluster_server(environment, tmp_path)
    assert (server.url, server.namespace) == ("https://[fd00::1]:443", "team")
    assert server.files == Files(str(tmp_path / "ca.crt"), token=str(tmp_path / "token"))
    assert server.authority == "CA"


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "KUBERNETES_SERVICE_HOST is not set"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "automountServiceAccountToken"),
    ],
)
def test_elsewhere_it_is_said_why_not(
    tmp_path: Path, environment: dict[str, str], said: str
) -> None:
    with pytest.raises(KubeconfigError, match=said):
        in_cluster_server(environment, tmp_path)
