"""Data sets of the examples, from what Debian ships or scripts/fetch-cifar10 brought."""
import glob
import gzip
import os

import numpy
import torch
from torch.utils.data import Dataset, TensorDataset


def fashion_mnist(part="train", samples=None):
    """Debian package dataset-fashion-mnist: 60,000 images of 1 x 28 x 28 to train ("t10k": 10,000 to
    judge)."""
    folder = os.environ.get("DYNAMIX_FASHION_MNIST", "/usr/share/datasets/fashion-mnist")

    def read(name, offset):
        with gzip.open(os.path.join(folder, f"{part}-{name}-ubyte.gz")) as file:
            return torch.from_numpy(numpy.frombuffer(file.read(), numpy.uint8, offset=offset).copy())

    images = read("images-idx3", 16).view(-1, 1, 28, 28)[:samples]
    return TensorDataset((images.float() / 255 - 0.286) / 0.353, read("labels-idx1", 8).long()[:samples])


def cifar10(samples=None):
    """50,000 images of 3 x 32 x 32 in the official binary layout; random images when they are not
    there, so that the example runs anywhere."""
    folder = os.path.join(os.environ.get("DYNAMIX_DATASETS", os.path.expanduser("~/.cache/dynamix")),
                          "cifar10")
    files = sorted(glob.glob(os.path.join(folder, "**", "data_batch_*"), recursive=True))
    if not files:
        print(f"no CIFAR-10 in {folder} (scripts/fetch-cifar10 brings it): random images instead")
        count = samples or 50000
        return TensorDataset(torch.randn(count, 3, 32, 32), torch.randint(10, (count,)))
    rows = torch.from_numpy(numpy.concatenate([numpy.fromfile(file, numpy.uint8) for file in files]))
    rows = rows.view(-1, 3073)[:samples]
    return TensorDataset(rows[:, 1:].view(-1, 3, 32, 32).float() / 128 - 1, rows[:, 0].long())


class Text(Dataset):
    """Pieces of a text as bytes: `length` characters, and the same shifted by one."""

    def __init__(self, text, length):
        self.bytes = torch.tensor(list(text), dtype=torch.long)
        self.length = length

    def __len__(self):
        return (len(self.bytes) - 1) // self.length

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(index)
        piece = self.bytes[index * self.length:index * self.length + self.length + 1]
        return piece[:-1], piece[1:]


def texts(length, samples=None):
    """To train and to judge: the licences that every Debian has."""
    text = b"".join(open(name, "rb").read()
                    for name in sorted(glob.glob("/usr/share/common-licenses/*"))
                    if not os.path.islink(name))
    cut = len(text) * 9 // 10
    if samples:
        text, cut = text[:samples * length * 10 // 9 + 20 * length], samples * length
    return Text(text[:cut], length), Text(text[cut:], length)
