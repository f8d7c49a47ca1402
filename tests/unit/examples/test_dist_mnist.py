"""The example's program: real training over loopback, and clear words about a wrong TF_CONFIG."""

import hashlib
import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "tensorflow-dist-mnist"
PROGRAM = EXAMPLE / "dist_mnist.py"
WORKERS = ["127.0.0.1:1", "127.0.0.1:2"]  # named in TF_CONFIG, but nobody connects to workers

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dist_mnist", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["dist_mnist"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def start() -> Iterator[Start]:
    """Start tasks as processes; what still runs at the end of the test is killed."""
    with ExitStack() as stack:

        def start_task(config: object, *arguments: str) -> subprocess.Popen[str]:
            text = config if isinstance(config, str) else json.dumps(config)
            process = subprocess.Popen(
                [sys.executable, str(PROGRAM), *arguments],
                env={**os.environ, "TF_CONFIG": text},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield start_task


def config_of(ps: list[str], role: str, index: int) -> dict[str, Any]:
    return {
        "cluster": {"ps": ps, "worker": WORKERS},
        "task": {"type": role, "index": index},
        "environment": "cloud",
    }


def free_addresses(count: int) -> list[str]:
    with ExitStack() as stack:
        sockets = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=50)
    return process.returncode, out, err


@pytest.mark.parametrize("servers", [1, 3])
def test_two_workers_train_together_beyond_ninety_percent(start: Start, servers: int) -> None:
    addresses = free_addresses(servers)
    # Workers first: they must wait for servers that do not listen yet.
    workers = [start(config_of(addresses, "worker", index)) for index in range(2)]
    ps = [start(config_of(addresses, "ps", index)) for index in range(servers)]

    for worker in workers:
        code, out, err = finish(worker)
        assert (code, err) == (0, "")
        assert len(re.findall(r"^step +\d+  loss \d\.\d+  accuracy \d+\.\d%$", out, re.M)) == 5
        accuracy = re.search(r"held-out digits right \((.*)%\)", out)
        assert accuracy is not None
        assert float(accuracy[1]) > 90

    for server in ps:
        server.send_signal(signal.SIGTERM)
        code, out, err = finish(server)
        assert (code, err) == (0, "")
        assert "stopped after 1800 updates (worker 0: 900, worker 1: 900)" in out


def test_parameter_servers_end_by_themselves_once_every_worker_is_done(start: Start) -> None:
    addresses = free_addresses(2)
    servers = [start(config_of(addresses, "ps", index)) for index in range(2)]
    for worker in [start(config_of(addresses, "worker", index)) for index in range(2)]:
        assert finish(worker)[0] == 0
    assert [finish(server)[0] for server in servers] == [0, 0]


def test_parameter_server_stays_until_the_last_worker_is_done(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "LINGER_SECONDS", 0)
    with program.ParameterServer(("127.0.0.1", 0), socket.AF_INET, range(10), 2) as server:
        stopped = threading.Event()
        monkeypatch.setattr(server, "shutdown", stopped.set)
        server.done(1)
        server.done(1)
        assert server.still_working == {0}
        assert not stopped.wait(0.05)
        server.done(0)
        assert stopped.wait(10)


def test_parameter_server_says_where_it_listens(start: Start) -> None:
    (address,) = free_addresses(1)
    server = start(config_of([address], "ps", 0))
    assert server.stdout is not None
    assert server.stdout.readline() == f"serving 650 parameters on {address}\n"
    server.send_signal(signal.SIGTERM)
    assert finish(server)[:2] == (0, "stopped after 0 updates\n")


def test_worker_gives_up_on_an_unreachable_server_with_its_name(start: Start) -> None:
    (address,) = free_addresses(1)
    code, _, err = finish(start(config_of([address], "worker", 0), "--wait", "0.2"))
    assert code == 1
    assert err.startswith(f"dist_mnist: gave up on ps {address} after 0 s: ")
    assert err.count("\n") == 1


def test_worker_gives_up_on_a_name_that_does_not_resolve(start: Start) -> None:
    config = config_of(["no-such-host.invalid:2222"], "worker", 0)
    code, _, err = finish(start(config, "--wait", "0.1"))
    assert code == 1
    assert "gave up on ps no-such-host.invalid:2222" in err


def test_workers_that_list_other_servers_are_told(start: Start) -> None:
    first, second = free_addresses(2)
    start(config_of([first], "ps", 0))  # believes that it keeps all ten digits
    start(config_of([first, second], "ps", 1))
    code, _, err = finish(start(config_of([first, second], "worker", 0)))
    assert code == 1
    assert f"ps {first} has other digits; do all list the same ps?" in err


