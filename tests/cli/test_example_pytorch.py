"""examples/pytorch/ as it stands. Needs PyTorch: ``pip install '.[test,torch]'``."""

import importlib.util
import re
from pathlib import Path

import pytest
from cli_runs import run

EXAMPLES = Path(__file__).parents[2] / "examples"
MANIFEST = EXAMPLES / "pytorch" / "job.yaml"


def test_the_manifest_is_right_and_shows_every_pod_its_rank(tmp_path: Path) -> None:
    ended = run(tmp_path, "validate", "--strict", MANIFEST)
    assert ended.code == 0, ended
    rendered = run(tmp_path, "render", MANIFEST).out
    assert re.findall(r"name: RANK\n +value: '(\d)'", rendered) == ["0", "1", "2", "3"]


@pytest.mark.local
@pytest.mark.timeout(300)
@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="PyTorch is not installed: pip install '.[test,torch]'",
)
def test_four_pods_train_together(tmp_path: Path) -> None:
    program, data = EXAMPLES / "pytorch", EXAMPLES / "tensorflow-dist-mnist"
    binds = ("-v", f"{program}:/workspace", "-v", f"{data}:/data:ro")
    ended = run(tmp_path, "run", MANIFEST, *binds)
    assert ended.code == 0, ended
    ranks = [ended.lines(pod)[0] for pod in ("master-0", "worker-0", "worker-1", "worker-2")]
    assert ranks == [f"rank {rank} of 4: 360 of 1437 samples" for rank in range(4)]
    told = re.findall(r"loss (\d+\.\d+)  accuracy (\d+\.\d)%", "\n".join(ended.lines("master-0")))
    losses = [float(loss) for loss, _ in told]
    assert len(losses) == 8
    assert losses[-1] < losses[0] / 5
    assert float(told[-1][1]) > 90
