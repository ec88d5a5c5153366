#!/usr/bin/env python3
"""Compares the verdicts of `ptx-debug check` and ptxas on the same PTX: real files, mutants of them, and their printed form.

FOLDER is searched for *.ptx. The first folder below it names the producer of a file. --manifest takes ptxas's verdicts from
a tab-separated table instead of running ptxas on every file. Its header has the columns path, producer, ptxas, first_error
and ptxas_c: ptxas is "ok" or "fail", ptxas_c the same with -c, first_error its message.

The table has a row for each producer:
  files       their number
  ptxas, ours how many each accepts
  strict      accepted by ptxas, refused by us
  mild        refused by ptxas, accepted by us
  unjudged    refused by ptxas for a reason outside of the text: 32-bit addresses, symbols that only a linker provides, a
              crash of ptxas
  mutants     texts with one mistake that ptxas refuses, naming a line; `strict mutants` it accepts and we refuse
  refused     of the mutants, those we refuse;  line: of these, those where one of our messages is on the line of
              ptxas's first message, or on the line before or after it

With --peer NAME=COMMAND, once for each peer, a second table has for every producer:
  ptxas, ours, NAME   how many of the files that ptxas accepts each of the others accepts
  bad, ours, NAME     how many of the files that ptxas refuses for their text each of the others refuses
  mutants, ours, NAME how many of the mutants each refuses, among those whose original it accepts

The exit code is 1 if any verdict is too strict or mild, or if a share is below --least-refused or --least-line.
"""
import argparse
import collections
import concurrent.futures
import csv
import hashlib
import json
import pathlib
import subprocess
import sys

import judges
import machine_code
import mutations

SKIPPED = 77  # for ctest


class Row:
    COLUMNS = ["files", "ptxas", "ours", "strict", "mild", "unjudged", "mutants", "refused", "line", "strict mutants"]

    def __init__(self):
        self.count = collections.Counter()

    def cells(self):
        n, mutants, refused = self.count, self.count["mutants"], self.count["refused"]
        share = lambda part, whole: f"{100 * part / whole:.1f} %" if whole else "-"
        return [str(n[c]) for c in self.COLUMNS[:7]] + [share(refused, mutants), share(n["line"], refused),
                                                        str(n["strict mutants"])]


class PeerRow:
    """The verdicts of ptxas, of us and of the peers on the same texts, for one producer."""

    def __init__(self, names):
        self.names, self.count = names, collections.Counter()

    @staticmethod
    def columns(names):
        return ["ptxas", *names, "bad", *names, "mutants", *names]

    def cells(self):
        n = self.count
        each = lambda what: [str(n[what, name]) for name in self.names]
        shares = [f"{n['noticed', name]} of {n['known', name]}" for name in self.names]
        return [str(n["good"]), *each("takes"), str(n["bad"]), *each("refuses"), str(n["mutants"]), *shares]


class Cache:
    """ptxas's verdicts on texts, kept in a file between runs."""

    def __init__(self, path):
        self.path = pathlib.Path(path) if path else None
        self.known = json.loads(self.path.read_text()) if self.path and self.path.exists() else {}

    def judge(self, ptxas, path, text):
        key = hashlib.sha256(text.encode("latin-1")).hexdigest()
        if key not in self.known:
            verdict = judges.assemble(ptxas, path, judges.target_of(text), options=["-O0"])
            self.known[key] = [verdict.kind, verdict.lines, verdict.message]
        return judges.Verdict(*self.known[key])

    def save(self):
        if self.path:
            self.path.write_text(json.dumps(self.known))


def read(path):
    return path.read_text(encoding="latin-1")


def from_manifest(row):
    if "ok" in (row["ptxas"], row.get("ptxas_c")):
        return judges.Verdict("ok")
    said = row["first_error"]
    if said.startswith("rc=-") or judges.NOT_ABOUT_THE_TEXT.search(said):
        return judges.Verdict("other", (), said)
    return judges.Verdict("fail", (), said)


def judge_files(options, pool, cache):
    """[(producer, path, ptxas's verdict)]"""
    folder = pathlib.Path(options.folder)
    if options.manifest:
        with open(options.manifest, newline="") as table:
            return [(row["producer"], folder / row["path"], from_manifest(row))
                    for row in csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE)]
    paths = sorted(folder.rglob("*.ptx"))
    verdicts = pool.map(lambda path: cache.judge(options.ptxas, path, read(path)), paths)
    return [(path.relative_to(folder).parts[0] if path.parent != folder else ".", path, verdict)
            for path, verdict in zip(paths, verdicts)]


