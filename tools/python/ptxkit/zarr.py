"""The codec "numcodecs.lz4" of Zarr 3 on this library, with the chunks of a batch in one call.

    ptxkit.zarr.register()                                  in this process; or, with the wheel installed,
    ZARR_CONFIG=settings.yaml with  codecs: {numcodecs.lz4: ptxkit.zarr.LZ4}
    zarr.config.set({"codec_pipeline.batch_size": 256})     chunks in a batch; 1 without it

Zarr cuts keys of its configuration at dots, so the name "numcodecs.lz4" can be set neither by
zarr.config.set({"codecs.numcodecs.lz4": ...}) nor by a variable ZARR_CODECS__...
"""

from __future__ import annotations

import asyncio
from typing import Any, Dict, Iterable, List

import zarr
from zarr.codecs import numcodecs as _stock
from zarr.registry import register_codec

from ptxkit import numcodecs as _numcodecs

__all__ = ["LZ4", "register"]

NAME = "numcodecs.lz4"


class LZ4(_stock.LZ4, codec_name="lz4"):  # type: ignore[misc,call-arg,unused-ignore]
    """zarr.codecs.numcodecs.LZ4: the same name, metadata and bytes."""

    def _own(self) -> _numcodecs.LZ4:
        settings: Dict[str, Any] = dict(self.codec_config)
        settings.pop("id", None)
        return _numcodecs.LZ4(**settings)

    async def encode(self, chunks_and_specs: Iterable[Any]) -> Any:
        return await self._convert(self._own().encode_batch, chunks_and_specs)

    async def decode(self, chunks_and_specs: Iterable[Any]) -> Any:
        return await self._convert(self._own().decode_batch, chunks_and_specs)

    async def _encode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        return (await self.encode([(chunk_bytes, chunk_spec)]))[0]

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        return (await self.decode([(chunk_bytes, chunk_spec)]))[0]

    def _encode_sync(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        return chunk_spec.prototype.buffer.from_bytes(self._own().encode(chunk_bytes.as_numpy_array()))

    def _decode_sync(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        return chunk_spec.prototype.buffer.from_bytes(self._own().decode(chunk_bytes.as_numpy_array()))

    async def _convert(self, function: Any, chunks_and_specs: Iterable[Any]) -> List[Any]:
        """A chunk that is None, because it is not stored, stays None."""
        pairs = list(chunks_and_specs)
        there = [i for i, (chunk, _) in enumerate(pairs) if chunk is not None]
        results: List[Any] = [None] * len(pairs)
        if there:
            done = await asyncio.to_thread(function, [pairs[i][0].as_numpy_array() for i in there])
            for i, result in zip(there, done):
                results[i] = pairs[i][1].prototype.buffer.from_bytes(result)
        return results


def register() -> None:
    """Makes this the implementation of "numcodecs.lz4" in this process."""
    register_codec(NAME, LZ4)
    zarr.config.set({"codecs": {**zarr.config.get("codecs"), NAME: f"{LZ4.__module__}.{LZ4.__qualname__}"}})
