"""``vcjob webhook`` as it runs on a cluster: a process, TLS, Secret and configurations.

The tests ask as an API server would, trusting nobody but the ``caBundle`` that the process wrote.
"""

import asyncio
import base64
import contextlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from example_plugin import install_example
from reviews import patched, review

from vcjob.admission.configurations import CONFIGURATION_NAME, webhook_configurations
from vcjob.api.kinds import (
    MUTATING_WEBHOOK_CONFIGURATION,
    NAMESPACE,
    QUEUE,
    SECRET,
    VALIDATING_WEBHOOK_CONFIGURATION,
)
from vcjob.api.types import Object
from vcjob.controller.certificates import make_certificate
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.kubeconfig import read_kubeconfig

T = TypeVar("T")
OWN = "vcjob-system"
HOST = f"vcjob-webhook.{OWN}.svc"
SECRET_NAME = "vcjob-webhook-certificate"
CONFIGURED = (MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION)
_PORTS = re.compile(r"reviews at port (\d+), probes and metrics at port (\d+)")
_PATIENCE = 30.0
COMMAND = (sys.executable, "-m", "vcjob", "webhook")


def job(name: str = "training", **spec: Any) -> Object:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    tasks = [{"name": "worker", "replicas": 2, "template": {"spec": pod}}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"tasks": tasks, **spec},
    }


class Cluster:
    """The API server of the test, for setting things up and looking at them."""

    def __init__(self, config: Path) -> None:
        self.config = config

    def do(self, work: Callable[[KubernetesCluster], Awaitable[T]]) -> T:
        async def run() -> T:
            async with KubernetesCluster.of(read_kubeconfig((self.config,))) as cluster:
                return await work(cluster)

        return asyncio.run(run())

    def install(self) -> None:
        async def create(cluster: KubernetesCluster) -> None:
            await cluster.create(NAMESPACE, {"metadata": {"name": OWN}})
            for kind, one in zip(CONFIGURED, webhook_configurations(OWN), strict=True):
                await cluster.create(kind, one)

        self.do(create)

    def bundles(self) -> set[str]:
        """Whom API servers trust, in both configurations."""

        async def read(cluster: KubernetesCluster) -> set[str]:
            found = set()
            for kind in CONFIGURED:
                configuration = await cluster.get(kind, "", CONFIGURATION_NAME)
                for entry in configuration["webhooks"]:
                    bundle = entry["clientConfig"].get("caBundle", "")
                    found.add(base64.b64decode(bundle).decode())
            return found

        return self.do(read)


class Webhook:
    """The process; ``reviews`` and ``probes`` are its ports."""

    def __init__(self, cluster: Cluster, *more: str | Path) -> None:
        self.cluster = cluster
        arguments = ["--kubeconfig", cluster.config, "--address", "127.0.0.1:0"]
        arguments += ["--health-address", "127.0.0.1:0", "--namespace", OWN, *more]
        self.process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self.log = ""
        self.listens = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        assert self.listens.wait(_PATIENCE), self.log
        found = _PORTS.search(self.log)
        assert found, self.log
        self.reviews, self.probes = map(int, found.groups())

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.log += line
            if _PORTS.search(line):
                self.listens.set()
        self.listens.set()

    def end(self, number: int = signal.SIGINT) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(_PATIENCE)
        self._reader.join()
        assert self.process.stderr
        self.process.stderr.close()
        return code

    def probe(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.probes}{path}") as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    def until_ready(self) -> str:
        return until(lambda: self.probe("/readyz"), lambda answer: answer[0] == 200)[1]

    def connect(self, trusting: str) -> ssl.SSLSocket:
        context = ssl.create_default_context(cadata=trusting)
        raw = socket.create_connection(("127.0.0.1", self.reviews), _PATIENCE)
        try:
            return context.wrap_socket(raw, server_hostname=HOST)
        except BaseException:
            raw.close()
            raise

    def send(self, path: str, body: bytes, *headers: str, trusting: str = "") -> tuple[int, bytes]:
        """POST as an API server does; the answer's code and body."""
        (bundle,) = {trusting} if trusting else self.cluster.bundles()
        length = f"Content-Length: {len(body)}"
        lines = [f"POST {path}?timeout=10s HTTP/1.1", f"Host: {HOST}", "Connection: close"]
        lines += [*(headers or ("Content-Type: application/json",)), length, "", ""]
        with self.connect(bundle) as connection:
            # It may have answered already, and read no more.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError, ssl.SSLError):
                connection.sendall("\r\n".join(lines).encode() + body)
            received = b""
            while piece := _receive(connection):
                received += piece
        head, _, content = received.partition(b"\r\n\r\n")
        return int(head.split()[1]), content

    def ask(self, path: str, question: Object, trusting: str = "") -> Object:
        code, content = self.send(path, json.dumps(question).encode(), trusting=trusting)
        assert code == 200, content
        answered = json.loads(content)
        assert answered["response"]["uid"] == question["request"]["uid"]
        response: Object = answered["response"]
        return response


