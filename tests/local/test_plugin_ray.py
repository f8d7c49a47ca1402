"""Jobs with the ray plugin as real pods. A program called ray stands for Ray itself."""

from pathlib import Path

import pytest
from cli_runs import job, run, task, write

pytestmark = pytest.mark.local

# As a head it answers at its port and at that of clients; as a worker it tells the head its name.
RAY = """\
#!/usr/bin/env python3
import argparse, socket, time
reader = argparse.ArgumentParser()
reader.add_argument("start")
for switch in ("--head", "--block"):
    reader.add_argument(switch, action="store_true")
reader.add_argument("--address", default="")
reader.add_argument("--dashboard-host")
for port in ("--port", "--dashboard-port", "--ray-client-server-port"):
    reader.add_argument(port, type=int)
given = reader.parse_args()
if given.head:
    workers = socket.create_server(("", given.port))
    clients = socket.create_server(("", given.ray_client_server_port))
    names = sorted(workers.accept()[0].makefile().readline().strip() for _ in range(2))
    clients.accept()[0].sendall(f"{names}\\n".encode())
else:
    host, port = given.address.split(":")
    while True:
        try:
            with socket.create_connection((host, int(port))) as head:
                head.sendall(f"{socket.gethostname()}\\n".encode())
            break
        except OSError:
            time.sleep(0.05)
"""
CLIENT = """\
import socket, time
while True:
    try:
        with socket.create_connection(("cluster-head-svc", 10001)) as head:
            print(head.makefile().readline().strip())
        break
    except OSError:
        time.sleep(0.05)
"""


def test_a_cluster_forms_from_containers_that_name_no_command(tmp_path: Path) -> None:
    """The plugin says what they run; the Service of the head leads clients there."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ray").write_text(RAY)
    (programs / "ray").chmod(0o755)
    tasks = [task("head", []), task("worker", [], 2), task("client", ["python3", "-c", CLIENT])]
    for one in tasks[:2]:
        container = one["template"]["spec"]["containers"][0]
        del container["command"]
        container["name"] = one["name"]
        container["env"] = [{"name": "PATH", "value": "/programs:/usr/local/bin:/usr/bin:/bin"}]
    made = job("cluster", *tasks)
    made["spec"]["plugins"] = {"ray": []}
    ended = run(tmp_path, "run", write(tmp_path, made), "-v", f"{programs}:/programs")
    assert ended.code == 0, ended
    assert ended.lines("client-0") == ["['cluster-worker-0', 'cluster-worker-1']"]
    assert "replaces the command" not in ended.err
