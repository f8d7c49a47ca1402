"""Credentials that change: token files and exec plug-ins."""

import asyncio
import json
import stat
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from vcjob.kubernetes.credentials import Credential, Credentials
from vcjob.kubernetes.errors import KubeconfigError
from vcjob.kubernetes.server import ExecPlugin, Files, Server

VERSION = "client.authentication.k8s.io/v1"
NOW = 1_700_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def plugin(directory: Path, script: str, **more: Any) -> Server:
    path = directory / "login"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    found = ExecPlugin("./login", directory=str(directory), **more)
    return Server("https://lab", plugin=found, tls_name="inside")


def answer(version: str = VERSION, **status: Any) -> str:
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})


def test_a_token_file_is_read_again_after_a_minute_and_when_it_was_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")

    async def story() -> None:
        clock = Clock()
        credentials = Credentials(Server("https://lab", files=Files(token=str(file))), clock)
        first = await credentials.current()
        assert first.token == "one"
        file.write_text("two")
        assert await credentials.current() == first
        clock.now += 61
        second = await credentials.current()
        assert second.token == "two"
        file.write_text("three")
        assert credentials.refuse(second)
        assert (await credentials.current()).token == "three"
        file.write_text("")
        credentials.refuse(await credentials.current())
        with pytest.raises(KubeconfigError, match="is empty"):
            await credentials.current()
        file.unlink()
        with pytest.raises(KubeconfigError, match="cannot be read"):
            await credentials.current()

    asyncio.run(story())


def test_certificates_in_files_are_read_again_after_a_minute_and_when_they_were_refused(
    tmp_path: Path,
) -> None:
    paths = {name: tmp_path / name for name in ("authority", "certificate", "key")}

    def write(text: str) -> None:
        for name, path in paths.items():
            path.write_text(f"{name} {text}")

    async def story() -> None:
        write("one")
        clock = Clock()
        files = Files(**{name: str(path) for name, path in paths.items()})
        credentials = Credentials(Server("https://lab", token="t", files=files), clock)
        first = await credentials.current()
        assert first == Credential("t", "certificate one", "key one", "authority one")
        write("two")
        assert await credentials.current() == first
        clock.now += 61
        second = await credentials.current()
        assert second == Credential("t", "certificate two", "key two", "authority two")
        write("three")
        assert credentials.refuse(first), "somebody else's request was sent before the change"
        assert await credentials.current() == second
        assert credentials.refuse(second)
        assert (await credentials.current()).key == "key three"

    asyncio.run(story())


def test_what_does_not_change_is_not_asked_for_again() -> None:
    async def story() -> None:
        credentials = Credentials(Server("https://lab", token="t"))
        assert await credentials.current() == Credential("t")
        assert not credentials.refuse(Credential("t"))

    asyncio.run(story())


def test_a_plugin_is_asked_once_until_its_answer_expires(tmp_path: Path) -> None:
    expiring = answer(token="tok", expirationTimestamp="2023-11-14T22:14:20Z")  # NOW + 60 s
    server = plugin(tmp_path, f"echo asked >>$LOG\necho '{expiring}'",
                    env=(("LOG", str(tmp_path / "log")),))  # fmt: skip

    async def story() -> None:
        clock = Clock()
        credentials = Credentials(server, clock)
        given = await asyncio.gather(*(credentials.current() for _ in range(3)))
        assert {one.token for one in given} == {"tok"}
        assert (tmp_path / "log").read_text().count("asked") == 1
        clock.now += 61
        await credentials.current()
        assert credentials.refuse(Credential("tok"))
        await credentials.current()
        assert (tmp_path / "log").read_text().count("asked") == 3

    asyncio.run(story())


def test_a_plugin_is_told_which_cluster_it_is_for(tmp_path: Path) -> None:
    script = f"echo \"$KUBERNETES_EXEC_INFO\" >{tmp_path}/info\necho '{answer(token='t')}'"
    server = plugin(tmp_path, script, provide_cluster_info=True)
    asyncio.run(Credentials(server).current())
    info = json.loads((tmp_path / "info").read_text())
    assert info["apiVersion"] == VERSION
    assert info["spec"]["cluster"] == {"server": "https://lab", "tls-server-name": "inside"}


def test_a_plugin_gets_the_terminal_only_if_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Mock(isatty=lambda: True))
    saved = 'printf "%s" "$KUBERNETES_EXEC_INFO" > info; readlink /proc/self/fd/0 > input'
    script = f"cd {tmp_path}; {saved}; echo '{answer(token='t')}'"
    server = plugin(tmp_path, script, interactive_mode="Never")
    assert asyncio.run(Credentials(server).current()).token == "t"
    assert json.loads((tmp_path / "info").read_text())["spec"]["interactive"] is False
    assert (tmp_path / "input").read_text() == "/dev/null\n"


def test_a_plugin_that_has_to_ask_needs_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Mock(isatty=lambda: False))
    server = plugin(tmp_path, "exit 1", interactive_mode="Always")
    with pytest.raises(KubeconfigError, match="standard input is no terminal"):
        asyncio.run(Credentials(server).current())


def test_a_plugin_may_hand_out_a_certificate(tmp_path: Path) -> None:
    pair = answer(clientCertificateData="CERT", clientKeyData="KEY")
    credential = asyncio.run(Credentials(plugin(tmp_path, f"echo '{pair}'")).current())
    assert (credential.certificate, credential.key) == ("CERT", "KEY")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo no luck >&2; exit 3", "ended with exit code 3: no luck"),
        ("echo hello", "printed no ExecCredential object"),
        (f"echo '{answer()}'", "neither a token nor a certificate"),
        (f"echo '{answer('other/v1', token='t')}'", "answered with version 'other/v1'"),
    ],
)
def test_what_a_plugin_does_wrong_is_said(tmp_path: Path, script: str, said: str) -> None:
    with pytest.raises(KubeconfigError, match=r"credential plug-in \./login") as caught:
        asyncio.run(Credentials(plugin(tmp_path, script)).current())
    assert said in str(caught.value)


def test_a_plugin_that_is_not_installed_comes_with_its_hint() -> None:
    missing = ExecPlugin("no-such-login", install_hint="install it\nfrom there")
    with pytest.raises(KubeconfigError, match="No such file or directory; install it from there"):
        asyncio.run(Credentials(Server("https://lab", plugin=missing)).current())
