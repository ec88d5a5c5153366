#!/usr/bin/env python3
"""The JSON output of ptx-debug matches docs/schemas/ field for field, and the schemas reject documents with a fault.

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
FIXTURES = f"{REPO}/fkr_tests/static/fixtures"
EXAMPLE = f"{REPO}/docs/examples/misaligned_cursor.ptx"


def closed(schema):
    """The schema, but without permission for fields that it does not describe."""
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
    """Every object in a JSON value, except those whose keys are data."""
    if isinstance(value, dict):
        yield value
        parts = [part for key, part in value.items() if key not in ("mix", "directives")]
    else:
        parts = value if isinstance(value, list) else []
    for part in parts:
        yield from objects(part)


def damaged(document):
    """Copies of the document, each without one field or with a value of a type that no field has."""
    for index, fields in enumerate(list(objects(document))):
        for key in list(fields):
            for damage in ("remove", "replace"):
                copied = copy.deepcopy(document)
                target = list(objects(copied))[index]
                if damage == "remove":
                    del target[key]
                else:
                    target[key] = {"no": {"such": "value"}}
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

    # `document` must not have optional fields: `damaged` removes each field.
    def refuse_damaged(schema, what, document):
        nonlocal faults, refused
        for damage, copied in damaged(document):
            if schema.is_valid(copied):
                faults += 1
                print(f"the schema of {what} does not mind: {damage}")
            refused += 1

    runs = [["--falsify", EXAMPLE], [f"{INPUTS}/broken.ptx", "gone.ptx"], ["--profile", "pattern", EXAMPLE],
            ["--falsify", "--min-score", "50", "--assume-align", "16", INPUTS], ["--select", "F001", "-"],
            ["--replay", "--select", "F036,F051", f"{INPUTS}/handoff.ptx", EXAMPLE]]
    for words in runs:
        accept(report, " ".join(words), json.loads(run("analyze", "--json", *words, text=".version 8.0\n")))

    with tempfile.TemporaryDirectory() as folder:
        allowed, baseline = f"{folder}/allowed.ptx", f"{folder}/baseline.json"
        with open(allowed, "w", encoding="utf-8") as file:
            file.write("// ptx-debug: allow F051, F052 -- known\n" + text)
        run("analyze", "--select", "F081", "--write-baseline", baseline, EXAMPLE)
        document = json.loads(run("analyze", "--select", "F051,F081", "--baseline", baseline, "--json", allowed, EXAMPLE))
        accept(report, "suppressed", document)
        refuse_damaged(report, "the report", document)
        with open(baseline, encoding="utf-8") as file:
            accept(validator("baseline-1"), "baseline", json.load(file))
    accept(validator("rules-1"), "rules", json.loads(run("rules", "--json")))

    # Kernels with calls, shared arrays, .ptr parameters and module variables, and one of this project's kernels with a
    # cost block.
    kernels = [EXAMPLE, f"{INPUTS}/two.ptx", f"{FIXTURES}/F051/survived_in_callee.ptx",
               f"{FIXTURES}/F001/refuted_only_variable.ptx", f"{REPO}/fkr_tests/golden/demux_count.sm_75.ptx"]
    for verb, files in (("stats", kernels), ("info", kernels), ("cost", kernels[-1:])):
        schema, document = validator(f"{verb}-1"), json.loads(run(verb, "--json", *files))
        accept(schema, verb, document)
        refuse_damaged(schema, verb, document)
    for words in (["race.ptx", "--block", "64", "--arg", "zero:256"], ["good.ptx", "--block", "128", "--arg", "zero:508"],
                  ["good.ptx", "--block", "128", "--arg", "zero:512"], ["vectors.ptx", "--block", "16", "--arg", "zero:64"]):
        accept(validator("run-1"), "run", json.loads(run("run", f"{INPUTS}/{words[0]}", *words[1:], "--json", "-")))
    print(f"{documents} documents valid, {refused} damaged ones refused" if not faults else f"{faults} faults")
    return faults != 0


sys.exit(main())
