#!/usr/bin/env python3
"""Follows every link of the pages: files and pictures exist, and headings that are linked to do. So do the sources that a
page names in code, such as `analyzer/rules/rules.def`; the log of measurements may name what there was.

usage: links.py REPO [--list]      (--list prints the addresses of other sites, which are not fetched)

An anchor is a heading's as GitHub makes it: lower case, without punctuation, a hyphen for each space. Headings are not
told apart where two have one anchor, so a link to such a heading fails too.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.parse

LINK = re.compile(r"!?\[(?:[^][]|\[[^][]*\])*\]\(<?([^()\s>]+)>?(?:\s+\"[^\"]*\")?\)")
PICTURE = re.compile(r"<(?:img|a|source)\s[^>]*?(?:src|href|srcset)=\"([^\"]+)\"")
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")

SOURCE = re.compile(r"`((?:analyzer|builder|docs|fkr_tests|kernels|runtime|support|tools)/[^\s`…<>$]*)`")


def text_lines(text):
    """(number, line) of what is no fenced block."""
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if fence:
            if mark and mark[1].startswith(fence) and line.strip() == mark[1]:
                fence = None
        elif mark:
            fence = mark[1]
        else:
            yield number, line


def anchors(text):
    """{anchor: number of headings that have it}"""
    found = {}
    for _, line in text_lines(text):
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1])
            anchor = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
            found[anchor] = found.get(anchor, 0) + 1
    return found


def braces(pattern):
    """a/{b,c} as a/b and a/c"""
    found = re.fullmatch(r"([^{}]*)\{([^{}]*)\}(.*)", pattern)
    return [each for word in found[2].split(",") for each in braces(found[1] + word + found[3])] if found else [pattern]


def pages(repo):
    listed = subprocess.run(["git", "-C", repo, "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
                            capture_output=True, text=True, check=False)
    names = listed.stdout.split() if listed.returncode == 0 else []
    if not names:  # an unpacked archive has no git
        names = [str(path.relative_to(repo)) for path in repo.glob("*.md")] + \
                [str(path.relative_to(repo)) for path in (repo / "docs").rglob("*.md")]
    return sorted(name for name in names if (repo / name).exists())


def faults(repo, others):
    repo = repo.resolve()
    for name in pages(repo):
        page = repo / name
        for number, line in text_lines(page.read_text(encoding="utf-8")):
            # A link may have code for its text, and code may have what looks like a link.
            targets = [match[1] for match in LINK.finditer(line)
                       if not any(span.start() < match.start() and match.end() < span.end() for span in CODE.finditer(line))]
            for source in SOURCE.findall(line) if "docs/log/" not in name and name.split("/")[0] != "fkr_tests" else ():
                # "docs/rules/{F001,F002}.md" names two; a word in capitals stands for any, as does "*".
                pattern = re.sub(r"\bNAME\b|F0xx", "*", source.rstrip("/"))
                for each in braces(pattern):
                    if not any(repo.glob(each)):
                        yield f"{name}:{number}: `{source}`: there is no such file"
            others.update(re.findall(r"https?://[^\s()<>`\"]+", CODE.sub("", line)))
            for target in targets + PICTURE.findall(line):
                where = f"{name}:{number}: {target}"
                if re.match(r"[a-z][a-z0-9+.-]*:", target):
                    others.add(target)
                    continue
                path, _, anchor = target.partition("#")
                path = (page.parent / urllib.parse.unquote(path)).resolve() if path else page
                if not path.exists():
                    yield f"{where}: there is no such file"
                elif repo not in path.parents:
                    yield f"{where}: leads out of the repository"
                elif anchor and path.suffix == ".md":
                    count = anchors(path.read_text(encoding="utf-8")).get(anchor, 0)
                    if count != 1:
                        yield f"{where}: expected one heading with this anchor, found {count}"


def self_check():
    """Every kind of fault is noticed, and what is right is not."""
    with tempfile.TemporaryDirectory() as folder:
        repo = pathlib.Path(folder)
        (repo / "docs").mkdir()
        (repo / "README.md").write_text("# A `b` & c\n\n## Twice\n\n## Twice\n\n[x](docs/a.md) [x](docs/a.md#how-it-is) [x](#a-b--c)\n"
                                        "`docs/{a,a}.md` `docs/*.md` `[x](none.md)` [`x`](docs/a.md)\n```\n[x](none.md)\n```\n<https://example.org> [x](https://example.org)\n")
        (repo / "docs" / "a.md").write_text("## How it is\n")
        good = list(faults(repo, set()))
        (repo / "docs" / "a.md").write_text("[x](none.md) ![x](none.svg) [x](../README.md#none) [x](#none) [x](../README.md#twice)\n"
                                            '<img src="none.png"> [x](../../..)\n')
        (repo / "README.md").write_text("## Twice\n\n## Twice\n`docs/{a,none}.md`\n")
        bad = list(faults(repo, set()))
    assert not good, good
    assert len(bad) == 8, bad


self_check()
elsewhere = set()
found = list(faults(pathlib.Path(sys.argv[1]), elsewhere))
if "--list" in sys.argv[2:]:
    print("\n".join(sorted(elsewhere)))
print("\n".join(found) or f"every link leads somewhere; {len(elsewhere)} addresses of other sites are not fetched")
sys.exit(bool(found))
