"""A PyTorch checkpoint whose entries are compressed: an extension of torch.distributed.checkpoint.

usage: torch_checkpoint.py [--mib N] [--device cuda|cpu]

FileSystemWriter passes each entry, a tensor as torch.save() writes it, through the extensions in `_extensions=`, and
FileSystemReader finds them in the metadata (PyTorch calls both experimental). Here an entry becomes a file of LZ4
frames, which every reader of LZ4 takes. Prints GB/s beside a checkpoint that is not compressed, and one through zstd on
all threads where zstandard is installed, and compares all tensors.
"""

import argparse
import io
import pathlib
import sys
import tempfile
import time

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint._extension import ExtensionRegistry, StreamTransformExtension

import ptxkit


class Lz4(StreamTransformExtension):
    """Blocks of an entry are compressed on all threads, or on a GPU, as ptxkit's policy finds it faster."""

    @staticmethod
    def from_descriptor(version):
        return Lz4()

    @staticmethod
    def registry_name():
        return "ptxkit.lz4"

    def get_descriptor(self):
        return f"{self.registry_name()}/1"

    def transform_to(self, output):
        return ptxkit.open(output, "wb", codec="lz4")

    def transform_from(self, input):
        return io.BytesIO(ptxkit.open(input).read())  # torch.load() jumps to and fro


class Zstd(Lz4):
    """The same with zstandard, on all threads."""

    @staticmethod
    def from_descriptor(version):
        return Zstd()

    @staticmethod
    def registry_name():
        return "zstd.all_threads"

    def transform_to(self, output):
        import zstandard

        return zstandard.ZstdCompressor(level=1, threads=-1).stream_writer(output, closefd=False)

    def transform_from(self, input):
        import zstandard

        return io.BytesIO(zstandard.ZstdDecompressor().stream_reader(input).read())


def model_state(mib, device):
    """Weights as they are after training in bfloat16, and an optimizer's state, of which much is zero."""
    torch.manual_seed(0)
    rows = max(1, mib * (1 << 20) // 2 // 4096 // 2)
    weights = {f"layer{i}.weight": torch.randn(rows // 4 + 1, 4096, device=device).to(torch.bfloat16) for i in range(4)}
    moments = {
        f"layer{i}.moment": torch.zeros(rows // 4 + 1, 4096, device=device, dtype=torch.bfloat16) for i in range(4)
    }
    for moment in moments.values():
        moment[::8] = torch.randn(4096, device=device).to(torch.bfloat16)
    return {**weights, **moments}


def stored_bytes(folder):
    return sum(path.stat().st_size for path in pathlib.Path(folder).iterdir())


def try_one(name, state, extensions):
    raw_bytes = sum(tensor.nbytes for tensor in state.values())
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        dcp.save(state, storage_writer=FileSystemWriter(folder, _extensions=extensions))
        written = time.perf_counter()
        target = {key: torch.empty_like(tensor) for key, tensor in state.items()}
        begin_read = time.perf_counter()
        dcp.load(target, storage_reader=FileSystemReader(folder, _extension_registry=registry()))
        end = time.perf_counter()
        ratio = raw_bytes / stored_bytes(folder)
    same = all(torch.equal(tensor, target[key]) for key, tensor in state.items())
    there, back = raw_bytes / (written - begin) / 1e9, raw_bytes / (end - begin_read) / 1e9
    found = "the same" if same else "DIFFERENT"
    print(f"{name:<24} {there:6.2f} GB/s to files, {back:6.2f} GB/s back, ratio {ratio:.3f}, {found}")
    return same


def registry():
    made = ExtensionRegistry()
    made.extensions.update({cls.registry_name(): cls for cls in (Lz4, Zstd)})
    return made


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    state = model_state(options.mib, options.device)
    ways = [("not compressed", []), ("ptxkit LZ4", [Lz4()])]
    try:
        import zstandard  # noqa: F401

        ways.append(("zstd -1, all threads", [Zstd()]))
    except ImportError:
        pass
    return 0 if all([try_one(name, state, extensions) for name, extensions in ways]) else 1


if __name__ == "__main__":
    sys.exit(main())
