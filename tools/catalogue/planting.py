"""Plants defects into correct kernels, one at a time, and tests whether a run on the emulator shows them.

A changed place in the text is not always a defect: a barrier may be redundant, and an index that is multiplied by 6 may
always be even. Therefore `ptx-debug run` executes both versions with all checks in a few generated launches. A defect is
shown if some launch of the planted kernel has a fault of the defect's class and the same launch of the original kernel
has none. A change that is not shown may still be a defect that no launch reaches.
"""
import hashlib
import json
import pathlib
import random
import re
import subprocess

MOST_STEPS = 100_000  # in warp instructions
DYNAMIC_SHARED_BYTES = 16_384
BUFFER_WORDS = 1 << 16
# Block, grid, and the value of integer parameters.
LAUNCHES = (("64", "3", 64), ("256", "2", 37), ("16,16", "2,2", 37), ("32", "3", 5), ("8,8", "2,2", 3))
# The contents of buffers: small numbers, odd and even.
CONTENTS = b"".join(((7 * i + 1) % 61).to_bytes(4, "little") for i in range(BUFFER_WORDS))
SCALARS = {"f32": "f32:1.5", "f64": "f64:1.5", "u16": "u16:{}", "s16": "s16:{}", "b16": "u16:{}", "u8": "u8:{}",
           "s8": "s8:{}", "b8": "u8:{}"}


# Each function plants one defect into the body of a kernel, or returns None if there is no place for it.
def plant_displacement(body, pick):
    """Accesses a word two bytes further on."""
    places = list(re.finditer(r"\b(?:ld|st)\.(?:global|shared)\.[\w.]*[usbf](?:32|64)\b[^;\[]*\[(%\w+)(\+\d+)?\]", body))
    if not places:
        return None
    place = pick(places)
    displacement = int((place[2] or "+0")[1:]) + 2
    return body[:place.start(1)] + f"{place[1]}+{displacement}" + body[place.end(2) if place[2] else place.end(1):]


def plant_stride(body, pick):
    """Makes threads access words 6 bytes apart instead of 4."""
    def misaligns(place):
        """Whether the product is added unchanged and its factor is not known to be even; 6 times an even number is aligned."""
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
    """Accesses a shared array just after its end."""
    sizes = {name: int(size) for name, size in re.findall(r"\.shared\s+\.align\s+\d+\s+\.b8\s+([\w$]+)\[(\d+)\]", body)}
    places = [place for place in re.finditer(r"\b(?:ld|st)\.shared\.[^;\[]*\[([\w$]+)(\+\d+)?\]", body) if place[1] in sizes]
    if not places:
        return None
    place = pick(places)
    return body[:place.start(1)] + f"{place[1]}+{sizes[place[1]]}" + body[place.end(2) if place[2] else place.end(1):]


def barriers(body):
    return list(re.finditer(r"(?m)^\s*(bar\.sync|barrier\.sync)\s+0;", body))


def plant_race(body, pick):
    """Removes a barrier between a store and a load of shared memory."""
    places = [place for place in barriers(body)
              if "st.shared" in body[:place.start()] and "ld.shared" in body[place.end():]]
    if not places:
        return None
    place = pick(places)
    return body[:place.start()] + body[place.end():]


def plant_divergence(body, pick):
    """Makes seven threads wait at a barrier that the others skip."""
    places = barriers(body)
    if not places:
        return None
    place = pick(places)
    return (body[:place.start()] + "\n{ .reg .pred planted; .reg .b32 planted_thread; mov.u32 planted_thread, %tid.x;\n"
            f"setp.lt.u32 planted, planted_thread, 7; @planted {place[1]} 0; }}" + body[place.end():])


PLANTS = ((plant_displacement, "alignment"), (plant_stride, "alignment"), (plant_bounds, "bounds"), (plant_race, "race"),
          (plant_divergence, "barrier"))


def kernels_of(text):
    """Name, begin and end of each kernel's body. nvcc and Triton write its braces at the beginning of a line."""
    for entry in re.finditer(r"\.entry\s+([\w$]+)", text):
        begin, end = text.find("\n{", entry.end()), text.find("\n}", entry.end())
        if 0 <= begin < end:
            yield entry[1], begin, end


def planted_in(text):
    """Plant, class, kernel and text for one defect of each kind, in the first kernel with a place for it. The order of
    kernels and the place are random, seeded by the text."""
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
    """Options of `ptx-debug run` that give every parameter a value. Parameters of 64 bits are treated as addresses."""
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
    """The rules of the faults in a run; nothing if the run does not start."""
    run = subprocess.run([program, "run", str(path), "--entry", kernel, "--json=-", f"--max-steps={MOST_STEPS}", *options],
                         capture_output=True, text=True, timeout=120)
    return {fault["rule"] for fault in json.loads(run.stdout)["faults"]} if run.stdout.startswith("{") else None


def is_shown(program, before, planted, kernel, rules):
    """Whether a launch of the kernel has a fault of one of the rules in `planted` and none in `before`."""
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
