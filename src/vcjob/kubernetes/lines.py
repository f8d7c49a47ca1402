"""Lines out of a stream that comes in pieces: watch events, logs."""

from collections.abc import AsyncIterator


async def lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Lines without their newline, however long; the last one may have had none."""
    begun: list[bytes] = []
    async for piece in pieces:
        first, *rest = piece.split(b"\n")
        begun.append(first)
        for line in rest:
            yield b"".join(begun)
            begun = [line]
    if last := b"".join(begun):
        yield last
