"""Reports are deterministic: every format of analyze, and every verb that writes about files, gives the same bytes for
any number of threads and any number of runs. Another order of the files moves the parts of the output and changes
nothing in them.  usage: same_bytes.py REPOSITORY PTX-DEBUG"""
import json
import os
import subprocess
import sys
import tempfile

repository, program = (os.path.abspath(path) for path in sys.argv[1:3])
FOLDERS = ["docs/examples", "fkr_tests/cli/ptx-debug/inputs", "fkr_tests/static/fixtures/F036", "fkr_tests/static/fixtures/F051",
           "fkr_tests/static/fixtures/F081", "fkr_tests/static/fixtures/F002"]
FORMATS = ["text", "json", "sarif", "github"]
failures = []


def ptx_files():
    files = []
    for folder in FOLDERS:
        files += [f"{folder}/{name}" for name in sorted(os.listdir(os.path.join(repository, folder)))
                  if name.endswith(".ptx")]
    return files


def run(*words):
    done = subprocess.run([program, *words], cwd=repository, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode not in (0, 1, 2, 3, 4, 10):
        sys.exit(f"{' '.join(words[:6])}: exit {done.returncode}: {done.stderr.decode(errors='replace')[:300]}")
    return done.stdout + done.stderr


def written(option, *words):
    """The file that the program writes because of `option`."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out")
        run(*words, option, path)
        with open(path, "rb") as file:
            return file.read()


def expect_same(what, first, second):
    if first == second:
        return
    at = next((i for i, (a, b) in enumerate(zip(first, second)) if a != b), min(len(first), len(second)))
    failures.append(f"{what}: differs at byte {at}: {first[max(0, at - 60):at + 40]!r} and {second[max(0, at - 60):at + 40]!r}")


def by_file(report):
    return {file["path"]: json.dumps(file) for file in json.loads(report)["files"]}


def results_by_file(log):
    found = {}
    for result in json.loads(log)["runs"][0]["results"]:
        result.pop("ruleIndex", None)
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        found.setdefault(uri, []).append(json.dumps(result, sort_keys=True))
    return {uri: sorted(results) for uri, results in found.items()}


files = ptx_files()
analyze = ["analyze", "--no-config", "--falsify"]
asked = {f"analyze --format {name}": [*analyze, "--format", name] for name in FORMATS}
asked |= {"analyze --verbose": [*analyze, "--verbose"], "check": ["check"], "stats": ["stats"], "stats --json": ["stats", "--json"],
          "info": ["info"], "info --json": ["info", "--json"]}
for name, words in asked.items():
    one = run(*words, "-j1", *files)
    if not one:
        failures.append(f"{name}: nothing was written")
    for jobs in ("-j1", "-j2", "-j7"):
        expect_same(f"{name} {jobs}", one, run(*words, jobs, *files))
for option in ("--html", "--write-baseline"):
    one = written(option, *analyze, "-j1", *files)
    for jobs in ("-j1", "-j2"):
        expect_same(f"{option} {jobs}", one, written(option, *analyze, jobs, *files))

backwards = files[::-1]
forward_json, backward_json = (by_file(run(*analyze, "--format", "json", "-j2", *order)) for order in (files, backwards))
if forward_json != backward_json or len(forward_json) != len(files):
    failures.append("json: what is said of a file depends on the files beside it")
forward_sarif, backward_sarif = (results_by_file(run(*analyze, "--format", "sarif", "-j2", *order))
                                 for order in (files, backwards))
if forward_sarif != backward_sarif or not forward_sarif:
    failures.append("sarif: what is said of a file depends on the files beside it")

print("\n".join(failures) or f"{len(files)} files, {len(asked) + 2} ways of asking, the same bytes")
sys.exit(bool(failures))
