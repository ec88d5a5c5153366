"""numcodecs, Zarr, Dask, HDF5 and Arrow: what ptxkit writes the stock packages read, and the reverse."""

import io
import json
import pickle

import h5py
import hdf5plugin
import lz4.block
import numcodecs
import numpy as np
import ptxkit
import ptxkit.numcodecs
import pyarrow
import pytest
from conftest import array_of, noise

STOCK = numcodecs.LZ4
OURS = ptxkit.numcodecs.LZ4


@pytest.fixture
def registered():
    ptxkit.numcodecs.register()
    yield
    numcodecs.register_codec(STOCK, "lz4")


def test_numcodecs_both_ways(dtype, size):
    values = array_of(dtype, size)
    if size:  # numcodecs.LZ4 encodes nothing, and refuses to decode that
        assert bytes(STOCK().decode(OURS().encode(values))) == values.tobytes()
    assert OURS().decode(STOCK().encode(values)) == values.tobytes()
    out = np.empty_like(values)
    assert OURS().decode(OURS().encode(values), out) is out and (out == values).all()


def test_numcodecs_configuration(registered):
    assert OURS().get_config() == STOCK().get_config() == {"id": "lz4", "acceleration": 1}
    assert repr(OURS()) == repr(STOCK()) and OURS() == OURS() and OURS.max_buffer_size == STOCK.max_buffer_size
    codec = numcodecs.get_codec({"id": "lz4", "acceleration": 1})
    assert type(codec) is OURS and pickle.loads(pickle.dumps(codec)) == codec
    fast = numcodecs.get_codec({"id": "lz4", "acceleration": 5})
    assert fast.decode(STOCK(5).encode(b"a" * 100)) == b"a" * 100
    with pytest.raises(ptxkit.UnsupportedError, match="acceleration is 5"):
        fast.encode(b"x")


@pytest.mark.parametrize(
    "stored, out", [(b"", None), (b"\5\0\0\0zz", None), (STOCK().encode(b"a" * 300), bytearray(10))]
)
def test_numcodecs_errors(stored, out):
    for codec in (STOCK(), OURS()):
        with pytest.raises((ValueError, RuntimeError)):
            codec.decode(stored, out)


def test_fortran_order():
    values = np.asfortranarray(np.arange(600).reshape(20, 30))
    assert OURS().encode(values) == OURS().encode(values.tobytes("A")) and bytes(
        STOCK().decode(OURS().encode(values))
    ) == values.tobytes("A")


zarr = pytest.importorskip("zarr")
pytestmark = pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")


def fill(path, values, batch_size=1, **arguments):
    with zarr.config.set({"codec_pipeline.batch_size": batch_size}):
        made = zarr.create_array(
            str(path), shape=values.shape, chunks=(100, 100), dtype=values.dtype, fill_value=0, **arguments
        )
        made[:] = values
    return made


def zarr_3(path, values, batch_size=1):
    return fill(path, values, batch_size, compressors=[ptxkit.zarr.LZ4()])


@pytest.fixture
def counted(monkeypatch):
    """The sizes of the batches that go through ptxkit."""
    seen = []
    for name in ("encode_batch", "decode_batch"):
        original = getattr(OURS, name)
        monkeypatch.setattr(
            OURS, name, lambda self, items, original=original: (seen.append(len(items)), original(self, items))[1]
        )
    return seen


@pytest.fixture
def zarr_registered():
    with zarr.config.set({}):
        before = zarr.config.get("codecs")
        ptxkit.zarr.register()
        yield
        zarr.config.set({"codecs": before})