def _receive(connection: ssl.SSLSocket) -> bytes:
    try:
        return connection.recv(65536)
    except (ConnectionResetError, ssl.SSLEOFError):
        return b""


def until(ask: Callable[[], T], right: Callable[[T], bool]) -> T:
    """Ask until the answer is right."""
    deadline = time.monotonic() + _PATIENCE
    while not right(answer := ask()):
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)
    return answer


@pytest.fixture
def cluster(config: Path) -> Cluster:
    cluster = Cluster(config)
    cluster.install()
    return cluster


@pytest.fixture
def start(cluster: Cluster) -> Iterator[Callable[..., Webhook]]:
    started: list[Webhook] = []

    def begin(*arguments: str | Path) -> Webhook:
        started.append(Webhook(cluster, *arguments))
        return started[-1]

    yield begin
    for webhook in started:
        webhook.end(signal.SIGKILL)


def test_jobs_are_completed_and_checked_over_tls_that_the_bundle_vouches_for(
    start: Callable[..., Webhook], cluster: Cluster
) -> None:
    webhook = start()
    assert "certificate: valid until" in webhook.until_ready()
    mutated = patched(job(), webhook.ask("/jobs/mutate", review(job())))
    assert mutated["spec"]["minAvailable"] == 2
    response = webhook.ask("/jobs/validate", review(mutated))
    assert response == {"uid": response["uid"], "allowed": True}
    denied = webhook.ask("/jobs/validate", review(job(queue="defualt")))
    assert denied["status"]["message"] == (
        'spec.queue: there is no queue "defualt"; did you mean "default"?'
    )
    code, text = webhook.probe("/metrics")
    assert code == 404 or 'vcjob_webhook_reviews_total{path="/jobs/validate"' in text
    assert webhook.end() == 0
    assert "Traceback" not in webhook.log


def test_a_queue_that_was_made_just_now_is_known(
    start: Callable[..., Webhook], cluster: Cluster
) -> None:
    webhook = start()
    webhook.until_ready()
    for number in range(5):
        queue = {"metadata": {"name": f"q{number}"}, "spec": {"weight": 1}}
        cluster.do(lambda server, queue=queue: server.create(QUEUE, queue))
        assert webhook.ask("/jobs/validate", review(job(queue=f"q{number}")))["allowed"]


