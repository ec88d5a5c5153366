#!/usr/bin/env python3
"""What ptx-debug writes as JSON is what docs/schemas/ says, field for field, and the schemas refuse what is not.

usage: json_schemas.py REPO PTX_DEBUG; exits 77 where the Debian package python3-jsonschema is missing."""
import copy
import json
import os
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("SKIPPED: no JSON was compared with its schema; the Debian package python3-jsonschema is not installed")
    sys.exit(77)

REPO, PTX_DEBUG = map(os.path.abspath, sys.argv[1:3])
INPUTS = f"{REPO}/fkr_tests/cli/ptx-debug/inputs"
EXAMPLE = f"{REPO}/docs/examples/misaligned_cursor.ptx"


def closed(schema):
    """The schema without room for fields that it does not describe."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    if "properties" in schema and "required" in schema:
        result["additionalProperties"] = False
    return result


def validator(name):
    with open(f"{REPO}/docs/schemas/{name}.schema.json", encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(closed(schema))


def run(*words, text=None):
    return subprocess.run([PTX_DEBUG, *words], input=text, capture_output=True, text=True, check=False).stdout


def objects(value):
    """Every object in a JSON value."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(part)


def damaged(document):
    """Copies of the document, each without one of its fields or with one of a type that no field has."""
    for index, fields in enumerate(list(objects(document))):
        for key in list(fields):
            for damage in ("remove", "replace"):
                copied = copy.deepcopy(document)
                target = list(objects(copied))[index]
                if damage == "remove":
                    del target[key]
                else:
                    target[key] = {"no": "such value"}
                yield f"{damage} {key}", copied


def main():
    with open(EXAMPLE, encoding="utf-8") as file:
        text = file.read()
    report = validator("report-1")
    faults = documents = refused = 0

    def accept(schema, what, document):
        nonlocal faults, documents
        documents += 1
        for error in schema.iter_errors(document):
            faults += 1
            print(f"{what}: {list(error.path)}: {error.message[:300]}")

    runs = [["--falsify", EXAMPLE], [f"{INPUTS}/broken.ptx", "gone.ptx"], ["--profile", "pattern", EXAMPLE],
            ["--falsify", "--min-score", "50", "--assume-align", "16", INPUTS], ["--select", "F001", "-"]]
    for words in runs:
        accept(report, " ".join(words), json.loads(run("analyze", "--json", *words, text=".version 8.0\n")))

    with tempfile.TemporaryDirectory() as folder:
        allowed, baseline = f"{folder}/allowed.ptx", f"{folder}/baseline.json"
        with open(allowed, "w", encoding="utf-8") as file:
            file.write("// ptx-debug: allow F051, F052 -- known\n" + text)
        run("analyze", "--select", "F081", "--write-baseline", baseline, EXAMPLE)
        document = json.loads(run("analyze", "--select", "F051,F081", "--baseline", baseline, "--json", allowed, EXAMPLE))
        accept(report, "suppressed", document)
        # `damaged` must not meet a field that may be left out.
        for what, copied in damaged(document):
            if report.is_valid(copied):
                faults += 1
                print(f"the schema of the report does not mind: {what}")
            refused += 1
        with open(baseline, encoding="utf-8") as file:
            accept(validator("baseline-1"), "baseline", json.load(file))
    accept(validator("rules-1"), "rules", json.loads(run("rules", "--json")))
    print(f"{documents} documents valid, {refused} damaged ones refused" if not faults else f"{faults} faults")
    return faults != 0


sys.exit(main())
