"""Whatever a machine leaves of the database's log, all that was answered before is in it."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcjob.api.kinds import CONFIG_MAP, POD
from vcjob.api.types import Key, Object
from vcjob.local.disk.database import Database
from vcjob.local.objects import Write

places = st.tuples(
    st.sampled_from([CONFIG_MAP, POD]),
    st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["x", "y", "z"])),
)
objects = st.one_of(
    st.none(),
    st.fixed_dictionaries({"data": st.text(max_size=20), "much": st.integers(0, 3)}).map(
        lambda obj: {**obj, "much": "m" * 3000 * obj["much"]}
    ),
)
transactions = st.lists(
    st.lists(st.builds(lambda place, obj: Write(*place, obj), places, objects), max_size=4),
    min_size=1,
    max_size=8,
)


@given(transactions=transactions, cut=st.floats(0, 1), garbage=st.binary(max_size=64))
@settings(deadline=None)
def test_a_log_cut_at_any_byte_holds_a_prefix_with_all_that_was_answered(
    transactions: list[list[Write]], cut: float, garbage: bytes
) -> None:
    with TemporaryDirectory() as name:
        directory = Path(name)
        path, log = directory / "objects", directory / "objects-wal"
        database = Database(path)
        states = [_content(database)]
        sizes = [log.stat().st_size]
        for version, writes in enumerate(transactions, start=1):
            database.write(version, writes)
            states.append(_content(database))
            sizes.append(log.stat().st_size)
        # Not before the tables exist: that is the state of an engine that never answered.
        end = sizes[0] + int(cut * (sizes[-1] - sizes[0]))
        left = directory / "left"
        left.mkdir()
        shutil.copyfile(path, left / "objects")
        (left / "objects-wal").write_bytes(log.read_bytes()[:end] + garbage)
        database.close()

        again = Database(left / "objects")
        found, version = _content(again), again.version
        again.close()
    assert found == states[version]
    answered = max(number for number, size in enumerate(sizes) if size <= end)
    assert version >= answered


def _content(database: Database) -> dict[tuple[str, Key], Object]:
    return {(kind.kind, key): obj for kind, key, obj in database.objects()}


@pytest.mark.parametrize("flipped", [24, 40, 200])
def test_a_frame_that_is_not_whole_ends_the_log(tmp_path: Path, flipped: int) -> None:
    database = Database(tmp_path / "objects")
    log = tmp_path / "objects-wal"
    database.write(1, [Write(POD, ("a", "x"), {"first": True})])
    whole = log.stat().st_size
    database.write(2, [Write(POD, ("a", "x"), {"first": False})])
    left = tmp_path / "left"
    left.mkdir()
    shutil.copyfile(tmp_path / "objects", left / "objects")
    content = bytearray(log.read_bytes())
    content[whole + flipped] ^= 1
    (left / "objects-wal").write_bytes(content)
    database.close()
    again = Database(left / "objects")
    assert list(_content(again).values()) == [{"first": True}]
    assert again.version == 1
    again.close()
