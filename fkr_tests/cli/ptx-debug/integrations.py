#!/usr/bin/env python3
"""The GitHub Action, the workflow and the pre-commit hooks do what their definitions say, as far as it can be tested offline: the
YAML parses, every input is used, and the steps run as the runner would run them.

usage: integrations.py REPO PTX_DEBUG; exits 77 without the Debian package python3-yaml."""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import zipfile

try:
    import yaml
except ImportError:
    print("SKIPPED: neither the Action nor the hooks were tried; the Debian package python3-yaml is not installed")
    sys.exit(77)

REPO, PTX_DEBUG = map(os.path.abspath, sys.argv[1:3])
ACTION = f"{REPO}/tools/ptx-debug/action"
GOOD, BAD = f"{REPO}/fkr_tests/cli/ptx-debug/inputs/good.ptx", f"{REPO}/docs/examples/misaligned_cursor.ptx"


def load(path):
    with open(path, encoding="utf-8") as file:
        return yaml.safe_load(file)


action = load(f"{ACTION}/action.yml")
install, build, analyze = action["runs"]["steps"]


def run_action(folder, **given):
    """Exit code, output and $GITHUB_OUTPUT of the Analyze step."""
    given.setdefault("program", PTX_DEBUG)
    inputs = {name: given.get(name.replace("-", "_"), field.get("default")) for name, field in action["inputs"].items()}
    expand = lambda text: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: inputs[match[1]], text)
    environment = dict(os.environ, GITHUB_ACTION_PATH=ACTION, GITHUB_OUTPUT=f"{folder}/output",
                       GITHUB_STEP_SUMMARY=f"{folder}/summary", RUNNER_TEMP=f"{folder}/temp",
                       **{name: expand(value) for name, value in analyze["env"].items()})
    assert "${{" not in analyze["run"], "an input is part of a command"
    open(environment["GITHUB_OUTPUT"], "w", encoding="utf-8").close()
    done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", analyze["run"]], cwd=folder, env=environment,
                          capture_output=True, text=True, check=False)
    with open(environment["GITHUB_OUTPUT"], encoding="utf-8") as file:
        return done.returncode, done.stdout + done.stderr, file.read()


def check_action():
    assert action["runs"]["using"] == "composite"
    assert analyze["shell"] == build["shell"] == install["shell"] == "bash"
    used = set(re.findall(r"inputs\.([\w-]+)", json.dumps([analyze["env"], build["if"], install["if"]])))
    assert used == set(action["inputs"]), used ^ set(action["inputs"])
    assert action["outputs"]["exit-code"]["value"] == "${{ steps.analyze.outputs.exit-code }}"
    command = shlex.split(build["run"].replace("$GITHUB_ACTION_PATH", ACTION))
    assert os.access(command[0], os.X_OK) and command[1:] == ["build", "ptx-debug"], command
    with tempfile.TemporaryDirectory() as folder:
        code, text, output = run_action(folder, files=BAD)
        assert code == 3 and text.count("::error file=") >= 1 and output == "exit-code=3\n", (code, text, output)
        with open(f"{folder}/ptx-debug.sarif", encoding="utf-8") as file:
            assert json.load(file)["version"] == "2.1.0"
        with open(f"{folder}/summary", encoding="utf-8") as file:
            assert "exit 3" in file.read()
        for name in ("one.ptx", "two words.ptx"):
            with open(GOOD, encoding="utf-8") as source, open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                file.write(source.read())
        code, text, _ = run_action(folder, files="\n*.ptx\n", falsify="true", html="r.html", sarif="")
        assert code == 0 and "two words.ptx: score" in text and os.path.exists(f"{folder}/r.html"), (code, text)
        code, text, _ = run_action(folder, files="*.gone")
        assert code == 11 and "*.gone" in text, (code, text)
        code, text, _ = run_action(folder, files="\n")
        assert code == 64 and "names no file" in text, (code, text)
        code, text, _ = run_action(folder, files="$(touch hacked); touch hacked", min_score="90")
        assert code == 11 and not os.path.exists(f"{folder}/hacked"), (code, text)
        # A folder whose name contains a line end must not name a file elsewhere, and names must not act in log and
        # summary.
        os.makedirs(f"{folder}/a\n{folder}")
        with open(f"{folder}/secret", "w", encoding="utf-8") as file:
            file.write("secret word")
        for name in (f"a\n{folder}/secret", "::error::forged.ptx", "##[error]forged.ptx", "```\n## forged.ptx"):
            with open(BAD, encoding="utf-8") as source, open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                file.write(source.read())
        code, text, _ = run_action(folder, files="a*/*/*/s*\n:*.ptx\n#*.ptx\n`*.ptx\n##[gone.ptx")
        assert code == 11 and "secret word" not in text and "##[" not in text, (code, text)
        assert all(line.startswith(("::error file=", "::error::#?[gone")) for line in text.splitlines()
                   if line.lstrip().startswith("::")), text
        with open(f"{folder}/summary", encoding="utf-8") as file:
            assert all(line.startswith(("### ptx-debug", "    ")) or not line.strip() for line in file), "forged summary"


