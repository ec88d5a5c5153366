"""Ray Data compresses columns of bytes with ptxkit, a batch in one call.

usage: ray_pages.py FILE [--gpus]

FILE is cut into pages of 4 KiB. Each actor has one codec; with --gpus each has a GPU of its own, and the codec's policy
is "gpu". The result has the columns "page" and "packed"; here it is read back and compared.
"""

import argparse
import pathlib
import sys

import ray

PAGE_BYTES = 4096


class Compress:
    def __init__(self, policy):
        import ptxkit

        self.codec = ptxkit.Codec("lz4", framing="numcodecs", policy=policy)

    def __call__(self, batch):
        batch["packed"] = self.codec.encode(list(batch["page"]))
        return batch


class Check:
    def __init__(self, policy):
        import ptxkit

        self.codec = ptxkit.Codec("lz4", framing="numcodecs", policy=policy)

    def __call__(self, batch):
        pages = self.codec.decode(list(batch["packed"]))
        sizes = [len(packed) for packed in batch["packed"]]
        return {"is_same": [page == raw for page, raw in zip(pages, batch["page"])], "packed_bytes": sizes}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--gpus", action="store_true")
    options = parser.parse_args()
    raw = options.file.read_bytes()
    pages = [{"page": raw[at : at + PAGE_BYTES]} for at in range(0, len(raw), PAGE_BYTES)]
    ray.init(include_dashboard=False, num_cpus=2, log_to_driver=False)
    settings = {
        "concurrency": 1,
        "batch_size": 1024,
        "num_gpus": 1 if options.gpus else None,
        "fn_constructor_args": ["gpu" if options.gpus else "automatic"],
    }
    rows = ray.data.from_items(pages).map_batches(Compress, **settings).map_batches(Check, **settings).take_all()
    packed = sum(row["packed_bytes"] for row in rows)
    print(f"{len(rows)} pages, {len(raw)} bytes in {packed}")
    return 0 if len(rows) == len(pages) and all(row["is_same"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
