"""The examples: scripts, and the Python code of the documentation that is marked to run, must end without an error."""

import pathlib
import re
import subprocess
import sys

import pytest

PACKAGE = pathlib.Path(__file__).parent.parent
EXAMPLES = sorted((PACKAGE / "examples").glob("*.py"))
DOCUMENTS = [PACKAGE / "README.md", PACKAGE / "GUIDE.md"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example):
    module = example.stem.partition("_with_")[2]
    pytest.importorskip(module)
    done = subprocess.run([sys.executable, example], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_documentation(document):
    blocks = re.findall(r"^<!-- run -->\n```python\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    done = subprocess.run([sys.executable, "-c", "\n".join(blocks)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
