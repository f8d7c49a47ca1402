"""Asynchronous parameter-server training on handwritten digits, with the standard library only.

The program is one task of a cluster that TF_CONFIG describes, as TensorFlow programs read it:

    {"cluster": {"ps": ["host:2222"], "worker": ["host:2222", "host:2222"]},
     "task": {"type": "worker", "index": 0}, "environment": "cloud"}

A ps keeps parameters, hands them out and applies the gradients that it is sent, until it is stopped
or all workers have told that they are done. Parameters are split over the ps by digit: the weights
of digit d live on ps d mod n. A worker trains softmax regression on its share of the samples: in
each step it sends the gradient of one batch and gets the parameters that resulted, in which the
other workers' steps are seen as soon as they were applied. Nobody waits for anybody else; that is
what makes it asynchronous.

Wire format: a header of two network-order numbers (body length, 4 bytes; message kind, 1 byte),
then the body; parameters and gradients are 4-byte floats in network order.
"""

import argparse
import gzip
import json
import math
import os
import random
import signal
import socket
import socketserver
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from operator import mul
from pathlib import Path
from typing import TypeVar

DIGITS = 10
PIXELS = 64
ROW = PIXELS + 1  # the weights of one digit and its bias

BATCH = 16
EPOCHS = 20
LEARNING_RATE = 0.3
LINES = 5  # progress lines of a worker

LINGER_SECONDS = 2.0  # how long a ps stays when all workers are done, for the job's policy to act
ANSWER_SECONDS = 60.0  # how long a worker waits for one answer of a ps

Row = list[float]
Sample = tuple[Row, int]
T = TypeVar("T")


class ConfigError(Exception):
    """TF_CONFIG does not describe a task that this program can be."""


class TrainingError(Exception):
    """Training cannot go on; the text says why."""


# --- who am I ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """This process' place in the cluster. Addresses are (host, port)."""

    role: str
    index: int
    ps: tuple[tuple[str, int], ...]
    workers: int


def read_config(text: str | None) -> Task:
    """Read TF_CONFIG; raises ConfigError with a sentence that names the field."""
    if not text:
        raise ConfigError("TF_CONFIG is not set; see the head of this file for what it holds")
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"TF_CONFIG is not JSON ({error}): {text[:200]!r}. If a shell script makes it and its "
            "sh is bash, the braces were expanded: run it with dash or busybox sh"
        ) from error
    addresses = {
        role: [_address(role, entry) for entry in _lookup(config, list, "cluster", role)]
        for role in ("ps", "worker")
    }
    role = _lookup(config, str, "task", "type")
    if role not in addresses:
        raise ConfigError(f"TF_CONFIG: task.type is {role!r}; this program is a ps or a worker")
    index = _lookup(config, int, "task", "index")
    if not 0 <= index < len(addresses[role]):
        raise ConfigError(
            f"TF_CONFIG: task.index is {index}, but cluster.{role} has {len(addresses[role])} "
            "entries"
        )
    return Task(role, index, tuple(addresses["ps"]), len(addresses["worker"]))


def _lookup(config: object, kind: type[T], section: str, field: str) -> T:
    part = config.get(section) if isinstance(config, dict) else None
    value = part.get(field) if isinstance(part, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool) or value == []:
        wanted = {list: "a list of host:port", str: "a string", int: "a number"}[kind]
        raise ConfigError(f"TF_CONFIG: {section}.{field} is {value!r}; it must be {wanted}")
    return value


def _address(role: str, entry: object) -> tuple[str, int]:
    host, _, port = str(entry).rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(f"TF_CONFIG: cluster.{role} holds {entry!r}; it must be host:port")
    return host.strip("[]"), int(port)


# --- messages ---------------------------------------------------------------------------------

HEADER = struct.Struct("!IB")
STEP = struct.Struct("!Q")  # heads PARAMETERS: how many gradients were applied so far
SENDER = struct.Struct("!I")  # heads GRADIENT and DONE: the index of the worker
LARGEST_BODY = SENDER.size + STEP.size + 4 * DIGITS * ROW


class Kind(IntEnum):
    """What a message is. A ps answers the first three with PARAMETERS or REFUSED (a text)."""

    PULL = 1
    GRADIENT = 2
    DONE = 3
    PARAMETERS = 4
    REFUSED = 5


