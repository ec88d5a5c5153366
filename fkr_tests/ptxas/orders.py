#!/usr/bin/env python3
"""Whether `ptx-debug check` and ptxas take the words of an opcode in the same orders.

Each instruction of `list_forms` is written with its words in other orders: two neighbours exchanged, one word moved to the
front, and shuffled. Words of one class, whose order has a meaning (analyzer/ptx/word_order.hpp), keep theirs, but for
instructions that are listed in OTHER_ORDERS. An instruction that ptxas refuses as it is, is left out.

With --words, each is also written with so many words more, or in the place of another, that the ISA table knows. ptxas
passes over some of them (.rank, .fill_mode, .finite, ...), so of these only what it refuses and we take is a difference.

The exit code is 1 if the two judge anything differently, which is printed.
"""
import argparse
import collections
import concurrent.futures
import pathlib
import random
import re
import shlex
import subprocess
import sys

import judges
import operands

FOLDER = pathlib.Path(__file__).parent
TYPES = set(re.findall(r'PTX_TYPE\(\w+, "(\w+)"', (FOLDER.parents[1] / "analyzer/ptx/types.def").read_text()))
SPACES = set("reg sreg const global local param param::entry param::func shared shared::cta shared::cluster tex".split())
MODIFIERS = sorted(set(re.findall(r'PTX_MOD\(\w+, "(\S+)"', (FOLDER.parents[1] / "analyzer/ptx/modifiers.def").read_text()))
                   - {"shape"})
LOGIC = {"and", "xor", "popc"}
OTHER_ORDERS = """bar.sync.warp %w1;
bar.sync.cta 0;
barrier.sync.cta 0;
barrier.aligned.sync.cta 0;
barrier.cta.aligned.sync 0;
cvta.global.to.u64 %l1, %l2;
cvta.u64.to.global %l1, %l2;
mma.sync.aligned.m8n8k16.col.row.s32.s8.s8.s32 {%w2, %w3}, {%w5}, {%w7}, {%w9, %w10};
mma.sync.aligned.m8n8k128.row.col.popc.xor.s32.b1.b1.s32 {%w2, %w3}, {%w5}, {%w7}, {%w9, %w10};
cvt.f32.rn.f64 %f1, %d1;
setp.u32.lt.and %p1, %w1, %w2, %p2;""".splitlines()


def class_of(word):
    return ("type" if word in TYPES else "space" if word in SPACES else "layout" if word in ("row", "col") else
            "logic" if word in LOGIC else "eviction" if word.startswith("L2::evict") else None)


def ordered(words):
    classes = collections.defaultdict(list)
    for word in words:
        classes[class_of(word)].append(word)
    classes.pop(None, None)
    return classes


def orders(spelling, count, random_source):
    """At most `count` other spellings."""
    opcode, *words = spelling.split(".")
    candidates = []
    for i in range(len(words)):
        for to in {0, i + 1} - {i, len(words)}:
            moved = words[:i] + words[i + 1:]
            candidates.append(moved[:to] + [words[i]] + moved[to:])
    for _ in range(count):
        shuffled = random_source.sample(words, len(words))
        kept = {of: iter(each) for of, each in ordered(words).items()}
        candidates.append([next(kept[class_of(word)]) if class_of(word) else word for word in shuffled])
    same = ordered(words)
    found = {".".join([opcode, *each]) for each in candidates if ordered(each) == same and each != words}
    return random_source.sample(sorted(found), min(count, len(found)))


def other_words(spelling, count, random_source):
    """`count` spellings with a word that is another's, behind the others or in the place of one."""
    opcode, *words = spelling.split(".")
    for _ in range(count):
        at, word = random_source.randrange(len(words) + 1), random_source.choice(MODIFIERS)
        yield ".".join([opcode, *words[:at], word, *words[at + 1:]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptx-debug", default="ptx-debug")
    parser.add_argument("--ptxas", default=judges.find_ptxas(), help="where it is not on PATH")
    parser.add_argument("--forms", required=True, help="a command that prints instructions as list_forms does")
    parser.add_argument("--each", type=int, default=4, help="other orders of each instruction")
    parser.add_argument("--words", type=int, default=0, help="other words for each instruction")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if not options.ptxas:
        print("NOT RUN: there is no ptxas on PATH")
        return operands.SKIPPED
    random_source = random.Random(options.seed)
    batches, strange = {"sm_90a": {text: text for text in OTHER_ORDERS}}, set()
    for line in subprocess.run(shlex.split(options.forms), capture_output=True, text=True, check=True).stdout.splitlines():
        _, _, target, instruction = line.split("\t")
        target = "sm_90a" if int(re.search(r"\d+", target)[0]) < 90 else target
        spelling = re.match(r"[^ ;]*", instruction)[0]
        operands_text = instruction[len(spelling):]
        for other in orders(spelling, options.each, random_source):
            batches.setdefault(target, {})[other + operands_text] = instruction
        for other in other_words(spelling, options.words, random_source):
            batches.setdefault(target, {}).setdefault(other + operands_text, instruction)
            strange.add(other + operands_text)
    parts = [(target, list(batch.items())[at:at + 500]) for target, batch in batches.items()
             for at in range(0, len(batch), 500)]
    with judges.Workshop() as shop, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        def one(numbered):
            number, (target, part) = numbered
            module = operands.Module(target=target)
            as_they_are = sorted({before for _, before in part} - set(OTHER_ORDERS))
            at = operands.refused_by_ptxas(options, shop, f"{number}.ptx", module, as_they_are)
            unknown = {as_they_are[i] for i in at}
            texts = [text for text, before in part if before not in unknown]
            theirs = operands.refused_by_ptxas(options, shop, f"{number}.ptx", module, texts)
            ours = operands.refused_by_us(options, shop, f"{number}.ptx", module, texts)
            return len(texts), len(theirs), [f"only {'we take' if i in theirs else 'ptxas takes'}: {text}"
                                             for i, text in enumerate(texts)
                                             if (i in theirs) != (i in ours) and (i in theirs or text not in strange)]

        results = list(pool.map(one, enumerate(parts)))
    print(f"{sum(count for count, _, _ in results)} instructions, {sum(count for _, count, _ in results)} refused by ptxas")
    differences = [line for _, _, lines in results for line in lines]
    for difference in differences:
        print(difference)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
