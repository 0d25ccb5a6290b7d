# %% [markdown]
# # A study reproduced: Belady's anomaly
#
# L. A. Belady, R. A. Nelson and G. S. Shedler, "An anomaly in space-time characteristics of certain programs running in a
# paging machine", Communications of the ACM 12(6), 1969: under FIFO more frames can mean more faults. Their string
# of references:

# %%
import numpy as np

import pagelab as pl

string = np.array([1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5], dtype=np.uint32)
faults = pl.replay(string, ["fifo", "lru", "opt"], [3, 4])
faults

# %% [markdown]
# FIFO has 9 faults in three frames and 10 in four. LRU and OPT are stack algorithms: more frames never hurt them.

# %%
misses = dict(zip(zip(faults["policy"], faults["frames"]), faults["misses"]))
assert (misses["fifo", 3], misses["fifo", 4]) == (9, 10)
assert misses["lru", 4] <= misses["lru", 3] and misses["opt", 4] <= misses["opt", 3]

# %% [markdown]
# The same in a policy of one's own.

# %%
from collections import deque


class Fifo:
    def __init__(self, frames):
        self.frames, self.queue = frames, deque()

    def on_hit(self, page):
        pass

    def on_miss(self, page):
        victim = self.queue.popleft() if len(self.queue) == self.frames else None
        self.queue.append(page)
        return victim


own = pl.replay(string, Fifo, [3, 4])
assert own["misses"] == [9, 10]
own
