"""Train a classifier of handwritten digits with PyTorch's DistributedDataParallel over gloo.

Every pod runs this program. The pytorch plugin tells each where the master is, how many pods
there are and which one it is (MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK); nothing else is needed.
"""

import os
import sys
from datetime import timedelta
from pathlib import Path

import numpy
import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

DATA = Path(os.environ.get("DATA", "/data/digits.csv.gz"))
EPOCHS = 8
BATCH = 16
HELD_OUT = 5  # every fifth sample is for testing


def load() -> tuple[TensorDataset, TensorDataset]:
    """The digits (8 x 8 pixels from 0 to 16, then the digit), for training and for testing."""
    table = numpy.loadtxt(DATA, delimiter=",", dtype=numpy.float32)
    pixels = torch.from_numpy(table[:, :64] / 16)
    digits = torch.from_numpy(table[:, 64]).long()
    held_out = torch.arange(len(digits)) % HELD_OUT == 0
    training = TensorDataset(pixels[~held_out], digits[~held_out])
    return training, TensorDataset(pixels[held_out], digits[held_out])


def total(*values: float) -> list[float]:
    """The sums of values over all pods."""
    summed = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(summed)
    return list(summed.tolist())


def right(model: nn.Module, samples: TensorDataset) -> int:
    """How many of the samples that fall to this pod the model gets right."""
    pixels, digits = (part[dist.get_rank() :: dist.get_world_size()] for part in samples.tensors)
    with torch.no_grad():
        return int((model(pixels).argmax(1) == digits).sum())


def train() -> None:
    rank, world = dist.get_rank(), dist.get_world_size()
    training, testing = load()
    sampler: DistributedSampler[tuple[Tensor, ...]] = DistributedSampler(training)
    loader = DataLoader(training, batch_size=BATCH, sampler=sampler)
    print(f"rank {rank} of {world}: {len(sampler)} of {len(training)} samples", flush=True)

    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    loss_of = nn.CrossEntropyLoss()
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        model.train()
        loss_sum = 0.0
        for pixels, digits in loader:
            optimizer.zero_grad()
            loss = loss_of(model(pixels), digits)
            loss.backward()  # the gradients of all pods are averaged here
            optimizer.step()
            loss_sum += loss.item()
        model.eval()
        losses, batches, correct = total(loss_sum, len(loader), right(model, testing))
        if rank == 0:
            accuracy = correct / len(testing)
            print(
                f"epoch {epoch}  loss {losses / batches:.3f}  accuracy {accuracy:.1%}", flush=True
            )
    if rank == 0:
        print(f"finished: {correct:.0f} of {len(testing)} held-out digits right", flush=True)


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", timeout=timedelta(minutes=2))
    train()
    dist.barrier()  # nobody leaves while others still work
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    # PyTorch keeps threads of the group until the interpreter ends. One that works then can abort
    # the process ("terminate called without an active exception"), and a pod that is done fails.
    sys.stdout.flush()
    os._exit(0)
