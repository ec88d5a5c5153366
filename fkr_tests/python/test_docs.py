"""The examples of docs/python.md run, and the inputs of docs/python-tutorial.md give the outputs there."""

import doctest
import os
import pathlib
import re

import pytest

PAGE = (pathlib.Path(__file__).parent.parent.parent / "docs" / "python.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples(number, python):
    environment = {}
    if "import device" in EXAMPLES[number]:
        environment["PTXKIT_LIBCUDA"] = os.environ.get("PTXKIT_EMULATED_DRIVER") or pytest.skip("no GPU for it")
    assert python(EXAMPLES[number], **environment) == ""


def test_there_are_examples():
    assert len(EXAMPLES) == 7


def test_tutorial():
    """What ends in "..." may be longer."""
    path = str(pathlib.Path(__file__).parent.parent.parent / "docs" / "python-tutorial.md")
    failed, tried = doctest.testfile(path, module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8")
    assert failed == 0 and tried > 20
