import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from vcjob import peers


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An /etc/volcano for pod ``job-gpu-worker-1``, whose own files are still to be written."""
    monkeypatch.setattr(peers, "DIRECTORY", tmp_path)
    monkeypatch.setattr(socket, "gethostname", lambda: "job-gpu-worker-1")
    for name in ("VC_TASK_INDEX", "VC_CURRENT_HOST"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_hosts_come_from_the_file_of_the_task(directory: Path) -> None:
    (directory / "gpu_worker.host").write_text("job-gpu-worker-0.job\njob-gpu-worker-1.job")
    assert peers.hosts("gpu-worker") == ["job-gpu-worker-0.job", "job-gpu-worker-1.job"]
    assert peers.tasks() == ["gpu_worker"]
    assert peers.my_task() == "gpu_worker"
    assert peers.my_host() == "job-gpu-worker-1.job"


def test_a_task_without_pods_has_no_hosts(directory: Path) -> None:
    (directory / "ps.host").write_text("")
    assert peers.hosts("ps") == []


def test_without_files_hosts_come_from_the_environment(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VC_GPU_WORKER_HOSTS", "a.job,b.job")
    assert peers.hosts("gpu-worker") == ["a.job", "b.job"]
    assert peers.tasks() == ["gpu_worker"]


def test_an_unknown_task_is_told_with_those_that_there_are(directory: Path) -> None:
    (directory / "ps.host").write_text("")
    with pytest.raises(peers.NoHosts, match="there are: ps"):
        peers.hosts("worker")


def test_the_index_is_the_variable_else_the_end_of_the_host_name(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert peers.my_index() == 1
    monkeypatch.setenv("VC_TASK_INDEX", "7")
    assert peers.my_index() == 7


def test_an_index_that_nothing_tells_is_an_error(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "laptop")
    with pytest.raises(LookupError, match="plugin env"):
        peers.my_index()


def test_waiting_ends_when_every_peer_accepts_connections(directory: Path, listening: int) -> None:
    (directory / "ps.host").write_text("127.0.0.1")
    assert peers.wait_for_peers("ps", listening, timeout=30) == ["127.0.0.1"]


def test_waiting_goes_on_until_a_late_peer_listens(directory: Path) -> None:
    (directory / "ps.host").write_text("127.0.0.1")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        late = threading.Timer(0.2, server.listen)
        late.start()
        assert peers.wait_for_peers(port=port, timeout=30) == ["127.0.0.1"]
        late.join()


def test_a_peer_that_is_not_there_in_time_is_named(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "ps.host").write_text("127.0.0.1")
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, but not listening
        port = nobody.getsockname()[1]
        with pytest.raises(peers.PeersNotReady, match=r"1 peers .*127\.0\.0\.1") as raised:
            peers.wait_for_peers("ps", port, timeout=0.1)
        assert raised.value.missing == ["127.0.0.1"]
        code = peers.main(["wait", "--task", "ps", "--port", str(port), "--timeout", "0"])
    assert code == 1
    assert "127.0.0.1" in capsys.readouterr().err


def test_nobody_waits_for_itself(directory: Path) -> None:
    (directory / "gpu_worker.host").write_text("job-gpu-worker-1.job")
    assert peers.wait_for_peers(port=1, timeout=0) == ["job-gpu-worker-1.job"]


def test_the_command_prints_hosts_and_who_this_pod_is(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "gpu_worker.host").write_text("job-gpu-worker-0.job\njob-gpu-worker-1.job")
    command = ["hosts", "--task", "gpu-worker", "--port", "22", "--separator", ","]
    assert peers.main(command) == 0
    assert peers.main(["me"]) == 0
    hosts, me = capsys.readouterr().out.splitlines()
    assert hosts == "job-gpu-worker-0.job:22,job-gpu-worker-1.job:22"
    assert me == "gpu_worker 1 job-gpu-worker-1.job"
