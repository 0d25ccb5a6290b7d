# %% [markdown]
# # The miss ratio curve of a program
#
# Record a program's references with `pagelab trace`, or write page numbers from anywhere. Here a matrix is multiplied
# by rows and by columns: the same pages, another order.

# %%
import numpy as np

import pagelab as pl

# %% [markdown]
# A matrix of 512 × 512 doubles takes 512 pages of 4 KiB, one for each row. Walking it by rows stays on a page for 512
# references; walking it by columns changes pages at each.

# %%
rows = np.repeat(np.arange(512, dtype=np.uint32), 512)
columns = np.tile(np.arange(512, dtype=np.uint32), 512)
by_rows = pl.mrc(rows, ["lru", "opt"], sizes=[1, 64, 256, 511, 512])
by_columns = pl.mrc(columns, ["lru", "opt"], sizes=[1, 64, 256, 511, 512])

# %% [markdown]
# By rows one frame is enough: each page misses once.

# %%
by_rows

# %%
assert set(by_rows["misses"]) == {512}

# %% [markdown]
# By columns LRU misses at every reference until all 512 pages fit; OPT keeps what it can.

# %%
by_columns

# %%
assert by_columns["misses"][3] == 512 * 512 and by_columns["misses"][4] == 512
