#!/usr/bin/env python3
"""What an instruction's words mean is read in analyzer/ptx/ alone (facts.hpp): elsewhere no opcode is compared as text, and
no modifier is named. The emulator may name modifiers: it has a handler for each, and asks for them as a set.

usage: spelling.py REPO
"""
import os
import re
import sys

FOLDERS = ("analyzer", "runtime", "tools")
OWN = "analyzer/ptx/"
MAY_NAME = "runtime/emulator/"  # modifiers as enumerators, never as text
MODIFIER = re.compile(r"PTX_MOD\(\w+, \"([^\"]+)\"\)")
SPACES = ("global", "shared", "shared::cta", "shared::cluster", "local", "const")
SEARCH = r"(?:\.(?:find|contains|starts_with|ends_with|rfind)\(|\b(?:spelled|has_word)\([^\"()]*,|[=!]=)\s*"
NAMED = re.compile(r"\bMod::(?!unknown\b)\w+")
COMPARED = re.compile(r"\bspelling(?:\(\))?\s*(?:[=!]=|\.(?:find|contains|starts_with|ends_with|rfind|compare)\b)|"
                      r"[=!]=\s*(?:\w+(?:\.|->))+spelling\b|\bmods\s*(?:\[|\.(?:front|back|subspan)\b)|"
                      r"\bmodifiers\([^()]*\)\s*(?:\[|\.(?:front|back|subspan)\b)")
NO_OPCODES = {  # files in which a compared text is a word of the command line or of another format
    "tools/ptx-debug/launch_files.cpp",
    "tools/ptx-debug/launch_file_use.cpp",
}


def faults(repo):
    with open(os.path.join(repo, OWN, "modifiers.def"), encoding="utf-8") as file:
        words = sorted([*MODIFIER.findall(file.read()), *SPACES], key=len, reverse=True)
    # ".async", "cp.async", ".bulk.tensor": a word of an opcode behind a dot.
    spelled = re.compile(SEARCH + r"\"\w*(?:\.(?:" + "|".join(map(re.escape, words)) + r")(?![\w:]))+[\w.:]*\"")
    for top in FOLDERS:
        for folder, _, names in os.walk(os.path.join(repo, top)):
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), repo)
                if not name.endswith((".hpp", ".cpp")) or path.startswith(OWN) or path in NO_OPCODES:
                    continue
                with open(os.path.join(repo, path), encoding="utf-8") as file:
                    for number, line in enumerate(file, 1):
                        code = line.split("//")[0]
                        if COMPARED.search(code) or spelled.search(code):
                            yield f"{path}:{number}: compares the spelling of an opcode: ask ptx::facts_of"
                        elif NAMED.search(code) and not path.startswith(MAY_NAME):
                            yield f"{path}:{number}: names a modifier: ask ptx::facts_of"


found = list(faults(sys.argv[1]))
print("\n".join(found) or "words of opcodes are read in analyzer/ptx/ alone")
sys.exit(bool(found))
