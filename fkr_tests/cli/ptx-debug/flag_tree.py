#!/usr/bin/env python3
"""Completion scripts and man page offer exactly the verbs and options that --help lists.

usage: flag_tree.py PTX_DEBUG; zsh and fish read their scripts where they are installed."""
import re
import shutil
import subprocess
import sys
import tempfile

PTX_DEBUG = sys.argv[1]
faults = []


def run(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, check=True, **options).stdout


def flags_of(help_text):
    """{"-j", "--jobs", ...} of a help text: the names stand in the second column, separated by commas."""
    names = set()
    for line in help_text.splitlines():
        if match := re.match(r"  (-[\w-]+(?:,-[\w-]+)*)(\s|$)", line):
            names.update(match[1].split(","))
    return names


def compare(what, expected, found):
    if expected != found:
        faults.append(f"{what}: only in --help {sorted(expected - found)}, not in --help {sorted(found - expected)}")


def bash_replies(script, words):
    """The completions that bash offers for the last word."""
    program = (f'source "{script}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ptx_debug; '
               'printf "%s\\n" "${COMPREPLY[@]}"')
    return set(run("bash", "--norc", "-c", program, "bash", *words).split())


top = run(PTX_DEBUG, "--help")
verbs = set(re.findall(r"^  ([a-z]\S*) ", top.split("Subcommands:")[1], re.M))
helps = {verb: run(PTX_DEBUG, verb, "--help") for verb in verbs}
scripts = {shell: run(PTX_DEBUG, "completion", shell) for shell in ("bash", "zsh", "fish")}
man = run(PTX_DEBUG, "man")

sections = {}
for section in man.split("\n.SS ")[1:]:
    verb, _, text = section.partition("\n")
    sections[verb.split()[0]] = text.split("\n.SH ")[0].replace("\\-", "-")
compare("verbs in man", verbs, set(sections))
compare("verbs in zsh", verbs, set(re.findall(r"^    '([a-z-]+):", scripts["zsh"], re.M)))
compare("verbs in fish", verbs, set(re.findall(r"__fish_use_subcommand -a (\S+)", scripts["fish"])))

with tempfile.NamedTemporaryFile("w", suffix=".bash") as file:
    file.write(scripts["bash"])
    file.flush()
    compare("verbs in bash", verbs | {"--help", "--version"}, bash_replies(file.name, ["ptx-debug", ""]))
    for verb in sorted(verbs):
        flags = flags_of(helps[verb])
        compare(f"{verb} in bash", flags, bash_replies(file.name, ["ptx-debug", verb, "-"]))
        compare(f"{verb} in man", flags, set(re.findall(r"\\fB(-[\w-]+)\\fR", sections[verb])))
        arm = re.search(rf"^    {verb}\)\n(.*?);;", scripts["zsh"], re.M | re.S)[1]
        compare(f"{verb} in zsh", flags, set(re.findall(r"^        '(-[\w-]+)\[", arm, re.M)))
        mine = [line.split(" -d ")[0] for line in scripts["fish"].splitlines()
                if f"'__fish_seen_subcommand_from {verb}'" in line]
        compare(f"{verb} in fish", flags, {"--" + name for line in mine for name in re.findall(r" -l (\S+)", line)} |
                {"-" + name for line in mine for name in re.findall(r" -s (\S+)", line)})
    values = {("analyze", "--format", ""): {"text", "json", "sarif", "github"},
              ("analyze", "--color", "a"): {"auto", "always"},
              ("analyze", "--select", "F05"): {f"F05{digit}" for digit in range(10)},
              ("explain", "F03"): {f"F03{digit}" for digit in range(10)},
              ("completion", ""): {"bash", "fish", "zsh"},
              ("analyze", "--min-score", ""): set()}
    for words, expected in values.items():
        compare(" ".join(words), expected, bash_replies(file.name, ["ptx-debug", *words]))

read = []
for shell in ("zsh", "fish"):
    if shutil.which(shell):
        read.append(shell)
        result = subprocess.run([shell, "-n"], input=scripts[shell], capture_output=True, text=True, check=False)
        if result.returncode or result.stderr:
            faults.append(f"{shell} cannot read its script: {result.stderr}")
if shutil.which("groff"):
    read.append("groff")
    result = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z"], input=man, capture_output=True, text=True, check=False)
    if result.returncode or result.stderr:
        faults.append(f"groff cannot read the man page: {result.stderr}")
print("\n".join(faults) or f"{len(verbs)} verbs, {sum(len(flags_of(text)) for text in helps.values())} options; "
      f"read by bash{''.join(', ' + name for name in read)}")
sys.exit(bool(faults))