def test_server_drops_a_peer_that_speaks_something_else_and_goes_on(
    start: Start, program: ModuleType
) -> None:
    (address,) = free_addresses(1)
    host, port = address.split(":")
    server = start(config_of([address], "ps", 0))
    assert server.stdout is not None
    server.stdout.readline()
    with socket.create_connection((host, int(port)), timeout=10) as peer:
        peer.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert server.stdout.readline().startswith("dropped 127.0.0.1: ")
    with socket.create_connection((host, int(port)), timeout=10) as peer:
        program.send(peer, program.Kind.GRADIENT, b"short")
        assert server.stdout.readline().startswith("dropped 127.0.0.1: the gradient does not fit")
        assert program.receive(peer)[0] is program.Kind.REFUSED
    with socket.create_connection((host, int(port)), timeout=10) as peer:
        program.send(peer, program.Kind.PULL)
        kind, body = program.receive(peer)
        assert kind is program.Kind.PARAMETERS
        assert program.decode(body[8:]) == [[0.0] * 65] * 10


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("", "TF_CONFIG is not set"),
        ('{"cluster":{"ps":["a:1",]}}', "TF_CONFIG is not JSON"),
        ("cluster:ps:[a:1]", "its sh is bash"),
        ("[]", "cluster.ps is None; it must be a list of host:port"),
        (config_of([], "ps", 0), "cluster.ps is []; it must be a list of host:port"),
        (config_of(["nowhere"], "ps", 0), "cluster.ps holds 'nowhere'; it must be host:port"),
        (config_of(["a:70000"], "ps", 0), "cluster.ps holds 'a:70000'; it must be host:port"),
        (config_of(["a:1"], "evaluator", 0), "task.type is 'evaluator'"),
        (config_of(["a:1"], "worker", 2), "task.index is 2, but cluster.worker has 2 entries"),
        ({**config_of(["a:1"], "ps", 0), "task": {"type": "ps"}}, "task.index is None"),
        ({**config_of(["a:1"], "ps", 0), "task": None}, "task.type is None; it must be a string"),
    ],
)
def test_wrong_config_ends_in_one_sentence(start: Start, config: object, words: str) -> None:
    code, out, err = finish(start(config))
    assert (code, out) == (2, "")
    assert err.startswith("dist_mnist: TF_CONFIG")
    assert words in err
    assert err.count("\n") == 1


def test_config_of_the_guide_is_read(program: ModuleType) -> None:
    text = (
        '{"cluster":{"ps":["m-ps-0.m:2222"],"worker":["m-worker-0.m:2222","m-worker-1.m:2222"]},'
        '"task":{"type":"worker","index":1},"environment":"cloud"}'
    )
    assert program.read_config(text) == program.Task("worker", 1, (("m-ps-0.m", 2222),), 2)


def test_gradient_is_the_slope_of_the_loss(program: ModuleType) -> None:
    training, _ = program.load_samples()
    batch = training[:8]
    rows = [[0.01 * ((3 * digit + 7 * i) % 5 - 2) for i in range(65)] for digit in range(10)]
    gradient, _ = program.gradient_of(rows, batch)
    small = 1e-5
    for digit, position in [(0, 64), (3, 20), (9, 43)]:
        losses = []
        for change in (small, -small):
            moved = [list(row) for row in rows]
            moved[digit][position] += change
            losses.append(program.gradient_of(moved, batch)[1])
        slope = (losses[0] - losses[1]) / (2 * small)
        assert gradient[digit][position] == pytest.approx(slope, abs=1e-6)


def test_held_out_samples_are_never_trained_on(program: ModuleType) -> None:
    training, held_out = program.load_samples()
    assert (len(training), len(held_out)) == (1438, 359)
    assert not {id(sample) for sample in training} & {id(sample) for sample in held_out}
    assert {digit for _, digit in training} == {digit for _, digit in held_out} == set(range(10))


@pytest.mark.parametrize("servers", [1, 2, 3, 10, 12])
def test_every_digit_lives_on_one_server(program: ModuleType, servers: int) -> None:
    digits = [digit for ps in range(servers) for digit in program.digits_of(ps, servers)]
    assert sorted(digits) == list(range(10))


def test_manifest_is_the_guides_byte_for_byte() -> None:
    digest = hashlib.sha256((EXAMPLE / "job.yaml").read_bytes()).hexdigest()
    assert digest == "9672fcc2b1a77b20adbc27d65e13a88a05fdd9fbf0545315ff04590e1555d4a9"
