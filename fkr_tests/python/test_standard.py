"""Zstandard and gzip: ptxkit.zstd, ptxkit.gzip, Codec, numcodecs, Zarr, HDF5 and Arrow beside the stock packages: each
reads what the other writes, with the same kinds of errors."""

import gzip
import inspect
import io
import json
import pickle
import zlib

import h5py
import hdf5plugin
import numcodecs
import numpy as np
import ptxkit
import ptxkit.gzip
import ptxkit.numcodecs
import ptxkit.zstd
import pyarrow
import pytest
import zstandard
from conftest import array_of, noise

ZSTD, GZIP = ptxkit.zstd, ptxkit.gzip
TEXT = b"the quick brown fox " * 5000


def test_zstd_both_ways(size):
    data = array_of("<i4", size).tobytes()
    for level in (None, -5, 0, 1, 3, 19):
        frame = ZSTD.compress(data, level)
        assert zstandard.ZstdDecompressor().decompress(frame) == data and ZSTD.decompress(frame) == data
        assert ZSTD.get_frame_info(frame) == (len(data), 0) and ZSTD.get_frame_size(frame) == len(frame)
    for options in ({"write_checksum": True}, {"write_content_size": False}, {"level": 9}):
        frame = zstandard.ZstdCompressor(**options).compress(data)
        assert ZSTD.decompress(frame) == data and ZSTD.decompress(frame + frame) == data + data
        info = zstandard.get_frame_parameters(frame)
        known = None if info.content_size == zstandard.CONTENTSIZE_UNKNOWN else info.content_size
        assert ZSTD.get_frame_info(frame) == (known, info.dict_id) and ZSTD.get_frame_size(frame + b"x") == len(frame)


def test_zstd_options():
    parameter = ZSTD.CompressionParameter
    plain = ZSTD.compress(TEXT)
    checked = ZSTD.compress(TEXT, options={parameter.checksum_flag: 1})
    assert len(checked) == len(plain) + 4 and ZSTD.decompress(checked) == TEXT
    unsized = ZSTD.compress(TEXT, options={parameter.content_size_flag: 0})
    assert ZSTD.get_frame_info(unsized).decompressed_size is None and ZSTD.decompress(unsized) == TEXT
    assert ZSTD.compress(TEXT, options={parameter.compression_level: 12}) == ZSTD.compress(TEXT, 12)
    with pytest.raises(TypeError, match="Only one of level or options"):
        ZSTD.compress(TEXT, 3, {parameter.checksum_flag: 1})
    with pytest.raises(ValueError, match="level is 23"):
        ZSTD.compress(TEXT, 23)
    with pytest.raises(ValueError, match="checksum_flag is 2"):
        ZSTD.compress(TEXT, options={parameter.checksum_flag: 2})
    with pytest.raises(ptxkit.UnsupportedError, match="the parameter 101"):
        ZSTD.compress(TEXT, options={101: 20})
    with pytest.raises(ptxkit.UnsupportedError, match="dictionaries"):
        ZSTD.decompress(plain, zstd_dict=b"x")


def test_zstd_errors():
    frame = ZSTD.compress(TEXT, options={201: 1})
    wrong_checksum = frame[:-1] + bytes([frame[-1] ^ 1])
    for bad in (b"", b"abc", frame[:-1], frame[:10], frame + b"junk", wrong_checksum, gzip.compress(TEXT)):
        with pytest.raises(ZSTD.ZstdError) as caught:
            ZSTD.decompress(bad)
        assert isinstance(caught.value, ptxkit.DataError)
    for bad in (b"", frame[:5], frame[:-1]):
        with pytest.raises(ZSTD.ZstdError):
            ZSTD.get_frame_size(bad)
    bomb = b"\x28\xb5\x2f\xfd\xe0" + (2**40).to_bytes(8, "little") + b"\x01\x00\x00"  # a terabyte, it says
    with pytest.raises(ZSTD.ZstdError):
        ZSTD.decompress(bomb)


