import pytest

from vcjob.local.sandbox.launcher import BindMount
from vcjob.local.sandbox.machine import Machine
from vcjob.local.sandbox.python import Python
from vcjob.local.sandbox.visibility import invisible

FILES = {
    *("/usr/bin/sh", "/usr/bin/sleep", "/env/bin/python", "/home/me/train/train.py"),
    *("/usr/share/tool/run.py", "/root/secret.py", "/home/me/train/bin/tool"),
}
MACHINE = Machine(
    programs=("/usr",),
    links=(("/bin", "usr/bin"),),
    python=Python("/env/bin/python", ("/env",)),
    list=lambda path: (),
)
PATH = {"PATH": "/.vcjob/bin:/env/bin:/usr/bin:/bin"}
TRAIN = BindMount("/home/me/train", "/var/train")


def check(*command: str, mounts: tuple[BindMount, ...] = (TRAIN,)) -> str:
    found = invisible(command, PATH, mounts, MACHINE, FILES.__contains__)
    return found.path if found else ""


@pytest.mark.parametrize(
    "command",
    [
        ("sleep", "1"),
        ("/bin/sleep", "1"),
        ("./relative",),
        ("python", "/var/train/train.py"),
        ("python", "-u", "/var/train/train.py", "/no/such/argument"),
        ("python", "-c", "/no/code"),
        ("python", "-m", "/no/module"),
        ("python3", "/usr/share/tool/run.py"),
        ("/var/train/bin/tool",),
        ("sh", "-c", "A=1 python /var/train/train.py && sleep 1"),
        ("sh", "-c", "python /var/train/$NAME.py; python /var/*/x.py"),
        ("sh", "-c", "cat > /tmp/x.py; python /tmp/x.py"),
        ("sh", "-c", "echo 'it; python /no/quoted.py'"),
        ("sh", "-c", "# python /no/comment.py"),
        (),
    ],
)
def test_what_is_there_is_found(command: tuple[str, ...]) -> None:
    assert check(*command) == ""


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        (("mpirun", "x"), "mpirun"),
        (("/opt/app/run",), "/opt/app/run"),
        (("python", "/var/tf_dist_mnist/dist_mnist.py"), "/var/tf_dist_mnist/dist_mnist.py"),
        (("python", "/var/train/other.py"), "/var/train/other.py"),
        (("python", "/root/secret.py"), "/root/secret.py"),
        (
            ("sh", "-c", "PS=1; export X=2; python /var/tf/dist_mnist.py --job ps"),
            "/var/tf/dist_mnist.py",
        ),
        (("sh", "-ec", "sleep 1 && exec /opt/app/run"), "/opt/app/run"),
        (("bash", "-c", "sleep 1"), "bash"),
    ],
)
def test_what_is_not_there_is_named(command: tuple[str, ...], missing: str) -> None:
    assert check(*command) == missing


def test_the_cure_names_the_option_with_the_right_target() -> None:
    found = invisible(["python", "/var/tf/x.py"], PATH, (), MACHINE, FILES.__contains__)
    assert "-v SRC:/var/tf " in str(found)
    assert "images are not pulled" in str(found)
    program = invisible(["mpirun"], PATH, (), MACHINE, FILES.__contains__)
    assert "--python" in str(program)
