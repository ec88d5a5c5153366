"""Defects planted into kernels that are right, one at a time, and whether a run on the emulator shows them.

A place in the text is no defect by itself: a barrier may be redundant, an index that is multiplied by 6 always even. So
both versions are run, in a few launches that are made up, by `ptx-debug run` with all its checks. A defect is shown where
some launch of the planted kernel has a fault of the defect's class and the same launch of the kernel as it was has none.
One that is not shown may be a defect all the same: no launch got there.
"""
import hashlib
import json
import pathlib
import random
import re
import subprocess

MOST_STEPS = 100_000  # warp instructions
DYNAMIC_SHARED_BYTES = 16_384
BUFFER_WORDS = 1 << 16
# Block, grid, and what integers among the parameters are.
LAUNCHES = (("64", "3", 64), ("256", "2", 37), ("16,16", "2,2", 37), ("32", "3", 5), ("8,8", "2,2", 3))
# What words of buffers hold: small numbers, odd and even.
CONTENTS = b"".join(((7 * i + 1) % 61).to_bytes(4, "little") for i in range(BUFFER_WORDS))
SCALARS = {"f32": "f32:1.5", "f64": "f64:1.5", "u16": "u16:{}", "s16": "s16:{}", "b16": "u16:{}", "u8": "u8:{}",
           "s8": "s8:{}", "b8": "u8:{}"}


# Each plants one defect into the body of a kernel, or returns None where there is no place for it.
def plant_displacement(body, pick):
    """A word is reached two bytes further on."""
    places = list(re.finditer(r"\b(?:ld|st)\.(?:global|shared)\.[\w.]*[usbf](?:32|64)\b[^;\[]*\[(%\w+)(\+\d+)?\]", body))
    if not places:
        return None
    place = pick(places)
    displacement = int((place[2] or "+0")[1:]) + 2
    return body[:place.start(1)] + f"{place[1]}+{displacement}" + body[place.end(2) if place[2] else place.end(1):]


def plant_stride(body, pick):
    """Threads stand 6 bytes apart, not 4."""
    def misaligns(place):
        """The product is added as it is, and of a number that nothing has made even: else 6 times it may be aligned."""
        use = re.search(rf"(?m)^.*{place[1]}\b.*$", body[place.end():])
        sources = re.findall(rf"(?m)^\s*(\w+)\.[\w.]+\s+{place[2]},", body[:place.start()])
        return use and use[0].lstrip().startswith("add.") and sources and sources[-1] not in ("shl", "and", "mul", "or")

    places = [place for place in re.finditer(r"mul\.wide\.[us]32\s+(%rd\d+),\s*(%r\d+),\s*(4);", body)
              if misaligns(place)]
    if not places:
        return None
    place = pick(places)
    return body[:place.start(3)] + "6" + body[place.end(3):]


def plant_bounds(body, pick):
    """A shared array is reached just behind its end."""
    sizes = {name: int(size) for name, size in re.findall(r"\.shared\s+\.align\s+\d+\s+\.b8\s+([\w$]+)\[(\d+)\]", body)}
    places = [place for place in re.finditer(r"\b(?:ld|st)\.shared\.[^;\[]*\[([\w$]+)(\+\d+)?\]", body) if place[1] in sizes]
    if not places:
        return None
    place = pick(places)
    return body[:place.start(1)] + f"{place[1]}+{sizes[place[1]]}" + body[place.end(2) if place[2] else place.end(1):]


def barriers(body):
    return list(re.finditer(r"(?m)^\s*(bar\.sync|barrier\.sync)\s+0;", body))


def plant_race(body, pick):
    """A barrier between a store and a load of shared memory is gone."""
    places = [place for place in barriers(body)
              if "st.shared" in body[:place.start()] and "ld.shared" in body[place.end():]]
    if not places:
        return None
    place = pick(places)
    return body[:place.start()] + body[place.end():]


def plant_divergence(body, pick):
    """Seven threads wait at a barrier, the others go on."""
    places = barriers(body)
    if not places:
        return None
    place = pick(places)
    return (body[:place.start()] + "\n{ .reg .pred planted; .reg .b32 planted_thread; mov.u32 planted_thread, %tid.x;\n"
            f"setp.lt.u32 planted, planted_thread, 7; @planted {place[1]} 0; }}" + body[place.end():])


PLANTS = ((plant_displacement, "alignment"), (plant_stride, "alignment"), (plant_bounds, "bounds"), (plant_race, "race"),
          (plant_divergence, "barrier"))


def kernels_of(text):
    """Name, begin and end of each kernel's body; what nvcc and Triton write has its braces at the line's start."""
    for entry in re.finditer(r"\.entry\s+([\w$]+)", text):
        begin, end = text.find("\n{", entry.end()), text.find("\n}", entry.end())
        if 0 <= begin < end:
            yield entry[1], begin, end


def planted_in(text):
    """Plant, class, kernel and the text with the defect: of each kind one, in the first kernel with a place for it. The
    order of kernels, and the place, are by chance, which is the text's own."""
    chance = random.Random(hashlib.sha256(text.encode()).digest())
    spans = list(kernels_of(text))
    chance.shuffle(spans)
    for plant, defect in PLANTS:
        for name, begin, end in spans:
            body = plant(text[begin:end], chance.choice)
            if body is not None:
                yield plant, defect, name, text[:begin] + body + text[end:]
                break


def arguments_of(text, kernel, number, buffer):
    """Options of `ptx-debug run` that give every parameter a value: 64 bits are taken for an address."""
    entry = re.search(rf"\.entry\s+{re.escape(kernel)}\s*\(([^)]*)\)", text)
    for parameter in re.findall(r"\.param\s+([^,)]*)", entry[1] if entry else ""):
        array = re.search(r"\.b8\s+[\w$]+\[(\d+)\]", parameter)
        kind = re.search(r"\.([usbf]\d+)\b", parameter)[1]
        if array:
            yield "--arg=bytes:" + "01000000" * (int(array[1]) // 4) + "00" * (int(array[1]) % 4)
        elif kind in ("u64", "s64", "b64"):
            yield f"--arg=in:{buffer}"
        else:
            yield "--arg=" + SCALARS.get(kind, "u32:{}").format(number)


def faults(program, path, kernel, options):
    """Rules of the faults of a run; nothing where it does not begin."""
    run = subprocess.run([program, "run", str(path), "--entry", kernel, "--json=-", f"--max-steps={MOST_STEPS}", *options],
                         capture_output=True, text=True, timeout=120)
    return {fault["rule"] for fault in json.loads(run.stdout)["faults"]} if run.stdout.startswith("{") else None


def is_shown(program, before, planted, kernel, rules):
    """Whether a launch of the kernel in `planted` has a fault of one of the rules, and none in `before`."""
    text = pathlib.Path(before).read_text(errors="replace")
    shared = [f"--shared={DYNAMIC_SHARED_BYTES}"] if re.search(r"\.extern\s+\.shared", text) else []
    buffer = pathlib.Path(planted).with_suffix(".bin")
    buffer.write_bytes(CONTENTS)
    for block, grid, number in LAUNCHES:
        options = [f"--block={block}", f"--grid={grid}", *shared, *arguments_of(text, kernel, number, buffer)]
        found = faults(program, planted, kernel, options)
        if found and found & rules and not (faults(program, before, kernel, options) or set()) & rules:
            return True
    return False
