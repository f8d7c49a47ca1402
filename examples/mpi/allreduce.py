"""A sum over all processes with MPI_Allreduce, from Python's standard library and Open MPI.

Open MPI's handles are addresses of objects in its library (mpi.h); the rest are plain C calls.
Every process checks the sum; one that is wrong ends the job.
"""

import ctypes
import ctypes.util
import os
import socket
import sys

MILLION = 1_000_000


def load_open_mpi() -> ctypes.CDLL:
    """Open MPI's library, wherever this machine has it."""
    name = ctypes.util.find_library("mpi") or "libmpi.so.40"
    return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)


def main() -> int:
    mpi = load_open_mpi()

    def handle(name: str) -> ctypes.c_void_p:
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))

    world = handle("ompi_mpi_comm_world")
    mpi.MPI_Init(None, None)
    rank, size = ctypes.c_int(), ctypes.c_int()
    mpi.MPI_Comm_rank(world, ctypes.byref(rank))
    mpi.MPI_Comm_size(world, ctypes.byref(size))
    mine = (ctypes.c_double * MILLION)(*([rank.value + 1.0] * MILLION))
    total = (ctypes.c_double * MILLION)()
    mpi.MPI_Allreduce(
        mine, total, MILLION, handle("ompi_mpi_double"), handle("ompi_mpi_op_sum"), world
    )
    expected = size.value * (size.value + 1) / 2
    is_right = all(value == expected for value in total)
    print(
        f"rank {rank.value} of {size.value} on {socket.gethostname()}: "
        f"{MILLION} sums are {total[0]:.0f}, {'right' if is_right else 'WRONG'}",
        flush=True,
    )
    if not is_right:
        mpi.MPI_Abort(world, 1)
    mpi.MPI_Finalize()
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # what MPI has loaded need not be torn down in Python's order
