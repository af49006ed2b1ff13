"""The examples: scripts, and the Python code of the documentation that is marked to run, must end without an error."""

import pathlib
import re
import subprocess
import sys

import pytest

PACKAGE = pathlib.Path(__file__).parent.parent
EXAMPLES = sorted((PACKAGE / "examples").glob("*.py"))
DOCUMENTS = [PACKAGE / "README.md", PACKAGE / "GUIDE.md", *sorted((PACKAGE / "docs").glob("*.md"))]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example):
    module = example.stem.partition("_with_")[2]
    pytest.importorskip(module)
    done = subprocess.run([sys.executable, example], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_examples_of_the_documentation(document):
    blocks = re.findall(r"^<!-- run -->\n```python\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)
    if document.stem in ("ray", "reference", "spark"):
        # Ray is an example, the examples of Spark run in the tests of Spark, and those of the reference in docstrings.
        assert not blocks
        return
    assert blocks
    if document.parent.name == "docs":
        pytest.importorskip(document.stem)
    done = subprocess.run([sys.executable, "-c", "\n".join(blocks)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_reference_is_that_of_the_docstrings():
    for module in ("duckdb", "polars", "pyspark"):
        pytest.importorskip(module)
    done = subprocess.run([sys.executable, PACKAGE / "docs" / "reference.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
