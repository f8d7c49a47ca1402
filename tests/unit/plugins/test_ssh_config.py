"""The client configuration, read by ssh itself where this machine has it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from vcjob.api.types import Job
from vcjob.plugins.hosts import JobHosts
from vcjob.plugins.ssh_config import MOST_BYTES, client_config, listed_bytes

SSH = shutil.which("ssh")


def hosts(*tasks: tuple[str, int], **spec: str) -> JobHosts:
    template = {"spec": spec}
    made = [{"name": name, "replicas": n, "template": template} for name, n in tasks]
    return JobHosts(Job.of({"metadata": {"name": "j"}, "spec": {"tasks": made}}))


def understood(config: str, host: str, directory: Path) -> dict[str, str]:
    """What ssh makes of ``config`` for ``host``; there is no PATH, so that it does not wait."""
    if not SSH:
        pytest.skip("this machine has no ssh")
    file = directory / "config"
    file.write_text(config)
    command = [SSH, "-G", "-F", str(file), host]
    env = {"PATH": "/nonexistent", "SHELL": "/bin/sh"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    pairs = (line.partition(" ") for line in done.stdout.splitlines())
    return {key: value for key, _, value in pairs}


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("j-worker-1", "j-worker-1.j"),  # listed
        ("j-worker-7", "j-worker-7.j"),  # came when the Job was scaled
        ("j-worker-7.j", "j-worker-7.j"),
        ("j-worker-0.j.default.svc.cluster.local", "j-worker-0.j.default.svc.cluster.local"),
    ],
)
def test_hosts_are_found_by_any_name_and_waited_for(host: str, name: str, tmp_path: Path) -> None:
    found = understood(client_config(hosts(("worker", 2)), 2222), host, tmp_path)
    assert (found["hostname"], found["port"]) == (name, "2222")
    assert found["connectionattempts"] == "60"
    assert found["stricthostkeychecking"] in ("no", "false")


def test_other_hosts_are_none_of_its_business(tmp_path: Path) -> None:
    found = understood(client_config(hosts(("worker", 2)), 2222), "example.org", tmp_path)
    assert (found["hostname"], found["port"]) == ("example.org", "22")
    assert found["connectionattempts"] == "1"


def test_a_host_name_of_the_template_is_one_host(tmp_path: Path) -> None:
    config = client_config(hosts(("worker", 3), hostname="h", subdomain="s"), 2222)
    assert config.count("  HostName ") == 1
    for host in ("h", "h.s"):
        found = understood(config, host, tmp_path)
        assert (found["hostname"], found["port"]) == ("h.s", "2222")
    assert understood(config, "hh", tmp_path)["port"] == "22"


def test_the_task_whose_name_says_more_comes_first() -> None:
    config = client_config(hosts(("a", 1), ("a-b", 1)), 22)
    assert config.index("Host j-a-b-* ") < config.index("Host j-a-* ")


def test_the_wait_ends_when_the_name_resolves(tmp_path: Path) -> None:
    """The command that ssh runs, with a ``getent`` that finds the host the third time."""
    sh = shutil.which("sh")
    assert sh
    line = next(
        one for one in client_config(hosts(("w", 1)), 22).splitlines() if one.startswith("Match")
    )
    command = line.partition(' exec "')[2].rstrip('"').replace("%h", "j-w-0.j")
    calls = tmp_path / "calls"
    getent = tmp_path / "getent"
    getent.write_text(f'#!{sh}\necho "$@" >> {calls}; [ "$(wc -l < {calls})" = 3 ]\n')
    (tmp_path / "sleep").write_text(f"#!{sh}\n")
    for program in (getent, tmp_path / "sleep"):
        program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run([sh, "-c", command], env=env, check=True, timeout=30, stdout=subprocess.DEVNULL)
    assert calls.read_text().splitlines() == ["hosts j-w-0.j"] * 3


def test_a_wait_for_nobody_ends_and_lets_ssh_say_it(tmp_path: Path) -> None:
    sh = shutil.which("sh")
    assert sh
    config = client_config(hosts(("w", 1)), 22)
    line = next(one for one in config.splitlines() if one.startswith("Match"))
    command = line.partition(' exec "')[2].rstrip('"').replace("%h", "j-w-0.j")
    calls = tmp_path / "calls"
    (tmp_path / "getent").write_text(f"#!{sh}\nexit 2\n")
    (tmp_path / "sleep").write_text(f"#!{sh}\necho >> {calls}\n")
    for name in ("getent", "sleep"):
        (tmp_path / name).chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run([sh, "-c", command], env=env, check=True, timeout=30, stdout=subprocess.DEVNULL)
    assert len(calls.read_text().splitlines()) == 60


def test_what_a_secret_could_not_hold_is_left_to_patterns() -> None:
    few, many = hosts(("worker", 100)), hosts(("worker", 20_000))
    assert len(client_config(few, 22)) <= listed_bytes(few) + 1024
    assert listed_bytes(many) > MOST_BYTES
    config = client_config(many, 22)
    assert "j-worker-0" not in config
    assert "Host j-worker-* !*.*" in config


def test_no_line_is_longer_than_older_clients_read() -> None:
    config = client_config(hosts(*((f"task-{number}", 2) for number in range(300))), 22)
    assert max(map(len, config.splitlines())) < 1024


def test_sizes_are_known_without_making_names() -> None:
    assert listed_bytes(hosts(("worker", 10**9))) > MOST_BYTES