def wheel_of(folder, program):
    """A wheel with the name, the version and the script of tools/python, whose script runs a program that is there."""
    module = f"import os, sys\n\ndef ptx_debug():\n    os.execv({program!r}, ['ptx-debug', *sys.argv[1:]])\n"
    with open(f"{REPO}/tools/python/pyproject.toml", encoding="utf-8") as file:
        script = re.search(r'^ptx-debug = "ptxkit\._programs:(\w+)"$', file.read(), re.M)
    assert script[1] == "ptx_debug"
    info = "ptxkit-0.1.0.dist-info"
    files = {"ptxkit/__init__.py": "", "ptxkit/_programs.py": module,
             f"{info}/METADATA": "Metadata-Version: 2.1\nName: ptxkit\nVersion: 0.1.0\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
             f"{info}/entry_points.txt": "[console_scripts]\nptx-debug = ptxkit._programs:ptx_debug\n"}
    path = f"{folder}/ptxkit-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"]))
    return path


def install_wheel(folder, wheel):
    assert "${{" not in install["run"], "an input is part of a command"
    os.makedirs(f"{folder}/temp", exist_ok=True)
    environment = dict(os.environ, RUNNER_TEMP=f"{folder}/temp", PTX_WHEEL=wheel, PIP_NO_INDEX="1")
    return subprocess.run(["bash", "-e", "-o", "pipefail", "-c", install["run"]], cwd=folder, env=environment,
                          capture_output=True, text=True, check=False)


def check_wheel():
    """The Action with the input wheel, and pre-commit's hook in docs/reports.md that installs it."""
    with tempfile.TemporaryDirectory() as folder:
        done = install_wheel(folder, wheel_of(folder, PTX_DEBUG))
        assert done.returncode == 0, done.stderr
        code, text, output = run_action(folder, files=BAD, program="", wheel="ptxkit")
        assert code == 3 and "::error file=" in text and output == "exit-code=3\n", (code, text, output)
        done = install_wheel(folder, "--requirement=/etc/passwd")
        assert done.returncode != 0 and "requirement" in done.stderr, done
        with open(f"{REPO}/docs/reports.md", encoding="utf-8") as file:
            snippet = re.search(r"```yaml\n(- repo: local\n.*?)```", file.read(), re.DOTALL)[1]
        [repo] = yaml.safe_load(snippet)
        [hook] = repo["hooks"]
        assert hook["language"] == "python" and hook["additional_dependencies"] == ["ptxkit==0.1.0"], hook
        [stock] = [each for each in load(f"{REPO}/.pre-commit-hooks.yaml") if each["id"] == hook["id"]]
        differing = {key for key in {**hook, **stock} if hook.get(key) != stock.get(key)}
        assert differing == {"language", "additional_dependencies", "description"}, differing
        program, *words = shlex.split(hook["entry"]) + hook["args"]
        codes = [subprocess.run([f"{folder}/temp/ptxkit/bin/{program}", *words, file], capture_output=True, check=False)
                 .returncode for file in (GOOD, BAD)]
        assert codes == [0, 3], codes


