"""Small mistakes in valid PTX, one in each text, as a person or a compiler makes them. Deterministic for a seed."""
import random
import re

TYPES = "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 bf16 bf16x2 f32 f64 pred".split()
SPACES = "global shared local const param shared::cta shared::cluster".split()
SCOPES = "cta cluster gpu sys".split()
SEMANTICS = "relaxed acquire release acq_rel weak volatile".split()
VERSIONS = "1.4 2.0 2.3 3.0 3.1 3.2 4.0 4.1 4.2 4.3 5.0 6.0 6.1 6.2 6.3 6.4 6.5 7.0 7.1 7.2 7.3 7.4 7.5 7.6 7.7 7.8 " \
           "8.0 8.1 8.2 8.3 8.4 8.5 8.6 8.7 8.8 9.0".split()
TARGETS = "sm_75 sm_80 sm_86 sm_87 sm_88 sm_89 sm_90 sm_90a sm_100 sm_100a sm_100f sm_103 sm_103a sm_110 sm_110a sm_120 " \
          "sm_120a sm_121 sm_121a".split()
MODIFIERS = "ftz sat rn rz approx full relu satfinite sync aligned cc hi lo wide nc uni to L2::cache_hint volatile noftz " \
            "and or xor add min max eq lt geu ca cg x2 x4 v2 v4 trans row col 2d".split()
IMMEDIATES = ["99999999999", "-1", "1.5", "0f3F800000", "0d3FF0000000000000", "256", "33", "0x1ffffffff", "16", "1000"]
OPERANDS = ["7", "0f3F800000", "%undeclared", "_", "[%rd1]", "{%r1, %r2}", "%tid.x", "%tid", "WARP_SZ", "%r1", "%rd1",
            "%f1", "%fd1", "%p1", "%rs1", "!%p1"]

INSTRUCTION = re.compile(r"^(\s*(?:\{\s*)?(?:@!?[%\w$]+\s+)?)([a-z][a-z0-9]*)((?:\.[\w:]+)*)((?:\s|$)[^;]*)?;")
LABEL = re.compile(r"^\s*([$\w%]+):\s*$")