def test_zarr_3_written_by_ptxkit(tmp_path, counted, zarr_registered, request):
    values = np.arange(250_000, dtype="i4").reshape(500, 500)
    values[:100, :100] = 0  # a chunk that is not stored
    zarr_3(tmp_path / "ours", values, batch_size=100)
    assert counted == [24]
    metadata = json.loads((tmp_path / "ours" / "zarr.json").read_text())
    assert metadata["codecs"][-1] == {"name": "numcodecs.lz4", "configuration": {}}
    with zarr.config.set({"codec_pipeline.batch_size": 100}):
        opened = zarr.open_array(tmp_path / "ours", mode="r")
        assert type(opened.compressors[0]) is ptxkit.zarr.LZ4 and (opened[:] == values).all()
    assert counted == [24, 24]
    chunk = (tmp_path / "ours" / "c" / "1" / "1").read_bytes()
    assert bytes(STOCK().decode(chunk)) == lz4.block.decompress(chunk) == values[100:200, 100:200].tobytes()


def test_zarr_3_without_a_batch():
    """What a pipeline calls that works on one chunk at a time."""
    from types import SimpleNamespace

    from zarr.core.buffer import default_buffer_prototype

    codec, spec = ptxkit.zarr.LZ4(), SimpleNamespace(prototype=default_buffer_prototype())
    chunk = spec.prototype.buffer.from_bytes(b"abc" * 1000)
    stored = codec._encode_sync(chunk, spec)
    assert bytes(STOCK().decode(stored.to_bytes())) == b"abc" * 1000
    assert codec._decode_sync(stored, spec).to_bytes() == b"abc" * 1000


def test_zarr_3_read_by_the_other(tmp_path, python):
    """Each in a process of its own: the configuration decides."""
    write = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "import numpy as np, zarr, ptxkit.zarr; register = {register}\n"
        "if register: ptxkit.zarr.register()\n"
        "a = zarr.create_array({path!r}, shape=(300, 300), chunks=(100, 100), dtype='f8', compressors=[{codec}()])\n"
        "a[:] = np.arange(90000.).reshape(300, 300)"
    )
    read = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "import numpy as np, zarr, ptxkit.zarr; register = {register}\n"
        "if register: ptxkit.zarr.register()\n"
        "a = zarr.open_array({path!r}, mode='r'); print(type(a.compressors[0]).__module__, "
        "(a[:] == np.arange(90000.).reshape(300, 300)).all())"
    )
    path = str(tmp_path / "ours")
    python(write.format(register=True, path=path, codec="ptxkit.zarr.LZ4"))
    assert python(read.format(register=False, path=path)) == "zarr.codecs.numcodecs._codecs True\n"
    path = str(tmp_path / "stock")
    python(write.format(register=False, path=path, codec="zarr.codecs.numcodecs.LZ4"))
    assert python(read.format(register=True, path=path)) == "ptxkit.zarr True\n"


def test_zarr_by_its_settings_alone(tmp_path, python):
    """As with the wheel installed: its entry point, and a file that $ZARR_CONFIG names."""
    (tmp_path / "ptxkit-0.dist-info").mkdir()
    (tmp_path / "ptxkit-0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: ptxkit\nVersion: 0\n")
    (tmp_path / "ptxkit-0.dist-info" / "entry_points.txt").write_text(
        "[zarr.codecs]\nnumcodecs.lz4 = ptxkit.zarr:LZ4\n"
    )
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "zarr.yaml").write_text("codecs:\n  numcodecs.lz4: ptxkit.zarr.LZ4\n")
    import os

    path = os.pathsep.join([os.environ["PYTHONPATH"], str(tmp_path)])
    program = "from zarr.registry import get_codec_class; print(get_codec_class('numcodecs.lz4'))"
    assert python(program, PYTHONPATH=path, ZARR_CONFIG=str(tmp_path / "settings")) == "<class 'ptxkit.zarr.LZ4'>\n"
    assert "ptxkit" not in python(program, PYTHONPATH=path)


def test_zarr_2(tmp_path, registered):
    values = np.arange(250_000, dtype="f4").reshape(500, 500)
    made = fill(tmp_path / "ours", values, zarr_format=2, compressors=OURS())
    numcodecs.register_codec(STOCK, "lz4")
    opened = zarr.open_array(tmp_path / "ours", mode="r")
    assert type(opened.compressors[0]) is STOCK and (opened[:] == values).all()
    fill(tmp_path / "stock", values, zarr_format=2, compressors=STOCK())
    ptxkit.numcodecs.register()
    opened = zarr.open_array(tmp_path / "stock", mode="r")
    assert type(opened.compressors[0]) is OURS and (opened[:] == values).all() and made.shape == (500, 500)


