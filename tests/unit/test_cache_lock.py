"""Several processes may compile into one cache at the same time."""

import os
import subprocess
import sys

KERNEL = """
import os, sys, time
import numpy as np
from numba.core.caching import IndexDataCacheFile
from tumble.kernels.jit import loop

number, folder, kinds = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
read, write = IndexDataCacheFile._load_index, IndexDataCacheFile._save_data

def read_slowly(self):  # the last to come writes the index first ..
    found = read(self)
    time.sleep(0.3 * (2 - number))
    return found

def write_slowly(self, name, data):  # .. and its code last
    time.sleep(0.7 * number)
    write(self, name, data)

@loop
def total(x):
    s = x[0]
    for k in range(1, x.size):
        s += x[k]
    return s

if number >= 0:
    IndexDataCacheFile._load_index, IndexDataCacheFile._save_data = read_slowly, write_slowly
    open(os.path.join(folder, f"ready{number}"), "w").close()
    while sum(name.startswith("ready") for name in os.listdir(folder)) < 3:
        time.sleep(0.01)
for kind in kinds:
    x = np.arange(10).astype(kind)
    assert total(x) == 45, kind
print(sum(total.stats.cache_hits.values()))
"""
KINDS = ("float64", "int32", "complex128")


def test_processes_that_compile_at_the_same_time_do_not_mix_up_their_code(tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    environment = {**os.environ, "TUMBLE_CACHE_DIR": str(tmp_path / "cache")}

    def start(number, *kinds):
        command = [sys.executable, str(path), str(number), str(tmp_path), *kinds]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    running = [start(k, KINDS[k]) for k in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    last = start(-1, *KINDS)
    found = last.communicate()[0]
    assert last.returncode == 0  # the wrong code gives a wrong sum, or a crash
    assert found.strip() == "3"  # and none is lost