def test_zstd_files(tmp_path):
    path = tmp_path / "a.zst"
    with ZSTD.open(path, "wt", level=5) as file:
        print("a line", file=file)
    with ZSTD.open(path, "ab") as file:
        file.write(TEXT)
    with ZSTD.open(path) as file:
        assert file.read() == b"a line\n" + TEXT
        file.seek(7)
        assert file.read(5) == TEXT[:5]
    reader = zstandard.ZstdDecompressor().stream_reader(path.read_bytes(), read_across_frames=True)
    assert reader.read() == b"a line\n" + TEXT
    stored = io.BytesIO()
    with ZSTD.ZstdFile(stored, "w", options={201: 1}) as file:
        file.write(TEXT)
    assert zstandard.ZstdDecompressor().stream_reader(stored.getvalue()).read() == TEXT
    with ptxkit.open(path) as file:
        assert file.read(6) == b"a line"
    with pytest.raises(TypeError):
        ZSTD.open(path, "rb", level=3)


def test_gzip_both_ways(size):
    data = array_of("<i4", size).tobytes()
    for level in (1, 6, 9):
        member = GZIP.compress(data, level)
        assert gzip.decompress(member) == zlib.decompress(member, 31) == GZIP.decompress(member) == data
        theirs = gzip.compress(data, level)
        assert GZIP.decompress(theirs) == data and GZIP.decompress(theirs + member + b"\0" * 100) == data + data
    assert GZIP.compress(data, mtime=5)[4:8] == gzip.compress(data, mtime=5)[4:8] == b"\5\0\0\0"
    assert gzip.decompress(GZIP.compress(data, mtime=None)) == data


def test_gzip_errors():
    member = gzip.compress(TEXT)
    assert GZIP.decompress(b"") == gzip.decompress(b"") == b""
    damaged = member[:20] + b"\xff\xff\xff" + member[23:]
    for bad in (b"abc", member[:-1] + b"\xff", damaged, member + b"junk", ZSTD.compress(TEXT)):
        for module in (gzip, GZIP):
            with pytest.raises((gzip.BadGzipFile, zlib.error) if module is gzip else gzip.BadGzipFile):
                module.decompress(bad)
    for bad in (member[:-1], member[:5], member[:200]):
        for module in (gzip, GZIP):
            with pytest.raises(EOFError):
                module.decompress(bad)
    with pytest.raises(ptxkit.UnsupportedError, match="compresslevel is 0"):
        GZIP.compress(b"", 0)
    with pytest.raises(ValueError):
        GZIP.compress(b"", 10)


def test_gzip_files(tmp_path):
    path = tmp_path / "a.gz"
    with GZIP.open(path, "wt", 3) as file:
        print("a line", file=file)
    with GZIP.open(path, "ab") as file:
        file.write(TEXT)
    for module in (gzip, GZIP):
        with module.open(path) as file:
            assert file.read() == b"a line\n" + TEXT
            file.seek(7)
            assert file.read(5) == TEXT[:5]
    stored = io.BytesIO()
    with GZIP.GzipFile(fileobj=stored, mode="wb") as file:
        file.write(TEXT)
    assert gzip.decompress(stored.getvalue()) == TEXT
    for name in ("compress", "decompress", "open"):
        ours, theirs = (inspect.signature(getattr(module, name)).parameters for module in (GZIP, gzip))
        assert list(ours) == list(theirs)


@pytest.mark.parametrize("name", ["zstd", "gzip", "zlib", "deflate"])
def test_codec(name, size):
    codec = ptxkit.Codec(name, framing="raw" if name == "deflate" else "frame")
    items = [array_of("<i4", size).tobytes(), noise(size), b""]
    stored = codec.encode(items)
    assert codec.decode(stored, sizes=[len(item) for item in items]) == items
    read = {
        "zstd": lambda item: zstandard.ZstdDecompressor().decompress(item),
        "gzip": gzip.decompress,
        "zlib": zlib.decompress,
        "deflate": lambda item: zlib.decompress(item, -15),
    }[name]
    assert [read(item) for item in stored] == items
    if name in ("zstd", "gzip"):
        assert codec.decode(stored) == items
    with pytest.raises(ptxkit.InvalidValueError, match="no level 99"):
        ptxkit.Codec(name, level=99, framing="raw" if name == "deflate" else "frame")


CODECS = [
    ("Zstd", {"level": 1}),
    ("Zstd", {"level": 9, "checksum": True}),
    ("GZip", {"level": 1}),
    ("GZip", {"level": 6}),
]