def compare_files(files, ours, rows, complaints):
    good = []
    for producer, path, ptxas in files:
        our, n = ours[str(path)], rows[producer].count
        n["files"] += 1
        n["ptxas"] += ptxas.kind == "ok"
        n["ours"] += our.kind == "ok"
        if ptxas.kind == "other":
            n["unjudged"] += 1
        elif ptxas.kind == "ok" and our.kind == "ok":
            good.append((producer, path))
        elif ptxas.kind != our.kind:
            side = "strict" if our.kind == "fail" else "mild"
            n[side] += 1
            complaints.append(f"too {side}: {path}: {our.message if side == 'strict' else ptxas.message}")
    return good


def compare_mutants(options, pool, cache, good, rows, complaints):
    """(rows by kind of mistake, [(producer, path of the file, mutant, we refuse it)] for those that ptxas refuses)"""
    small = {str(path): producer for producer, path in good if path.stat().st_size <= options.largest}
    texts = {name: read(pathlib.Path(name)) for name in small}
    kinds, judged = collections.defaultdict(Row), []
    with judges.Workshop() as shop:
        made = []
        for kind, name, text in mutations.mutants(texts, options.seed, options.mutations):
            made.append((kind, name, text, shop.write(f"{len(made)}.ptx", text)))
        ptxas = list(pool.map(lambda m: cache.judge(options.ptxas, m[3], m[2]), made))
        ours = judges.check(options.ptx_debug, [m[3] for m in made])
        for (kind, name, text, path), theirs in zip(made, ptxas):
            our = ours[str(path)]
            trouble = None
            if theirs.kind == "fail" and theirs.lines:
                judged.append((small[name], name, text, our.kind == "fail"))
            for n in (rows[small[name]].count, kinds[kind].count):
                if theirs.kind == "ok" and our.kind == "fail":
                    n["strict mutants"] += 1
                    trouble = f"too strict: {our.lines[:1]} {our.message}"
                if theirs.kind != "fail" or not theirs.lines:
                    continue
                n["mutants"] += 1
                if our.kind != "fail":
                    trouble = f"too mild: {theirs.lines[:1]} {theirs.message}"
                    continue
                n["refused"] += 1
                if any(abs(line - theirs.lines[0]) <= 1 for line in our.lines):
                    n["line"] += 1
                else:
                    trouble = f"another line: {our.lines[:3]} {our.message} | ptxas {theirs.lines[:3]} {theirs.message}"
            if trouble:
                kept = f"{path.name}: " if options.keep else ""
                complaints.append(f"{kept}{kind} of {name}: {trouble}")
                if options.keep:
                    pathlib.Path(options.keep).mkdir(exist_ok=True)
                    (pathlib.Path(options.keep) / path.name).write_text(text, encoding="latin-1")
    return kinds, judged


def compare_peers(options, pool, files, ours, mutants):
    """Rows of the second table, by producer."""
    names = ["ours", *(peer.name for peer in options.peer)]
    rows = collections.defaultdict(lambda: PeerRow(names))
    judged = [(producer, path, ptxas.kind == "ok") for producer, path, ptxas in files if ptxas.kind != "other"]
    takes = {(str(path), "ours"): ours[str(path)].kind == "ok" for _, path, _ in judged}
    for peer in options.peer:
        verdicts = pool.map(lambda file: peer.takes(file[1]), judged)
        takes.update({(str(file[1]), peer.name): verdict for file, verdict in zip(judged, verdicts)})
    for producer, path, good in judged:
        count = rows[producer].count
        count["good" if good else "bad"] += 1
        for name in names:
            count["takes", name] += good and takes[str(path), name]
            count["refuses", name] += not good and not takes[str(path), name]
    with judges.Workshop() as shop:
        for number, (producer, name, text, we_refuse) in enumerate(mutants):
            path = shop.write(f"{number}.ptx", text)
            known = [peer for peer in options.peer if takes[name, peer.name]]
            refused = {"ours": we_refuse, **{peer.name: not taken for peer, taken in
                                             zip(known, pool.map(lambda peer: peer.takes(path), known))}}
            count = rows[producer].count
            count["mutants"] += 1
            for judge, refuses in refused.items():
                count["known", judge] += 1
                count["noticed", judge] += refuses
    return rows


