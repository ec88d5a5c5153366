"""The examples of docs/python.md run."""

import pathlib
import re

import pytest

PAGE = (pathlib.Path(__file__).parent.parent.parent / "docs" / "python.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples(number, python):
    assert python(EXAMPLES[number]) == ""


def test_there_are_examples():
    assert len(EXAMPLES) == 4
