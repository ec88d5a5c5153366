"""Round trips over generated inputs: of every codec and framing, of frames in any pieces, of files."""

import io

import lz4.frame
import ptxkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FRAME = ptxkit.lz4.frame
CODECS = {
    (info.name, framing): ptxkit.Codec(info.name, framing=framing)
    for info in ptxkit.codecs()
    for framing in info.framings
}
# Runs, repeats and noise, so that there are matches, long ones too, and bytes that do not shrink.
PARTS = st.one_of(
    st.binary(max_size=300),
    st.builds(lambda unit, count: unit * count, st.binary(min_size=1, max_size=9), st.integers(0, 9000)),
)
DATA = st.lists(PARTS, max_size=6).map(b"".join)
AS = st.sampled_from([bytes, bytearray, memoryview])
SETTINGS = st.fixed_dictionaries(
    {
        "block_size": st.sampled_from([0, 4, 5, 7]),
        "block_linked": st.booleans(),
        "content_checksum": st.booleans(),
        "block_checksum": st.booleans(),
    }
)
quiet = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@quiet
@given(st.sampled_from(sorted(CODECS)), st.lists(DATA, max_size=5), AS)
def test_codecs(which, items, kind):
    codec, sizes = CODECS[which], list(map(len, items))
    packed = codec.encode(list(map(kind, items)))
    assert codec.decode(list(map(kind, packed)), sizes=sizes) == items
    for raw, stored in zip(items, packed):
        assert codec.decode(stored, sizes=len(raw)) == raw
        room = bytearray(len(raw) + 7)
        if which[1] != "stored":
            assert bytes(codec.decode(stored, out=room)) == raw
        assert len(stored) <= len(raw) + len(raw) // 255 + 2000


@quiet
@given(DATA, SETTINGS, st.data())
def test_frames_in_any_pieces(raw, wanted, draw):
    sizes = draw.draw(st.lists(st.integers(0, len(raw)), max_size=5))
    cuts = sorted([0, *sizes, len(raw)])
    compressor = FRAME.LZ4FrameCompressor(**wanted)
    written = compressor.begin() + b"".join(compressor.compress(raw[a:b]) for a, b in zip(cuts, cuts[1:]))
    written += compressor.flush()
    assert lz4.frame.decompress(written) == raw == FRAME.decompress(written)
    stock = lz4.frame.compress(raw, **wanted)
    reader = FRAME.LZ4FrameDecompressor()
    cut = draw.draw(st.integers(0, len(stock)))
    most = draw.draw(st.sampled_from([-1, 1000, 100_000]))
    read = reader.decompress(stock[:cut], max_length=most)
    rest = stock[cut:]
    while not reader.eof:
        read += reader.decompress(rest, max_length=most)
        rest = b""
    assert read == raw


@quiet
@given(DATA, st.integers(0, 10**6), st.binary(min_size=1, max_size=5))
def test_damage_is_an_error_or_other_bytes(raw, place, damage):
    stored = bytearray(FRAME.compress(raw, content_checksum=True))
    at = place % len(stored)
    before = bytes(stored)
    stored[at : at + len(damage)] = damage
    for read in (FRAME.decompress, FRAME.LZ4FrameDecompressor().decompress):
        try:
            assert read(bytes(stored)) == raw or bytes(stored) != before
        except ptxkit.Error:
            assert bytes(stored) != before


@quiet
@given(
    DATA, st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.integers(-50, 70_000), st.integers(0, 50_000)), max_size=5)
)
def test_files(raw, steps):
    below = io.BytesIO()
    with ptxkit.open(below, "wb", codec="lz4") as file:
        file.write(raw)
    with ptxkit.open(io.BytesIO(below.getvalue())) as file, io.BytesIO(raw) as model:
        for whence, offset, count in steps:
            if whence == 2:
                offset = -abs(offset)
            base = {0: 0, 1: model.tell(), 2: len(raw)}[whence]
            target = max(0, min(len(raw), base + offset))
            assert file.seek(target) == target == model.seek(target)
            assert file.read(count) == model.read(count) and file.tell() == model.tell()