def send(connection: socket.socket, kind: Kind, body: bytes = b"") -> None:
    """Send one message."""
    connection.sendall(HEADER.pack(len(body), kind) + body)


def receive(connection: socket.socket) -> tuple[Kind, bytes] | None:
    """Receive one message, None if the peer closed; raises TrainingError if it is not one."""
    header = _receive_exactly(connection, HEADER.size)
    if header is None:
        return None
    length, kind = HEADER.unpack(header)
    if length > LARGEST_BODY or kind not in set(Kind):
        raise TrainingError("the peer does not speak this program's protocol")
    body = _receive_exactly(connection, length)
    return None if body is None else (Kind(kind), body)


def _receive_exactly(connection: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            return None
        data += piece
    return bytes(data)


def encode(rows: list[Row]) -> bytes:
    """Rows of parameters or gradients as bytes."""
    return b"".join(struct.pack(f"!{ROW}f", *row) for row in rows)


def decode(data: bytes) -> list[Row]:
    """The reverse of ``encode``; raises struct.error if ``data`` is no whole number of rows."""
    return [list(row) for row in struct.iter_unpack(f"!{ROW}f", data)]


# --- the parameter server ---------------------------------------------------------------------


def digits_of(ps: int, servers: int) -> range:
    """The digits whose weights live on a ps."""
    return range(ps, DIGITS, servers)


class ParameterServer(socketserver.ThreadingTCPServer):
    """Keeps the rows of its digits; every connection has a thread, every update the lock."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, address: tuple[str, int], family: int, digits: range, workers: int) -> None:
        self.address_family = family
        self.rows = [[0.0] * ROW for _ in digits]
        self.updates: Counter[int] = Counter()  # by worker
        self.still_working = set(range(workers))
        self.lock = threading.Lock()
        super().__init__(address, Conversation)

    def apply(self, worker: int, gradient: list[Row]) -> None:
        """Take one step of gradient descent; raises ValueError if the shape is not ours."""
        with self.lock:
            pairs = list(zip(self.rows, gradient, strict=True))
            self.rows = [
                [weight - LEARNING_RATE * change for weight, change in zip(*pair, strict=True)]
                for pair in pairs
            ]
            self.updates[worker] += 1

    def done(self, worker: int) -> None:
        """A worker needs this server no more. After the last one it stops by itself, soon.

        The policy of the job stops it too, but where the shell that started this program is the
        first process of the container, SIGTERM reaches nobody and the grace period would pass.
        """
        with self.lock:
            last = self.still_working == {worker}
            self.still_working.discard(worker)
        if last:
            timer = threading.Timer(LINGER_SECONDS, self.shutdown)
            timer.daemon = True
            timer.start()

    def snapshot(self) -> bytes:
        """The body of a PARAMETERS message."""
        with self.lock:
            rows, step = self.rows, self.updates.total()
        return STEP.pack(step) + encode(rows)


class Conversation(socketserver.BaseRequestHandler):
    """Answers one worker until it closes the connection."""

    server: ParameterServer

    def handle(self) -> None:
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while (message := receive(self.request)) is not None:
                self._answer(*message)
        except (TrainingError, ConnectionError) as error:
            say(f"dropped {self.client_address[0]}: {error}")

    def _answer(self, kind: Kind, body: bytes) -> None:
        try:
            if kind is Kind.GRADIENT:
                (worker,) = SENDER.unpack_from(body)
                self.server.apply(worker, decode(body[SENDER.size :]))
            elif kind is Kind.DONE:
                self.server.done(*SENDER.unpack(body))
        except (ValueError, struct.error) as error:
            reason = "the gradient does not fit here; do all tasks list the same ps?"
            send(self.request, Kind.REFUSED, reason.encode())
            raise TrainingError(reason) from error
        send(self.request, Kind.PARAMETERS, self.server.snapshot())


def serve(task: Task, wait: float) -> None:
    """Be a parameter server until SIGTERM, Ctrl-C, or the last worker is done."""
    host, port = task.ps[task.index]
    family, address = _own_address(host, port, wait)
    digits = digits_of(task.index, len(task.ps))
    with ParameterServer(address, family, digits, task.workers) as server:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: sys.exit(0))
        try:
            say(f"serving {len(digits) * ROW} parameters on {address[0]}:{port}")
            server.serve_forever()
        finally:
            with server.lock:
                updates = sorted(server.updates.items())
            by = ", ".join(f"worker {worker}: {count}" for worker, count in updates)
            total = sum(count for _, count in updates)
            say(f"stopped after {total} updates" + (f" ({by})" if by else ""))


def _own_address(host: str, port: int, wait: float) -> tuple[int, tuple[str, int]]:
    for failure in _attempts(f"own name {host}", wait):
        try:
            family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            return family, (str(address[0]), port)
        except OSError as error:
            failure.append(error)
    raise AssertionError("attempts end with an exception")


def _attempts(what: str, wait: float) -> Iterator[list[OSError]]:
    """Yield for each attempt a list for its failure; raises TrainingError after ``wait`` seconds.

    Peers start in any order, and a name may resolve only once its pod is ready.
    """
    start = time.monotonic()
    pause, told = 0.05, False
    while True:
        failure: list[OSError] = []
        yield failure
        cause, waited = failure[0], time.monotonic() - start
        if waited + pause > wait:
            raise TrainingError(f"gave up on {what} after {waited:.0f} s: {cause}") from cause
        if waited > 2 and not told:
            say(f"waiting for {what}: {cause}")
            told = True
        time.sleep(pause)
        pause = min(2 * pause, 1.0)


# --- the worker -------------------------------------------------------------------------------


def load_samples() -> tuple[list[Sample], list[Sample]]:
    """Training and held-out samples: every fifth is held out. Pixels are scaled to 0..1."""
    with gzip.open(Path(__file__).with_name("digits.csv.gz"), "rt") as lines:
        rows = [[int(value) for value in line.split(",")] for line in lines]
    samples = [([pixel / 16 for pixel in row[:PIXELS]] + [1.0], row[PIXELS]) for row in rows]
    training = [sample for number, sample in enumerate(samples) if number % 5 != 4]
    return training, samples[4::5]


def probabilities(rows: list[Row], pixels: Row) -> list[float]:
    """How likely each digit is, by softmax."""
    scores = [sum(map(mul, row, pixels)) for row in rows]
    largest = max(scores)
    powers = [math.exp(score - largest) for score in scores]
    total = sum(powers)
    return [power / total for power in powers]


def gradient_of(rows: list[Row], batch: list[Sample]) -> tuple[list[Row], float]:
    """The mean gradient of the cross-entropy over a batch, and the mean loss."""
    gradient = [[0.0] * ROW for _ in range(DIGITS)]
    loss = 0.0
    for pixels, digit in batch:
        guess = probabilities(rows, pixels)
        loss -= math.log(max(guess[digit], 1e-30))
        guess[digit] -= 1.0
        for d, difference in enumerate(guess):
            factor = difference / len(batch)
            gradient[d] = [g + factor * pixel for g, pixel in zip(gradient[d], pixels, strict=True)]
    return gradient, loss / len(batch)


def correct(rows: list[Row], samples: list[Sample]) -> int:
    """How many samples are recognised."""
    return sum(
        max(range(DIGITS), key=probabilities(rows, pixels).__getitem__) == digit
        for pixels, digit in samples
    )


class Connection:
    """A worker's connection to one ps. Every failure is a TrainingError that names the ps."""

    def __init__(self, host: str, port: int, wait: float) -> None:
        self.name = f"ps {host}:{port}"
        for failure in _attempts(self.name, wait):
            try:
                self.socket = socket.create_connection((host, port), timeout=5)
                break
            except OSError as error:
                failure.append(error)
        self.socket.settimeout(ANSWER_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, kind: Kind, body: bytes = b"") -> None:
        """Send a request."""
        try:
            send(self.socket, kind, body)
        except OSError as error:
            raise TrainingError(f"lost {self.name}: {error}") from error

    def answer(self) -> tuple[int, list[Row]]:
        """Receive what the request led to: the step and the rows of this ps."""
        try:
            message = receive(self.socket)
        except OSError as error:
            raise TrainingError(f"lost {self.name}: {error}") from error
        if message is None:
            raise TrainingError(f"{self.name} closed the connection")
        kind, body = message
        if kind is not Kind.PARAMETERS:
            raise TrainingError(f"{self.name} refused: {body.decode(errors='replace')}")
        try:
            (step,) = STEP.unpack_from(body)
            return step, decode(body[STEP.size :])
        except struct.error as error:
            raise TrainingError(f"{self.name} answered nonsense: {error}") from error


class Parameters:
    """All parameters, wherever they live. Asks every ps first, so that they work side by side."""

    def __init__(self, task: Task, wait: float) -> None:
        self.worker = task.index
        self.servers = [Connection(host, port, wait) for host, port in task.ps]

    def pull(self) -> tuple[int, list[Row]]:
        """The step and the parameters of this moment."""
        for server in self.servers:
            server.ask(Kind.PULL)
        return self._answers()

    def push(self, gradient: list[Row]) -> tuple[int, list[Row]]:
        """Apply a gradient; the step and the parameters that resulted."""
        for ps, server in enumerate(self.servers):
            share = [gradient[digit] for digit in digits_of(ps, len(self.servers))]
            server.ask(Kind.GRADIENT, SENDER.pack(self.worker) + encode(share))
        return self._answers()

    def done(self) -> None:
        """Tell every ps that this worker needs it no more."""
        for server in self.servers:
            server.ask(Kind.DONE, SENDER.pack(self.worker))
        self._answers()

    def _answers(self) -> tuple[int, list[Row]]:
        """The step is that of ps 0: each ps counts, and they agree but for what is under way."""
        rows: list[Row] = [[] for _ in range(DIGITS)]
        first_step = 0
        for ps, server in enumerate(self.servers):
            step, share = server.answer()
            first_step = first_step if ps else step
            digits = digits_of(ps, len(self.servers))
            if len(share) != len(digits):
                raise TrainingError(f"{server.name} has other digits; do all list the same ps?")
            for digit, row in zip(digits, share, strict=True):
                rows[digit] = row
        return first_step, rows


def train(task: Task, wait: float) -> None:
    """Be a worker: train on every n-th sample, and tell how it goes."""
    training, held_out = load_samples()
    share = training[task.index :: task.workers]
    parameters = Parameters(task, wait)
    say(f"worker {task.index} of {task.workers}: {len(share)} samples, {len(task.ps)} ps reached")
    shuffle = random.Random(task.index).shuffle
    step, rows = parameters.pull()
    mine = 0
    for epoch in range(EPOCHS):
        shuffle(share)
        losses = []
        for start in range(0, len(share), BATCH):
            gradient, loss = gradient_of(rows, share[start : start + BATCH])
            step, rows = parameters.push(gradient)
            losses.append(loss)
        mine += len(losses)
        if (epoch + 1) % (EPOCHS // LINES) == 0:
            accuracy = correct(rows, held_out) / len(held_out)
            loss = sum(losses) / len(losses)
            say(f"step {step:4}  loss {loss:.3f}  accuracy {accuracy:.1%}")
    parameters.done()
    right = correct(rows, held_out)
    say(
        f"finished: {mine} of {step} steps were mine; "
        f"{right} of {len(held_out)} held-out digits right ({right / len(held_out):.1%})"
    )


def say(text: str) -> None:
    """Print a line that is seen at once, and whole even where Python does not buffer."""
    print(f"{text}\n", end="", flush=True)


def main() -> int:
    """Exit codes: 0 done (a ps: stopped), 1 training could not go on, 2 wrong TF_CONFIG."""
    parser = argparse.ArgumentParser(description="One task of a training; TF_CONFIG says which.")
    parser.add_argument(
        "--wait",
        type=float,
        default=120.0,
        metavar="SECONDS",
        help="how long to wait until the parameter servers can be reached (default: 120)",
    )
    wait = parser.parse_args().wait
    # The first process of a container does not receive signals that it has no handler for.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        task = read_config(os.environ.get("TF_CONFIG"))
        if task.role == "ps":
            serve(task, wait)
        else:
            train(task, wait)
    except ConfigError as error:
        print(f"dist_mnist: {error}", file=sys.stderr)
        return 2
    except (TrainingError, OSError) as error:
        print(f"dist_mnist: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
