"""The codecs "zstd", "gzip" and "numcodecs.lz4" of Zarr 3 on this library, with the chunks of a batch in one call.

    ptxkit.zarr.register()                                  in this process; or, with the wheel installed,
    ZARR_CODECS__ZSTD=ptxkit.zarr.ZstdCodec                 and ZARR_CODECS__GZIP=ptxkit.zarr.GzipCodec; or
    ZARR_CONFIG=settings.yaml with  codecs: {numcodecs.lz4: ptxkit.zarr.LZ4}
    zarr.config.set({"codec_pipeline.batch_size": 256})     chunks in a batch; 1 without it

Zarr cuts keys of its configuration at dots, so the name "numcodecs.lz4" can be set neither by
zarr.config.set({"codecs.numcodecs.lz4": ...}) nor by a variable ZARR_CODECS__...
"""

from __future__ import annotations

import asyncio
from typing import Any, Dict, Iterable, List

import zarr
from zarr.codecs import GzipCodec as _GzipCodec
from zarr.codecs import ZstdCodec as _ZstdCodec
from zarr.codecs import numcodecs as _stock
from zarr.registry import register_codec

from ptxkit import numcodecs as _numcodecs

__all__ = ["GzipCodec", "LZ4", "ZstdCodec", "register"]


class _Batched:
    """Codes the chunks that a pipeline gives in one call, by a codec of ptxkit.numcodecs."""

    def _own(self) -> Any:
        raise NotImplementedError

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


class LZ4(_Batched, _stock.LZ4, codec_name="lz4"):  # type: ignore[misc,call-arg,unused-ignore]
    """zarr.codecs.numcodecs.LZ4: the same name, metadata and bytes."""

    def _own(self) -> _numcodecs.LZ4:
        settings: Dict[str, Any] = dict(self.codec_config)
        settings.pop("id", None)
        return _numcodecs.LZ4(**settings)


class ZstdCodec(_Batched, _ZstdCodec):  # type: ignore[misc,unused-ignore]
    """zarr.codecs.ZstdCodec: the same name and metadata, and bytes that it reads."""

    def _own(self) -> _numcodecs.Zstd:
        return _numcodecs.Zstd(self.level, self.checksum)


class GzipCodec(_Batched, _GzipCodec):  # type: ignore[misc,unused-ignore]
    """zarr.codecs.GzipCodec: the same name and metadata, and bytes that it reads."""

    def _own(self) -> _numcodecs.GZip:
        return _numcodecs.GZip(self.level)


_CODECS = {"numcodecs.lz4": LZ4, "zstd": ZstdCodec, "gzip": GzipCodec}


def register() -> None:
    """Makes these the implementations of "numcodecs.lz4", "zstd" and "gzip" in this process."""
    for name, codec in _CODECS.items():
        register_codec(name, codec)
    own = {name: f"{codec.__module__}.{codec.__qualname__}" for name, codec in _CODECS.items()}
    zarr.config.set({"codecs": {**zarr.config.get("codecs"), **own}})
