"""The worked notebooks in docs/notebooks are executed: each cell without an error, with what it shows."""

from pathlib import Path

import jupytext
import nbclient
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "notebooks"
# How many of its outputs are the report's page.
PAGES = {"miss-curve": 2, "compare": 1, "study": 2}


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_a_worked_notebook_runs(name, tmp_path):
    notebook = jupytext.read(FOLDER / f"{name}.py")
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pages = [output for output in outputs if "<iframe" in output.get("data", {}).get("text/html", "")]
    assert len(pages) == PAGES[name]
    assert all("svg" in output["data"]["text/html"] for output in pages)