def test_replicas_that_start_at_once_show_one_certificate(
    start: Callable[..., Webhook], cluster: Cluster
) -> None:
    webhooks: list[Webhook] = []
    threads = [threading.Thread(target=lambda: webhooks.append(start())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for webhook in webhooks:
        webhook.until_ready()
    (bundle,) = cluster.bundles()
    assert bundle.count("BEGIN CERTIFICATE") == 1
    for webhook in webhooks:
        assert webhook.ask("/jobs/validate", review(job()))["allowed"]


def test_what_is_written_over_is_repaired_and_a_killed_process_goes_on_with_the_same(
    start: Callable[..., Webhook], cluster: Cluster
) -> None:
    webhook = start()
    webhook.until_ready()
    before = cluster.bundles()
    webhook.end(signal.SIGKILL)
    applied = dict(zip(CONFIGURED, webhook_configurations(OWN), strict=True))

    async def apply(server: KubernetesCluster) -> None:
        for kind, one in applied.items():
            await server.patch(kind, "", CONFIGURATION_NAME, one)

    cluster.do(apply)
    assert cluster.bundles() == {""}
    again = start()
    again.until_ready()
    assert cluster.bundles() == before
    assert again.ask("/jobs/validate", review(job()))["allowed"]


def test_told_to_end_it_still_answers_for_a_while_and_says_that_it_is_not_ready(
    start: Callable[..., Webhook],
) -> None:
    webhook = start()
    webhook.until_ready()
    webhook.process.send_signal(signal.SIGTERM)
    until(lambda: webhook.probe("/readyz"), lambda answer: answer[0] == 503)
    assert webhook.ask("/jobs/validate", review(job()))["allowed"]
    assert webhook.process.wait(_PATIENCE) == 0


class TestGivenCertificates:
    @staticmethod
    def write(directory: Path, moment: float) -> str:
        """A certificate that is valid from then on, in files; who signed it."""
        from datetime import UTC, datetime

        made = make_certificate((HOST,), datetime.fromtimestamp(moment, UTC), owner="a test")
        (directory / "given.crt").write_bytes(made.certificate)
        (directory / "given.key").write_bytes(made.key)
        return made.authority.decode()

    @staticmethod
    def files(directory: Path) -> tuple[str | Path, ...]:
        return ("--certificate", directory / "given.crt", "--key", directory / "given.key")

    def test_are_shown_and_nothing_is_written(
        self, start: Callable[..., Webhook], cluster: Cluster, tmp_path: Path
    ) -> None:
        authority = self.write(tmp_path, time.time())
        webhook = start(*self.files(tmp_path))
        webhook.until_ready()
        assert webhook.ask("/jobs/validate", review(job()), trusting=authority)["allowed"]
        assert cluster.bundles() == {""}
        assert cluster.do(lambda server: server.list(SECRET, OWN)).items == []

    def test_that_have_expired_are_told_and_taken_anew_when_they_change(
        self, start: Callable[..., Webhook], tmp_path: Path
    ) -> None:
        self.write(tmp_path, time.time() - 366 * 86400)
        webhook = start(*self.files(tmp_path))
        code, text = until(lambda: webhook.probe("/readyz"), lambda answer: "expired" in answer[1])
        assert code == 503
        assert "given.crt" in text
        authority = self.write(tmp_path, time.time())
        webhook.until_ready()
        assert webhook.ask("/jobs/validate", review(job()), trusting=authority)["allowed"]

    def test_that_are_not_there_are_waited_for(
        self, start: Callable[..., Webhook], tmp_path: Path
    ) -> None:
        webhook = start(*self.files(tmp_path))
        code, text = until(
            lambda: webhook.probe("/readyz"), lambda answer: "cannot be read" in answer[1]
        )
        assert code == 503
        assert f"{tmp_path / 'given.crt'} cannot be read: No such file or directory" in text
        assert webhook.probe("/healthz") == (200, "ok\n")


class TestBadRequests:
    def test_get_a_sentence_each_and_disturb_nobody(self, start: Callable[..., Webhook]) -> None:
        webhook = start()
        webhook.until_ready()
        whole = json.dumps(review(job())).encode()
        json_type = "Content-Type: application/json"
        cases: list[tuple[bytes, tuple[str, ...], int, str]] = [
            (b"", (), 400, "is no JSON"),
            (b"[" * 100_000, (), 400, "levels"),
            (b'{"a":' * 90_000 + b"1" + b"}" * 90_000, (), 400, "levels"),
            (b"\x00\xff", (), 400, "is no JSON"),
            (b"[]", (), 400, "no AdmissionReview"),
            (b'{"kind": "AdmissionReview", "apiVersion": "v9"}', (), 400, "v9"),
            (whole, ("Content-Type: text/yaml",), 415, "text/yaml"),
            (whole, (json_type, "Content-Encoding: gzip"), 415, "gzip"),
            (b" " * (6 * 1024 * 1024 + 1), (), 413, "bigger than 6291456 bytes"),
        ]
        for body, headers, expected, said in cases:
            code, content = webhook.send("/jobs/validate", body, *headers)
            assert (code, content.decode().count("\n")) == (expected, 1), content
            assert said in content.decode()
            assert "Traceback" not in content.decode()
        assert webhook.send("/pods/mutate", whole)[0] == 404
        assert webhook.ask("/jobs/validate", review(job()))["allowed"]
        assert "Traceback" not in webhook.log

    def test_from_slow_clients_do_not_hold_up_others(self, start: Callable[..., Webhook]) -> None:
        webhook = start()
        webhook.until_ready()
        (bundle,) = webhook.cluster.bundles()
        head = (
            f"POST /jobs/validate HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
            "Content-Length: 1000\r\n\r\n{"
        )
        slow = [webhook.connect(bundle) for _ in range(8)]
        try:
            for connection in slow:
                connection.sendall(head.encode())
            assert webhook.ask("/jobs/validate", review(job()))["allowed"]
            answers = [connection.recv(65536) for connection in slow]
        finally:
            for connection in slow:
                connection.close()
        assert all(b" 408 " in answer for answer in answers)
        assert all(b"did not end in time" in answer for answer in answers)


def test_big_jobs_do_not_hold_up_probes_or_other_reviews(start: Callable[..., Webhook]) -> None:
    webhook = start()
    webhook.until_ready()
    (bundle,) = webhook.cluster.bundles()
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    big = job(
        tasks=[
            {"name": f"t{number}", "replicas": 1, "template": {"spec": pod}}
            for number in range(5000)
        ]
    )
    answers: list[Object] = []
    threads = [
        threading.Thread(
            target=lambda: answers.append(
                webhook.ask("/jobs/validate", review(big), trusting=bundle)
            )
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    meanwhile = 0
    while any(thread.is_alive() for thread in threads):
        assert webhook.probe("/healthz")[0] == 200
        meanwhile += 1
    for thread in threads:
        thread.join()
    assert [answer["allowed"] for answer in answers] == [True, True]
    assert meanwhile > 3, "probes were answered while the reviews were under way"


def test_an_api_server_that_is_not_there_is_waited_for(tmp_path: Path) -> None:
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text(
        json.dumps(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c"}}],
                "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
            }
        )
    )
    webhook = Webhook(Cluster(nowhere))
    try:
        code, _ = until(lambda: webhook.probe("/readyz"), lambda answer: "127.0.0.1:9" in answer[1])
        assert code == 503
        assert webhook.probe("/healthz")[0] == 200
    finally:
        assert webhook.end() == 0
    assert "Traceback" not in webhook.log


def test_a_port_that_is_taken_is_said_in_the_log(config: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ("--health-address", f"127.0.0.1:{port}", "--log-format", "json")
        ended = subprocess.run(
            [*COMMAND, "--kubeconfig", config, *options],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )
    assert ended.returncode == 1
    (line,) = map(json.loads, ended.stderr.splitlines())
    assert (line["level"], "trace" in line) == ("error", False)
    assert line["message"].startswith(f"127.0.0.1:{port} cannot be listened at: ")
    assert line["message"].endswith("name another with --health-address")


def test_plugins_of_packages_are_known_only_where_they_are_allowed(
    start: Callable[..., Webhook], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = (str(install_example(tmp_path / "example")), os.environ.get("PYTHONPATH", ""))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    wanted = job(plugins={"torchrun": ["--port=29400"]})
    strict, lenient = start(), start("--third-party-plugins")
    for webhook in (strict, lenient):
        webhook.until_ready()
    denied = strict.ask("/jobs/validate", review(wanted))
    assert denied["status"]["message"] == (
        'spec.plugins.torchrun: the plugin "torchrun" of the package vcjob-torchrun 1.0 is not '
        "used; plugins of other packages have to be allowed by whoever runs the operator and the "
        "webhook: --third-party-plugins"
    )
    completed = patched(wanted, lenient.ask("/jobs/mutate", review(wanted)))
    assert completed["spec"]["plugins"] == {"torchrun": ["--port=29400"], "svc": []}
    assert lenient.ask("/jobs/validate", review(completed))["allowed"]
    wrong = job(plugins={"torchrun": ["--port=0"], "svc": []})
    denied = lenient.ask("/jobs/validate", review(wrong))
    assert "--port=0 is no port" in denied["status"]["message"]
