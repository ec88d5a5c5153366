"""What mkdocs does not do by itself: pages above docs/ become pages of the site, and the rules get a list."""
import pathlib
import posixpath
import re

from mkdocs.structure.files import File

REPO = pathlib.Path(__file__).resolve().parents[2]
WIDE = {"requirements.md", "promises.md", "isa.md", "rules/index.md"}  # tables that need the room of the headings' list
ABOVE = {"README.md": "index.md", "CHANGELOG.md": "CHANGELOG.md", "CONTRIBUTING.md": "CONTRIBUTING.md", "SECURITY.md": "SECURITY.md"}
LINK = re.compile(r"(!?)\[((?:[^][]|\[[^][]*\])*)\]\(([^()\s]+)\)")


def place_of(path):
    """Where a file of the repository is in the site; None where it is no part of it."""
    if path in ABOVE:
        return ABOVE[path]
    if path == "docs/rules":
        return "rules/index.md"
    if path.startswith("docs/") and not path.startswith("docs/examples/") and (REPO / path).is_file():
        return path.removeprefix("docs/")
    return None


def moved(text, source):
    """Links of the page `source` for its place in the site; what is not in the site is named and not linked."""

    def replace(match):
        picture, words, target = match.groups()
        path, hash_, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", target):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        place = place_of(path)
        if not (REPO / path).exists():
            return match[0]  # mkdocs says what is wrong
        if place is None:
            return words if path in words else f"{words} (`{path}`)"
        return f"{picture}[{words}]({posixpath.relpath(place, posixpath.dirname(place_of(source)) or '.')}{hash_}{anchor})"

    in_fence, lines = False, []
    for line in text.split("\n"):
        in_fence ^= bool(re.match(r"\s*```", line))
        lines.append(line if in_fence else LINK.sub(replace, line))
    return "\n".join(lines)


def rules_page():
    lines = ["# The rules", "", "Each page says what a rule checks, why, how it is proved, and what to do. `ptx-debug explain F051` prints it.", ""]
    group = None
    table = (REPO / "analyzer" / "rules" / "rules.def").read_text(encoding="utf-8")
    row = re.compile(r'^(?:FRONT_END_)?RULE\((F\d+),(?: \w+,)?? (\w+), "([^"]+)", \d+, (\w+), \w+,\s*"((?:[^"\\]|\\.)*)"', re.MULTILINE)
    found = row.findall(table)
    if len(found) != len(list((REPO / "docs" / "rules").glob("F*.md"))):
        raise SystemExit(f"hook.py: rules.def has {len(found)} rows that are understood, docs/rules other pages")
    for rule, name, category, severity, says in found:
        if category != group:
            group = category
            lines += ["", f"## {category}", "", "| rule | | severity | what holds |", "|---|---|---|---|"]
        lines.append(f"| [{rule}]({rule}.md) | {name} | {severity} | {says} |")
    return "\n".join(lines) + "\n"


def on_files(files, config):
    for name, place in ABOVE.items():
        text = (REPO / name).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=moved(text, name)))
    files.append(File.generated(config, "rules/index.md", content=rules_page()))
    files.append(File.generated(config, "theme/site.css", abs_src_path=str(REPO / "tools" / "docs" / "theme" / "site.css")))
    return files


def on_page_markdown(markdown, page, config, files):
    uri = page.file.src_uri
    if uri in WIDE:
        page.meta["hide"] = ["toc"]
    return markdown if uri in (*ABOVE.values(), "rules/index.md") else moved(markdown, f"docs/{uri}")
