"""How near the network between pods comes to plain loopback, with gloo as PyTorch uses it.

    .venv/bin/pip install '.[torch]' && .venv/bin/python bench/network.py [--quick]

Two processes allreduce 4 MB and play ping-pong with 64 bytes: once as two pods of a Job with the
pytorch plugin, once as they are on this machine's loopback. Both ways run the same program with the
same Python, one after the other, five times, in changing order; a figure is the median of the five
quotients, so that whatever else happens on the machine meets both. Ends with 1 if one is missed.
"""

import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml
from figures import Figure

VCJOB = str(Path(sys.executable).with_name("vcjob"))
RUN_SECONDS = 120  # a run that takes longer hangs
LEAST_BANDWIDTH = 0.6
MOST_LATENCY = 1.6

# One process of the pair. Prints how many seconds an allreduce and a ping-pong take: the quickest
# quarter of many, for the others tell more of what else the machine had to do meanwhile.
PROGRAM = r"""
import statistics, sys, time
import torch
from torch import distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
large = torch.ones(4 * 1024 * 1024 // 4)
small = torch.zeros(64, dtype=torch.uint8)

def allreduce():
    dist.all_reduce(large)

def ping_pong():
    for turn in (0, 1):
        if rank == turn:
            dist.send(small, 1 - rank)
        else:
            dist.recv(small, 1 - rank)

for name, step, steps in (("allreduce", allreduce, 200), ("ping-pong", ping_pong, 4000)):
    for _ in range(steps // 10):
        step()
    dist.barrier()
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    if rank == 0:
        print(f"measured {name} {statistics.quantiles(seconds)[0]:.9f}", flush=True)
dist.barrier()
dist.destroy_process_group()
"""


class BenchError(Exception):
    """Something could not be measured; the text says what and why."""


class Measured(NamedTuple):
    """Seconds of one allreduce of 4 MB, and of one ping-pong of 64 bytes."""

    allreduce: float
    ping_pong: float


def write_job(directory: Path) -> Path:
    """A Job of the two processes as pods."""
    container = {"name": "main", "image": "none", "command": ["python", "-c", PROGRAM]}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    tasks = [{"name": name, "replicas": 1, "template": template} for name in ("master", "worker")]
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "pair"},
        "spec": {"minAvailable": 2, "plugins": {"pytorch": []}, "tasks": tasks},
    }
    path = directory / "job.yaml"
    path.write_text(yaml.dump(job))
    return path


def as_pods(manifest: Path) -> Measured:
    command = [VCJOB, "run", "--python", sys.executable, str(manifest)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_SECONDS
    )
    return read(done.returncode, done.stdout + done.stderr)


def on_loopback() -> Measured:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, **shared, "GLOO_SOCKET_IFNAME": "lo", "RANK": str(rank)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        said = [process.communicate(timeout=RUN_SECONDS)[0] for process in processes]
    except subprocess.TimeoutExpired:
        for process in processes:
            process.kill()
        raise
    return read(max(abs(process.returncode) for process in processes), "".join(said))


def read(code: int, output: str) -> Measured:
    found = dict(re.findall(r"measured (\S+) ([\d.]+)", output))
    if code or len(found) != 2:
        words = output.strip().splitlines()[-5:]
        raise BenchError(f"the pair ended with {code}: {words}")
    return Measured(float(found["allreduce"]), float(found["ping-pong"]))


def figures(directory: Path, repeat: int) -> Iterator[Figure]:
    manifest = write_job(directory)
    pods, plain = [], []
    for number in range(repeat):
        if number % 2:
            plain.append(on_loopback())
        pods.append(as_pods(manifest))
        if not number % 2:
            plain.append(on_loopback())
    pairs = list(zip(pods, plain, strict=True))
    bandwidth = statistics.median(other.allreduce / one.allreduce for one, other in pairs)
    latency = statistics.median(one.ping_pong / other.ping_pong for one, other in pairs)
    yield Figure("allreduce of 4 MB between two pods", milliseconds(pods, 0), "ms")
    yield Figure("  between two processes on loopback", milliseconds(plain, 0), "ms")
    yield Figure(
        "  bandwidth between pods, times loopback", bandwidth, "times", least=LEAST_BANDWIDTH
    )
    yield Figure("ping-pong of 64 bytes between two pods", milliseconds(pods, 1), "ms")
    yield Figure("  between two processes on loopback", milliseconds(plain, 1), "ms")
    yield Figure("  latency between pods, times loopback", latency, "times", MOST_LATENCY)


def milliseconds(measured: list[Measured], which: int) -> float:
    return statistics.median(one[which] for one in measured) * 1000


def main() -> int:
    parser = argparse.ArgumentParser(description="The network between pods against loopback.")
    parser.add_argument("--quick", action="store_true", help="one pair instead of five")
    repeat = 1 if parser.parse_args().quick else 5
    try:
        import torch.distributed  # noqa: F401 - whether it is there
    except ImportError:
        print("bench: needs PyTorch: pip install '.[torch]'", file=sys.stderr)
        return 2
    missed = 0
    with tempfile.TemporaryDirectory(prefix="vcjob-bench-") as name:
        try:
            for figure in figures(Path(name), repeat):
                print(figure, flush=True)
                missed += figure.missed
        except (BenchError, OSError, subprocess.TimeoutExpired) as error:
            print(f"bench: {error}", file=sys.stderr)
            return 2
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
