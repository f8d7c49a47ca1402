"""The MPI example as a user starts it, and ssh with keys that the plugin mounts."""

import os
import pwd
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cli_runs import job, run, task, write

EXAMPLE = Path(__file__).parents[2] / "examples" / "mpi"
NOBODY = 65534
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

pytestmark = pytest.mark.local


def need(*programs: str) -> None:
    missing = [one for one in programs if not shutil.which(one, path=_PATH)]
    if missing:
        pytest.skip(f"this machine has no {', '.join(missing)} (openssh-server, openmpi-bin)")


@pytest.mark.timeout(120)
def test_four_pods_add_up_what_they_have_by_mpi(tmp_path: Path) -> None:
    need("mpirun", "sshd", "ssh-keygen")
    ended = run(tmp_path, "run", EXAMPLE / "job.yaml", "-v", f"{EXAMPLE}:/examples/mpi")
    assert ended.code == 0, ended
    said = [line for line in ended.lines("master-0") if line.startswith("rank ")]
    found = [re.fullmatch(r"rank (\d) of 4 on (\S+): 1000000 sums are 10, right", s) for s in said]
    ranks = {match[1]: match[2] for match in found if match}
    hosts = {f"allreduce-worker-{n}" for n in range(3)} | {"allreduce-master-0"}
    assert (sorted(ranks), set(ranks.values())) == (["0", "1", "2", "3"], hosts), ended
    assert "PRIVATE KEY" not in ended.out + ended.err


@pytest.mark.parametrize(
    ("directory", "context"),
    [
        ("/root/.ssh", {}),
        ("/home/mpi/.ssh", {"runAsUser": NOBODY, "runAsGroup": NOBODY, "fsGroup": NOBODY}),
        ("/home/mpi/.ssh", {"runAsUser": NOBODY}),
    ],
)
def test_ssh_accepts_the_modes_of_its_keys(
    tmp_path: Path, directory: str, context: dict[str, int]
) -> None:
    """User cases P41 and P43; where this machine has one user only, the pod runs as that."""
    need("ssh-keygen")
    script = (
        f"cd {directory} && for key in id_rsa id_ed25519; do"
        ' test "$(ssh-keygen -y -f $key | cut -d" " -f1,2)" = "$(cut -d" " -f1,2 $key.pub)"'
        " || exit 1; done"
    )
    one = task("main", ["sh", "-c", script])
    one["template"]["spec"]["securityContext"] = context
    made = job("keys", one)
    made["spec"]["plugins"] = {"svc": [], "ssh": [f"--ssh-key-file-path={directory}"]}
    ended = run(tmp_path, "run", write(tmp_path, made))
    assert ended.code == 0, ended


def test_keys_in_a_secret_that_the_job_names_open_every_door(tmp_path: Path) -> None:
    need("sshd", "ssh-keygen", "ssh")
    key = tmp_path / "id_rsa"
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", key], check=True)
    content = {"id_rsa": key.read_text(), "id_rsa.pub": key.with_suffix(".pub").read_text()}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "mine"},
        "stringData": content,
    }
    client = task("client", ["ssh", "named-server-0", "hostname"])
    client["policies"] = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    server = task("server", ["python3", "/mpi/sshd.py"])
    made = job("named", client, server, policies=[{"event": "PodFailed", "action": "AbortJob"}])
    made["metadata"]["annotations"] = {"vcjob.dev/ssh-secret": "mine"}
    made["spec"]["plugins"] = {"svc": [], "ssh": []}
    ended = run(tmp_path, "run", write(tmp_path, secret, made), "-v", f"{EXAMPLE}:/mpi")
    assert ended.code == 0, ended
    assert "named-server-0" in ended.lines("client-0")
    assert "PRIVATE KEY" not in ended.out + ended.err


def somebody() -> pwd.struct_passwd:
    """A user of this machine who may log in and as whom a pod can run."""
    users = [one for one in pwd.getpwall() if one.pw_uid >= 1000 and one.pw_shell.endswith("sh")]
    if os.geteuid() != 0 or not users:
        pytest.skip("needs root, and an ordinary user with a shell")
    return users[0]


@pytest.mark.parametrize("user", ["root", "somebody"])
def test_pods_log_in_to_each_other_on_any_port_by_any_name(tmp_path: Path, user: str) -> None:
    """User cases P43, P44 and P48: the client may start first, the port is what the Job says."""
    need("sshd", "ssh-keygen", "ssh")
    account = pwd.getpwnam("root") if user == "root" else somebody()
    home = account.pw_dir
    logins = " && ".join(f"ssh {name} id -un" for name in ("lo-server-0", "lo-server-0.lo"))
    client = task("client", ["sh", "-c", logins])
    client["policies"] = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    # Late on purpose: the client has to wait for it.
    server = task("server", ["sh", "-c", "sleep 1; exec python3 /mpi/sshd.py 2222"])
    for one in (client, server):
        one["template"]["spec"]["securityContext"] = (
            {"runAsUser": account.pw_uid, "runAsGroup": account.pw_gid, "fsGroup": account.pw_gid}
            if account.pw_uid
            else {}
        )
    made = job("lo", client, server, policies=[{"event": "PodFailed", "action": "AbortJob"}])
    path = f"--ssh-key-file-path={home}/.ssh"
    made["spec"]["plugins"] = {"svc": [], "ssh": ["--ssh-port=2222", path]}
    ended = run(tmp_path, "run", write(tmp_path, made), "-v", f"{EXAMPLE}:/mpi")
    assert ended.code == 0, ended
    assert [line for line in ended.lines("client-0") if line == account.pw_name] == (
        [account.pw_name] * 2
    ), ended
