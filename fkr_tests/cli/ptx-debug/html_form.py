"""Checks an HTML report: tags nest, ids are unique, every link leads to a place in the page, nothing is loaded from
elsewhere, and its findings are those of the JSON report. Prints its counts; exits 1 with the first fault.

usage: html_form.py REPORT.html REPORT.json"""
import collections
import html.parser
import json
import re
import sys

VOID = {"meta", "input", "br"}
OPTIONAL_END = {"tr", "td", "th", "li", "dt", "dd"}  # HTML lets their end tags be left out
LOADS = {"src", "srcset", "data", "action", "formaction", "poster", "background", "xlink:href"}


def fail(what):
    sys.exit(f"not a report: {what}")


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.links = [], set(), []
        self.classes = collections.Counter()
        self.findings = []
        self.styles_and_scripts = ""
        self.policy = ""

    def handle_starttag(self, tag, attributes):
        fields = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name in LOADS or name.startswith("on") or (name == "style" and "url" in value):
                fail(f"<{tag} {name}={value}>")
        if "id" in fields:
            if fields["id"] in self.ids:
                fail(f"two elements are called {fields['id']}")
            self.ids.add(fields["id"])
        if "href" in fields:
            self.links.append(fields["href"])
        if tag == "meta" and fields.get("http-equiv") == "Content-Security-Policy":
            self.policy = fields["content"]
        self.classes.update((tag, word) for word in fields.get("class", "").split())
        if "finding" in fields.get("class", "").split():
            self.findings.append(fields["data-fingerprint"] + fields["data-rule"])

    def handle_endtag(self, tag):
        while self.open and self.open[-1] in OPTIONAL_END and self.open[-1] != tag:
            self.open.pop()
        if not self.open or self.open.pop() != tag:
            fail(f"</{tag}> at {self.getpos()} closes nothing")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_data(self, data):
        if self.open and self.open[-1] in ("style", "script"):
            self.styles_and_scripts += data


with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
page = Page()
page.feed(text)
page.close()
if page.open:
    fail(f"{page.open} are not closed")
for link in page.links:
    if not link.startswith("#") or link[1:] not in page.ids:
        fail(f"the link {link} leads nowhere")
if "default-src 'none'" not in page.policy:
    fail("no policy against loading")
if re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import\(", page.styles_and_scripts):
    fail("style or script loads something")
outside = set(re.findall(r"https?://[^\"' <]+", text)) - {"http://www.w3.org/2000/svg"}
if outside:
    fail(f"it names {outside}")
with open(sys.argv[2], encoding="utf-8") as file:
    report = json.load(file)
expected = [finding["fingerprint"] + verdict["rule"] for one in report["files"] for kernel in one.get("kernels", [])
            for verdict in kernel["verdicts"] for finding in verdict["findings"] + verdict["suppressed"]
            if not one["diagnostics"]]
if sorted(page.findings) != sorted(expected):
    fail(f"{len(page.findings)} findings, expected {len(expected)}")
count = page.classes
print(f"{count['section', 'kernel']} sections, {len(page.findings)} findings, {count['article', 'suppressed']} suppressed, "
      f"{count['table', 'ptx']} texts, {count['table', 'source']} sources, {count['svg', 'flow']} graphs, "
      f"{count['svg', 'memory']} memories, {count['svg', 'banks']} bank pictures")
