# %% [markdown]
# # Two kernels side by side
#
# The same reference stream on two simulated kernels. `kernel:PATH` instead of a model boots an image in a virtual
# machine; `host` is the running kernel.

# %%
import tempfile

import pagelab as pl

notebook = pl.Notebook(tempfile.mkdtemp() + "/compare.db")
runs = pl.run(
    "mapanon",
    on=["model:linux-lru", "model:linux-mglru"],
    pattern="zipf:0.8",
    pages=4_000,
    references=200_000,
    memory="8M",
    notebook=notebook.path,
)
runs

# %% [markdown]
# The comparison as data, and as the report's page.

# %%
compared = notebook.compare("mapanon-1", "mapanon-2")
print(compared)

# %%
assert len(notebook.runs()) == 2

# %% [markdown]
# Every figure, for a data frame.

# %%
import polars

seen = polars.DataFrame(notebook.observations())
seen.filter(polars.col("kind") == "metric").pivot(on="run", index="name", values="value")