def test_damaged_chunks_of_zarr(tmp_path, zarr_registered):
    zarr_3(tmp_path / "a", np.arange(40_000).reshape(200, 200) + 1)
    chunk = tmp_path / "a" / "c" / "0" / "1"
    chunk.write_bytes(chunk.read_bytes()[:-5])
    with pytest.raises(ptxkit.CorruptInputError):
        zarr.open_array(tmp_path / "a")[:]


def register_in_worker():
    import warnings

    import ptxkit.numcodecs
    import ptxkit.zarr

    warnings.simplefilter("ignore")
    ptxkit.numcodecs.register()
    ptxkit.zarr.register()


def square(block):
    return block * block


def test_dask(tmp_path, python):
    """Two worker processes read stock chunks, and write chunks that the stock codec reads."""
    pytest.importorskip("distributed")
    program = f"""
import sys; sys.path.insert(0, {str(__file__.rsplit('/', 1)[0])!r})
import warnings; warnings.simplefilter("ignore")
import dask.array, distributed, numpy as np, zarr
from test_arrays import register_in_worker, square
from zarr.codecs import numcodecs
def main():
    values = np.arange(1_000_000, dtype="i8").reshape(1000, 1000)
    like = dict(shape=values.shape, chunks=(250, 250), dtype="i8", compressors=[numcodecs.LZ4()])
    a = zarr.create_array({str(tmp_path / 'a')!r}, **like)
    a[:] = values
    b = zarr.create_array({str(tmp_path / 'b')!r}, **like)
    settings = dict(n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None)
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        client.run(register_in_worker)
        used = client.run(lambda: type(zarr.open_array({str(tmp_path / 'a')!r}).compressors[0]).__module__)
        dask.array.store(dask.array.from_zarr({str(tmp_path / 'a')!r}).map_blocks(square), b, lock=False)
    print(sorted(used.values()), (zarr.open_array({str(tmp_path / 'b')!r})[:] == values * values).all())
if __name__ == "__main__":
    main()
"""
    assert python(program).splitlines()[-1] == "['ptxkit.zarr', 'ptxkit.zarr'] True"


@pytest.mark.parametrize("size", [1, 1000, 1_200_000])
def test_hdf5_both_ways(size):
    values = array_of("<i8", size)
    codec = ptxkit.Codec("lz4", framing="hdf5")
    with h5py.File(io.BytesIO(), "w") as file:
        ours = file.create_dataset(
            "ours", shape=values.shape, dtype=values.dtype, chunks=values.shape, **hdf5plugin.LZ4()
        )
        ours.id.write_direct_chunk((0,), codec.encode(values))
        assert (ours[...] == values).all()
        stock = file.create_dataset("stock", data=values, chunks=values.shape, **hdf5plugin.LZ4())
        file.flush()
        assert codec.decode(stock.id.read_direct_chunk((0,))[1]) == values.tobytes()


@pytest.mark.parametrize("data", [b"x", b"abc" * 1000, noise(300_000), b"\0" * 5_000_000])
def test_arrow_both_ways(data):
    for framing, name in (("frame", "lz4"), ("raw", "lz4_raw")):
        codec = ptxkit.Codec("lz4", framing=framing)
        assert pyarrow.decompress(codec.encode(data), len(data), codec=name).to_pybytes() == data
        assert codec.decode(pyarrow.compress(data, codec=name), sizes=len(data)) == data
    buffers = [pyarrow.py_buffer(data), pyarrow.array([1, 2, 3]).buffers()[1]]
    assert ptxkit.Codec().decode(ptxkit.Codec().encode(buffers)) == [bytes(each) for each in buffers]