def split_operands(text):
    """Splits '%r1, [%rd1+4], {a, b}' at its commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "[{(" and 1 or c in "]})" and -1 or 0
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    if text[start:].strip():
        parts.append(text[start:].strip())
    return parts


class Text:
    """A valid text and the lines of its instructions, grouped by opcode, so that rare ones are as likely as `mov`."""

    def __init__(self, text):
        self.lines = text.split("\n")
        self.by_opcode = {}
        depth = 0
        for number, line in enumerate(self.lines):
            code = line.split("//")[0]
            if depth > 0 and (match := INSTRUCTION.match(code)) and match[2] not in ("version", "target"):
                self.by_opcode.setdefault(match[2] + match[3], []).append(number)
            depth += code.count("{") - code.count("}")
        self.labels = [n for n, line in enumerate(self.lines) if LABEL.match(line)]
        self.declarations = [n for n, line in enumerate(self.lines)
                             if re.match(r"\s*\.(?:visible |weak )*(?:reg|shared|local|global|const|param)\b.*;\s*(?://.*)?$", line)]

    def pick(self, random_source, needs=None):
        """The line number of an instruction and its parts, among those for which `needs` is true."""
        opcodes = [o for o in self.by_opcode if needs is None or needs(o)]
        if not opcodes:
            return None
        number = random_source.choice(self.by_opcode[random_source.choice(opcodes)])
        match = INSTRUCTION.match(self.lines[number].split("//")[0])
        return number, match[1], match[2], match[3].split(".")[1:], split_operands(match[4] or "")

    def with_line(self, number, line):
        return "\n".join(self.lines[:number] + [line] + self.lines[number + 1:])

    def with_instruction(self, number, guard, opcode, words, operands):
        return self.with_line(number, guard + ".".join([opcode, *words]) + (" " + ", ".join(operands) if operands else "") + ";")


def is_type(word):
    return word in TYPES


def missing_label(t, r):
    return t.with_line(r.choice(t.labels), "") if t.labels else None


def wrong_type(t, r):
    picked = t.pick(r, lambda o: any(is_type(w) for w in o.split(".")))
    if not picked:
        return None
    number, guard, opcode, words, operands = picked
    at = r.choice([i for i, w in enumerate(words) if is_type(w)])
    words[at] = r.choice([w for w in TYPES if w != words[at]])
    return t.with_instruction(number, guard, opcode, words, operands)


def missing_type(t, r):
    picked = t.pick(r, lambda o: any(is_type(w) for w in o.split(".")))
    if not picked:
        return None
    number, guard, opcode, words, operands = picked
    del words[r.choice([i for i, w in enumerate(words) if is_type(w)])]
    return t.with_instruction(number, guard, opcode, words, operands)


def wrong_arity(t, r):
    picked = t.pick(r)
    if not picked or not picked[4]:
        return None
    number, guard, opcode, words, operands = picked
    at = r.randrange(len(operands))
    if r.random() < 0.5:
        del operands[at]
    else:
        operands.insert(at, operands[at])
    return t.with_instruction(number, guard, opcode, words, operands)


def undeclared_register(t, r):
    picked = t.pick(r)
    if not picked:
        return None
    number, guard, opcode, words, operands = picked
    found = [m for m in re.finditer(r"%\w+", ", ".join(operands)) if m[0] != "%tid"]
    if not found:
        return None
    m, text = r.choice(found), ", ".join(operands)
    return t.with_instruction(number, guard, opcode, words, [text[:m.start()] + "%undeclared9" + text[m.end():]])


def vector_width(t, r):
    picked = t.pick(r, lambda o: re.search(r"\.v[248]\b", o) or o.startswith(("mma", "wmma", "ldmatrix", "wgmma", "tcgen05", "tex", "mov")))
    if not picked:
        return None
    number, guard, opcode, words, operands = picked
    lists = [i for i, o in enumerate(operands) if o.startswith("{")]
    wide = [i for i, w in enumerate(words) if re.fullmatch(r"v[248]", w)]
    if wide and (not lists or r.random() < 0.5):
        words[wide[0]] = r.choice([w for w in ("v2", "v4", "v8") if w != words[wide[0]]])
    elif lists:
        at = r.choice(lists)
        elements = split_operands(operands[at][1:operands[at].rindex("}")])
        if len(elements) < 2 or r.random() < 0.5:
            elements.append(elements[0])
        else:
            elements.pop()
        operands[at] = "{" + ", ".join(elements) + "}" + operands[at][operands[at].rindex("}") + 1:]
    else:
        return None
    return t.with_instruction(number, guard, opcode, words, operands)


def scope_or_semantics(t, r):
    picked = t.pick(r, lambda o: o.split(".")[0] in ("ld", "st", "atom", "red", "fence", "membar", "mbarrier", "multimem", "cp", "barrier"))
    if not picked:
        return None
    number, guard, opcode, words, operands = picked
    at = [i for i, w in enumerate(words) if w in SCOPES or w in SEMANTICS]
    if at and r.random() < 0.7:
        i = r.choice(at)
        words[i] = r.choice([w for w in (SCOPES if words[i] in SCOPES else SEMANTICS) if w != words[i]])
    else:
        words.insert(0, r.choice(SCOPES + SEMANTICS))
    return t.with_instruction(number, guard, opcode, words, operands)


def older_version(t, r):
    for number, line in enumerate(t.lines):
        if match := re.match(r"(\s*\.version\s+)(\d\.\d)", line):
            older = [v for v in VERSIONS if float(v) < float(match[2])]
            return t.with_line(number, match[1] + r.choice(older)) if older else None
    return None


def other_target(t, r):
    for number, line in enumerate(t.lines):
        if match := re.match(r"(\s*\.target\s+)(sm_\w+)(.*)", line):
            return t.with_line(number, match[1] + r.choice([x for x in TARGETS if x != match[2]]) + match[3])
    return None


def missing_semicolon(t, r):
    lines = [n for n, line in enumerate(t.lines) if ";" in line.split("//")[0]]
    if not lines:
        return None
    number = r.choice(lines)
    return t.with_line(number, t.lines[number].replace(";", "", 1))


def state_space(t, r):
    picked = t.pick(r, lambda o: any(w in SPACES for w in o.split(".")))
    if not picked:
        return None
    number, guard, opcode, words, operands = picked
    at = r.choice([i for i, w in enumerate(words) if w in SPACES])
    words[at] = r.choice([w for w in SPACES if w != words[at]])
    return t.with_instruction(number, guard, opcode, words, operands)


def duplicate_definition(t, r):
    lines = t.labels + t.declarations
    if not lines:
        return None
    number = r.choice(lines)
    return t.with_line(number, t.lines[number] + "\n" + t.lines[number])


def immediate(t, r):
    picked = t.pick(r)
    if not picked:
        return None
    number, guard, opcode, words, operands = picked
    at = [i for i, o in enumerate(operands) if re.fullmatch(r"-?\d\w*(\.\d+)?", o)]
    if not at:
        return None
    operands[r.choice(at)] = r.choice(IMMEDIATES)
    return t.with_instruction(number, guard, opcode, words, operands)


def modifier(t, r):
    picked = t.pick(r)
    if not picked:
        return None
    number, guard, opcode, words, operands = picked
    choice = r.randrange(3)
    if choice == 0 and words:
        del words[r.randrange(len(words))]
    elif choice == 1 and words:
        words[r.randrange(len(words))] = r.choice(MODIFIERS)
    else:
        words.insert(r.randrange(len(words) + 1), r.choice(MODIFIERS))
    return t.with_instruction(number, guard, opcode, words, operands)


def operand_kind(t, r):
    picked = t.pick(r)
    if not picked or not picked[4]:
        return None
    number, guard, opcode, words, operands = picked
    if r.random() < 0.3 and len(operands) > 1:
        a, b = r.sample(range(len(operands)), 2)
        operands[a], operands[b] = operands[b], operands[a]
    else:
        operands[r.randrange(len(operands))] = r.choice(OPERANDS)
    return t.with_instruction(number, guard, opcode, words, operands)


def register_class(t, r):
    """Changes the type of a declaration: every use of its registers is wrong at once."""
    lines = [n for n in t.declarations if re.match(r"\s*\.reg\s", t.lines[n])]
    if not lines:
        return None
    number = r.choice(lines)
    match = re.search(r"\.reg\s+\.(\w+)", t.lines[number])
    if not match:
        return None
    other = r.choice([w for w in "b16 b32 b64 f32 f64 pred u32 s64".split() if w != match[1]])
    return t.with_line(number, t.lines[number][:match.start(1)] + other + t.lines[number][match.end(1):])


def directive(t, r):
    """Removes, doubles or replaces a character of a line outside of instructions."""
    lines = [n for n, line in enumerate(t.lines) if re.match(r"\s*\.(?!version|target|loc|file)", line)]
    if not lines:
        return None
    number = r.choice(lines)
    line = t.lines[number]
    at = r.randrange(len(line))
    replacement = r.choice(["", line[at] * 2, r.choice(".,;()[]{}<>=0_x ")])
    return t.with_line(number, line[:at] + replacement + line[at + 1:])


KINDS = [missing_label, wrong_type, missing_type, wrong_arity, undeclared_register, vector_width, scope_or_semantics,
         older_version, other_target, missing_semicolon, state_space, duplicate_definition, immediate, modifier,
         operand_kind, register_class, directive]


def mutants(texts, seed, count):
    """`count` triples (name of the kind, name of the text, mutated text), each kind as often as the texts allow."""
    r = random.Random(seed)
    parsed, names = {}, sorted(texts)
    made, attempts = 0, 0
    while made < count and attempts < 20 * count:
        attempts += 1
        kind = KINDS[attempts % len(KINDS)]
        name = r.choice(names)
        if name not in parsed:
            parsed[name] = Text(texts[name])
        text = kind(parsed[name], r)
        if text is None or text == texts[name]:
            continue
        made += 1
        yield kind.__name__, name, text
