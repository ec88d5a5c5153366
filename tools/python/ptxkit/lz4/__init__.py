"""The interface of python-lz4 (lz4.frame, lz4.block) on this library."""

from ptxkit.lz4 import block as block
from ptxkit.lz4 import frame as frame

__all__ = ["block", "frame"]
