"""What the operating system refused, in its own words."""

import errno
import os


def words_of(error: OSError) -> str:
    """Why, without the address that asyncio writes before it; never empty.

    Errors of name resolution have numbers of their own, and words that stand in them.
    """
    if error.errno in errno.errorcode:
        return os.strerror(error.errno or 0)
    return error.strerror or str(error) or type(error).__name__
