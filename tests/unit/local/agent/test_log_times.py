import io
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from vcjob.local.agent.log_files import LogFiles
from vcjob.local.agent.log_times import SUFFIX, Piece, TimesReader, TimesWriter

_MS = 1_000_000


def _pieces(path: Path) -> list[Piece]:
    with open(f"{path}{SUFFIX}", "rb") as index:
        return list(TimesReader(index).pieces())


def test_each_piece_has_its_time_and_its_writer(tmp_path: Path) -> None:
    path, writer = tmp_path / "0.log", TimesWriter()
    writer.note(str(path), 0, 5 * _MS, "a")
    writer.note(str(path), 10, 7 * _MS, "a")
    writer.note(str(path), 30, 7 * _MS, "b")
    assert _pieces(path) == [
        Piece(0, 10, 5 * _MS, "a"),
        Piece(10, 30, 7 * _MS, "a"),
        Piece(30, None, 7 * _MS, "b"),
    ]


def test_what_comes_within_a_millisecond_shares_a_line(tmp_path: Path) -> None:
    path, writer = tmp_path / "0.log", TimesWriter()
    grown = [writer.note(str(path), n, _MS + n * 1000, "a") for n in range(1000)]
    assert sum(1 for size in grown if size) == 1
    assert _pieces(path) == [Piece(0, None, _MS, "a")]


@given(st.integers(0, 60))
def test_an_index_that_grows_in_any_steps_is_read_to_the_same_pieces(cut: int) -> None:
    whole = b"0 100 a\n10 200\n25 300 b\n40 400\n"
    index = io.BytesIO(whole[:cut])
    reader = TimesReader(index)
    seen = [piece for piece in reader.pieces() if piece.end is not None]
    index.write(whole[cut:])
    index.seek(min(cut, len(whole)))
    seen += reader.pieces()
    assert seen == [
        Piece(0, 10, 100, "a"),
        Piece(10, 25, 200, "a"),
        Piece(25, 40, 300, "b"),
        Piece(40, None, 400, "b"),
    ]


def test_what_a_full_disk_left_of_a_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    Path(f"{path}{SUFFIX}").write_bytes(b"0 100 a\n1\nx y\n10 200\n")
    assert _pieces(path) == [Piece(0, 10, 100, "a"), Piece(10, None, 200, "a")]


def test_an_index_goes_with_its_file(tmp_path: Path) -> None:
    files = LogFiles(
        str(tmp_path), lambda problem: None, file_limit=60, total_limit=200, clock=lambda: 7 * _MS
    )
    path = Path(files.path("ns", "pod", "main", 0))
    for text in (b"first\n" * 5, b"second\n" * 5):
        files.append(str(path), text, "uid")
    aside = Path(f"{path}.1")
    assert (aside.read_bytes()[:6], path.read_bytes()[:7]) == (b"first\n", b"second\n")
    assert _pieces(aside) == _pieces(path) == [Piece(0, None, 7 * _MS, "uid")]
    for number in range(1, 8):
        files.append(files.path("ns", "pod", "main", number), b"x" * 50, "uid")
    left = {one.name.removesuffix(SUFFIX) for one in path.parent.iterdir()}
    assert path.name not in left
    for name in left:
        assert (path.parent / name).exists()
        assert (path.parent / f"{name}{SUFFIX}").exists()
    assert sum(one.stat().st_size for one in path.parent.iterdir()) <= 200