def compare_prints(options, pool, good, complaints):
    """(files whose machine code is compared, those with equal code)"""
    candidates = [path for _, path in good if path.stat().st_size <= options.largest]
    step = max(1, len(candidates) // max(1, options.prints))
    chosen = candidates[::step][:options.prints]

    def one(path):
        text = read(path)
        target = judges.target_of(text)
        with judges.Workshop() as shop:
            printed = subprocess.run([options.ptx_debug, "print", str(path)], capture_output=True)
            again = shop.write("printed.ptx", printed.stdout.decode("latin-1"))
            code = [machine_code.of(options.ptxas, source, target, shop.folder / "image.cubin") for source in (path, again)]
        return path, printed.returncode == 0 and code[0] is not None and code[0] == code[1], code[0] is not None

    compared = same = 0
    for path, equal, assembled in pool.map(one, chosen):
        compared += assembled
        same += equal
        if assembled and not equal:
            complaints.append(f"other machine code after printing: {path}")
    return compared, same


def show(title, columns, rows, total):
    for row in rows.values():
        total.count.update(row.count)
    table = [[title, *columns]] + [[name, *rows[name].cells()] for name in sorted(rows)] + [["total", *total.cells()]]
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    for line in table:
        print("| " + " | ".join(cell.ljust(w) if i == 0 else cell.rjust(w)
                                for i, (cell, w) in enumerate(zip(line, widths))) + " |")
        if line is table[0]:
            print("|" + "|".join("-" * (w + 1) + ("-" if i == 0 else ":") for i, w in enumerate(widths)) + "|")
    print()
    return total.count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--ptx-debug", default="ptx-debug")
    parser.add_argument("--ptxas", default=judges.find_ptxas(), help="where it is not on PATH")
    parser.add_argument("--manifest", help="verdicts of ptxas that are known already")
    parser.add_argument("--mutations", type=int, default=0, help="how many texts with a mistake to make")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prints", type=int, default=0, help="how many files to print and assemble again")
    parser.add_argument("--largest", type=int, default=60000, help="bytes of a file that is mutated or printed")
    parser.add_argument("--peer", type=judges.Peer, action="append", default=[], metavar="NAME=COMMAND",
                        help=f"another reader of PTX: COMMAND FILE ends with 0 if it takes the file, within "
                             f"{judges.Peer.SECONDS} s")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cache", help="file that keeps what ptxas said")
    parser.add_argument("--keep", help="folder for the mutants that are judged differently")
    parser.add_argument("--least-refused", type=float, default=99, help="per cent of the mutants")
    parser.add_argument("--least-line", type=float, default=95, help="per cent of the refused mutants")
    options = parser.parse_args()
    if not options.ptxas:
        print("NOT RUN: there is no ptxas on PATH")
        return SKIPPED

    cache, rows, complaints = Cache(options.cache), collections.defaultdict(Row), []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        files = judge_files(options, pool, cache)
        if not files:
            print(f"no PTX in {options.folder}")
            return 1
        ours = judges.check(options.ptx_debug, [path for _, path, _ in files])
        good = compare_files(files, ours, rows, complaints)
        kinds, mutants = (compare_mutants(options, pool, cache, good, rows, complaints) if options.mutations
                          else ({}, []))
        cache.save()
        peers = compare_peers(options, pool, files, ours, mutants) if options.peer else {}
        compared, same = compare_prints(options, pool, good, complaints) if options.prints else (0, 0)
    for complaint in complaints:
        print(complaint)
    if complaints:
        print()
    total = show("producer", Row.COLUMNS, rows, Row())
    if kinds:
        show("mistake", Row.COLUMNS, kinds, Row())
    if peers:
        names = ["ours", *(peer.name for peer in options.peer)]
        show("producer", PeerRow.columns(names), peers, PeerRow(names))
    if options.prints:
        print(f"{same} of {compared} files have the same machine code after printing")
    good_enough = (total["strict"] == total["mild"] == 0 and same == compared and
                   (not options.prints or compared > 0) and
                   100 * total["refused"] >= options.least_refused * total["mutants"] and
                   100 * total["line"] >= options.least_line * total["refused"])
    return 0 if good_enough else 1


if __name__ == "__main__":
    sys.exit(main())
