#!/usr/bin/env python3
"""Every kind of SARIF log that ptx-debug writes is valid by a schema, which rejects the same logs with a fault.

usage: sarif_schema.py REPO PTX_DEBUG [official]

The schema is docs/schemas/sarif-2.1.0.schema.json, or with `official` that of the OASIS standard, of which the
environment variable PTXKIT_SARIF_SCHEMA names a copy. Exits 77 where the Debian package python3-jsonschema or the copy
is missing."""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("SKIPPED: no SARIF was compared with its schema; the Debian package python3-jsonschema is not installed")
    sys.exit(77)

REPO, PTX_DEBUG = map(os.path.abspath, sys.argv[1:3])
HERE = pathlib.Path(REPO) / "fkr_tests/cli/ptx-debug"
EXAMPLE = f"{REPO}/docs/examples/misaligned_cursor.ptx"


def log_of(folder, *words, text=None):
    path = f"{folder}/log.sarif"
    subprocess.run([PTX_DEBUG, *words[:1], "--sarif", path, *words[1:]], input=text, capture_output=True, text=True,
                   check=False, cwd=folder, timeout=60)
    with open(path, encoding="utf-8") as file:
        log = json.load(file)
    os.remove(path)
    return log


def faults_in(log):
    """Copies of a log, each with one violation of the standard."""
    def changed(change):
        broken = copy.deepcopy(log)
        change(broken, broken["runs"][0])
        return broken
    yield "a field that is none", changed(lambda log, run: log.update(colour="red"))
    yield "another version", changed(lambda log, run: log.update(version="2.0.0"))
    yield "no tool", changed(lambda log, run: run.pop("tool"))
    yield "a rule without an id", changed(lambda log, run: run["tool"]["driver"]["rules"][0].pop("id"))
    yield "a level that is none", changed(lambda log, run: run["results"][0].update(level="critical"))
    yield "no message", changed(lambda log, run: run["results"][0].pop("message"))
    yield "line 0", changed(lambda log, run: run["results"][0]["locations"][0]["physicalLocation"]["region"].update(
        startLine=0))
    yield "a step without a place", changed(
        lambda log, run: next(result for result in run["results"] if "codeFlows" in result)["codeFlows"][0][
            "threadFlows"][0].pop("locations"))
    yield "an invocation that does not say how it ended", changed(
        lambda log, run: run["invocations"][0].pop("executionSuccessful"))


def schema_path():
    if sys.argv[3:] != ["official"]:
        return f"{REPO}/docs/schemas/sarif-2.1.0.schema.json"
    path = os.environ.get("PTXKIT_SARIF_SCHEMA")
    if not path:
        print("SKIPPED: no SARIF was compared with the schema of the OASIS standard; set PTXKIT_SARIF_SCHEMA to a copy of "
              "sarif-schema-2.1.0.json (GitHub: oasis-tcs/sarif-spec, sarif-2.1/schema)")
        sys.exit(77)
    return path


def main():
    with open(schema_path(), encoding="utf-8") as file:
        schema = json.load(file)
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    validator = kind(schema, format_checker=jsonschema.FormatChecker())
    with tempfile.TemporaryDirectory() as folder:
        with open(EXAMPLE, encoding="utf-8") as file:
            text = file.read()
        with open(f"{folder}/allowed file.ptx", "w", encoding="utf-8") as file:
            lines = text.split("\n")
            lines[67] += " // ptx-debug: allow F051 -- known"
            file.write("\n".join(lines))
        subprocess.run([PTX_DEBUG, "analyze", "--write-baseline", f"{folder}/known.json", EXAMPLE], capture_output=True,
                       check=False)
        subprocess.run([sys.executable, HERE / "inputs/containers.py", EXAMPLE], cwd=folder, check=True)
        with open(f"{folder}/bytes", "wb") as file:
            file.write(bytes([1]) * 256)
        fixtures = sorted(map(str, (pathlib.Path(REPO) / "fkr_tests/static/fixtures").rglob("refuted_*.ptx")))
        logs = {
            "a finding": log_of(folder, "analyze", "--falsify", EXAMPLE),
            "every rule's": log_of(folder, "analyze", "--falsify", *fixtures),
            "the pattern profile": log_of(folder, "analyze", "--falsify", "--profile", "pattern", EXAMPLE),
            "allowed, in a name with a space": log_of(folder, "analyze", "--falsify", "allowed file.ptx"),
            "a baseline": log_of(folder, "analyze", "--falsify", "--baseline", "known.json", EXAMPLE),
            "standard input": log_of(folder, "analyze", "--falsify", "-", text=text),
            "a container": log_of(folder, "analyze", "--falsify", "app"),
            "PTX that does not parse": log_of(folder, "analyze", str(HERE / "inputs/broken.ptx")),
            "a file that is not there": log_of(folder, "analyze", "gone.ptx", EXAMPLE),
            "a replay": log_of(folder, "analyze", "--falsify", "--replay", EXAMPLE),
            "faults of a run": log_of(folder, "run", f"{REPO}/docs/examples/decoder.ptx", "--block", "1", "--arg",
                                      "in:bytes", "--arg", "zero:256", "--arg", "u32:64"),
        }
    results = 0
    for name, log in logs.items():
        errors = sorted(validator.iter_errors(log), key=lambda error: list(map(str, error.absolute_path)))
        assert not errors, f"{name}: {list(errors[0].absolute_path)}: {errors[0].message[:300]}"
        results += len(log["runs"][0]["results"])
    assert len(logs["every rule's"]["runs"][0]["results"]) >= len(fixtures), "a program that is refuted has a result"
    assert logs["faults of a run"]["runs"][0]["results"], "the run has faults"
    suppressed = [result for result in logs["allowed, in a name with a space"]["runs"][0]["results"]
                  if result.get("suppressions")]
    assert suppressed, "an allowed finding is a suppressed result"
    faults = 0
    for what, broken in faults_in(logs["a finding"]):
        assert not validator.is_valid(broken), f"the schema lets {what} through"
        faults += 1
    print(f"{len(logs)} logs with {results} results are valid; {faults} faults are refused")


main()
