"""The command line: python -m ptxkit."""

from __future__ import annotations

import argparse
import sys
from typing import List, Optional


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m ptxkit",
        description="Compression on CPUs and NVIDIA GPUs, a PTX analyzer and a PTX emulator, from Python.",
        epilog="The wheel has the programs ptx-pack (compression of files) and ptx-debug (analyzer, emulator), too.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    commands.add_parser("info", help="show the versions, where the library is, what runs the work, and the codecs")
    bench = commands.add_parser(
        "bench",
        help="measure this package beside python-lz4, numcodecs and zstandard, where they are installed",
        description="Prints GB/s of raw bytes for each FILE: the best of several turns, all packages in one process.",
    )
    bench.add_argument("files", nargs="+", metavar="FILE")
    bench.add_argument("--seconds", type=float, default=0.3, help="for each figure (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.command == "info":
        return info()
    if not 0 < options.seconds < 1e6:
        bench.error(f"argument --seconds: expected more than 0, found {options.seconds}")
    from ptxkit import _bench

    return _bench.main(options.files, options.seconds)


def info() -> int:
    import ptxkit
    from ptxkit import _c

    print(f"ptxkit {ptxkit.__version__}, Python {sys.version.split()[0]}")
    print(f"library {ptxkit.library_version()}: {_c.lib()._name}")
    print(f"runs on: {ptxkit.Codec('lz4').describe()}")
    for codec in ptxkit.codecs():
        levels = f"{codec.levels[0]} to {codec.levels[-1]}" if len(codec.levels) > 1 else str(codec.levels[0])
        print(f"codec {codec.name}: levels {levels}, framings {', '.join(codec.framings)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