def check_hooks():
    hooks = load(f"{REPO}/.pre-commit-hooks.yaml")
    assert [hook["id"] for hook in hooks] == ["ptx-debug", "ptx-debug-check"]
    for hook in hooks:
        assert hook["language"] == "system" and re.search(hook["files"], BAD) and not re.search(hook["files"], "k.cu")
        program, *words = shlex.split(hook["entry"]) + hook["args"]
        assert program == "ptx-debug" and words[-1] == "--", (program, words)
        # A file name that looks like an option is still a file name.
        with tempfile.TemporaryDirectory() as folder:
            names = ["--config=evil.ptx", "--html=page.ptx", "-h.ptx"]
            for name in names:
                with open(GOOD, encoding="utf-8") as source, open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                    file.write(source.read())
            with open(f"{folder}/evil.ptx", "w", encoding="utf-8") as file:
                file.write("html = hacked.html\n")
            done = subprocess.run([PTX_DEBUG, *words, *names], cwd=folder, capture_output=True, check=False)
            assert done.returncode == 0 and sorted(os.listdir(folder)) == sorted([*names, "evil.ptx"]), (hook["id"], done)
        codes = [subprocess.run([PTX_DEBUG, *words, *files], capture_output=True, check=False).returncode
                 for files in ([GOOD], [GOOD, BAD], [f"{os.path.dirname(GOOD)}/broken.ptx"])]
        assert codes == ([0, 3, 10] if words[0] == "analyze" else [0, 0, 10]), (hook["id"], codes)
    return len(hooks)


def check_workflow(file, triggers, needed):
    """A workflow of the project: its commands exist, and the Action is given inputs that it has."""
    workflow = load(f"{REPO}/.github/workflows/{file}")
    assert workflow["permissions"] == {"contents": "read"}, file
    commands = set()
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 90 and job["container"].startswith("debian:"), name
        assert [step["uses"].split("@")[0] for step in job["steps"] if "uses" in step][0] == "actions/checkout", name
        for step in job["steps"]:
            if "run" in step:
                words = shlex.split(step["run"])
                commands.add(" ".join(words[:2]) if words[0] == "./dev" else words[0])
                named = [word for word in words if word.startswith(("./dev", ".ci/", "tools/", "fkr_tests/", "docs/"))]
                missing = [word for word in named if not os.path.exists(f"{REPO}/{word}")]
                assert not missing, (file, missing)
            elif step["uses"].startswith("./"):
                assert f"{REPO}/{step['uses']}" == f"{REPO}/./tools/ptx-debug/action", step
                assert set(step["with"]) <= set(action["inputs"]), set(step["with"]) - set(action["inputs"])
                assert os.path.exists(f"{REPO}/{step['with']['files']}"), step
    for command in needed:
        assert command in commands and os.access(f"{REPO}/{command.split()[0]}", os.X_OK), (command, commands)
    with open(f"{REPO}/dev", encoding="utf-8") as dev:
        verbs = set(re.findall(r"^  ([a-z]+)\)", dev.read(), re.M))
    assert all(command.split()[1] in verbs for command in commands if command.startswith("./dev ")), (commands, verbs)
    assert workflow[True] == triggers, file  # YAML reads `on` as true
    return len(workflow["jobs"])


check_action()
check_wheel()
jobs = check_workflow("ci.yml", {"push": {"branches": ["main"]}, "pull_request": None}, [".ci/run", "./dev static"])
jobs += check_workflow("release.yml", {"push": {"tags": ["v*"]}}, ["./dev packages", "./dev static", "tools/deb_check.sh"])
print(f"the workflows have {jobs} jobs")
print(f"the Action ran with {len(action['inputs'])} inputs, {check_hooks()} hooks ran")