@pytest.mark.parametrize("name, settings", CODECS)
def test_numcodecs_both_ways(name, settings, dtype, size):
    stock, ours = getattr(numcodecs, name)(**settings), getattr(ptxkit.numcodecs, name)(**settings)
    values = array_of(dtype, size)
    theirs = stock.encode(values)
    if size or name != "Zstd":  # numcodecs.Zstd refuses to decode a frame without content
        assert bytes(stock.decode(ours.encode(values))) == values.tobytes()
    assert ours.decode(theirs) == values.tobytes()
    assert ours.get_config() == stock.get_config() and pickle.loads(pickle.dumps(ours)) == ours
    if size:
        out = np.empty_like(values)
        assert ours.decode(theirs, out) is out and (out == values).all()
        with pytest.raises((RuntimeError, ValueError)):
            ours.decode(theirs, np.empty(values.nbytes + 1, "u1"))
    with pytest.raises((RuntimeError, ValueError)):
        ours.decode(b"\1\2\3\4\5\6\7\x08")


zarr = pytest.importorskip("zarr")


@pytest.fixture
def zarr_registered():
    with zarr.config.set({}):
        before = zarr.config.get("codecs")
        import ptxkit.zarr

        ptxkit.zarr.register()
        yield
        zarr.config.set({"codecs": before})


@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")
@pytest.mark.parametrize(
    "name, configuration",
    [("zstd", {"level": 0, "checksum": False}), ("zstd", {"level": 3, "checksum": True}), ("gzip", {"level": 5})],
)
def test_zarr_3(name, configuration, tmp_path, zarr_registered):
    stock = {"zstd": zarr.codecs.ZstdCodec, "gzip": zarr.codecs.GzipCodec}[name](**configuration)
    ours = {"zstd": ptxkit.zarr.ZstdCodec, "gzip": ptxkit.zarr.GzipCodec}[name](**configuration)
    values = np.arange(250_000, dtype="i4").reshape(500, 500)
    like = {"shape": values.shape, "chunks": (100, 100), "dtype": "i4", "fill_value": 0}
    for folder, codec in (("ours", ours), ("theirs", stock)):
        with zarr.config.set({"codec_pipeline.batch_size": 10}):
            zarr.create_array(str(tmp_path / folder), compressors=[codec], **like)[:] = values
            opened = zarr.open_array(tmp_path / folder, mode="r")
            assert type(opened.compressors[0]) is type(ours) and (opened[:] == values).all()
        metadata = json.loads((tmp_path / folder / "zarr.json").read_text())
        assert metadata["codecs"][-1] == {"name": name, "configuration": configuration}
    chunk = (tmp_path / "ours" / "c" / "1" / "1").read_bytes()
    read = zstandard.ZstdDecompressor().decompress if name == "zstd" else gzip.decompress
    assert read(chunk) == values[100:200, 100:200].tobytes()


def test_hdf5(tmp_path):
    values = np.arange(100_000, dtype="<i4")
    zlib_codec, zstd_codec = ptxkit.Codec("zlib"), ptxkit.Codec("zstd")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        filters = (("deflate", zlib_codec, {"compression": "gzip"}), ("zstd", zstd_codec, dict(hdf5plugin.Zstd())))
        for name, codec, arguments in filters:
            made = file.create_dataset(name, values.shape, values.dtype, chunks=(50_000,), **arguments)
            for begin in (0, 50_000):
                made.id.write_direct_chunk((begin,), codec.encode(values[begin : begin + 50_000]))
    with h5py.File(tmp_path / "a.h5") as file:
        assert (file["deflate"][:] == values).all() and (file["zstd"][:] == values).all()
        chunks = [file[name].id.read_direct_chunk((0,))[1] for name in ("deflate", "zstd")]
        assert zlib_codec.decode(chunks[0], sizes=200_000) == values[:50_000].tobytes()
        assert zstd_codec.decode(chunks[1]) == values[:50_000].tobytes()


@pytest.mark.parametrize("name", ["zstd", "gzip"])
def test_arrow(name, size):
    data = array_of("<i4", size).tobytes()
    stored = ptxkit.Codec(name).encode(data)
    arrow = pyarrow.Codec(name)
    assert arrow.decompress(stored, len(data)).to_pybytes() == data if data else True
    assert ptxkit.Codec(name).decode(arrow.compress(data).to_pybytes()) == data
    with pyarrow.CompressedInputStream(pyarrow.BufferReader(stored), name) as stream:
        assert stream.read() == data
