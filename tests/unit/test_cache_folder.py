"""The folder for compiled kernels is ours alone, or a temporary one with one warning."""

import os
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tumble.errors import TumbleWarning
from tumble.kernels import cache

posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes of POSIX")


@pytest.fixture
def found(tmp_path, monkeypatch):
    """The root that is taken, and the one warning or none."""
    monkeypatch.setenv("TUMBLE_CACHE_DIR", str(tmp_path / "base"))

    def find():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            root = cache.cache_root.__wrapped__()
        assert all(issubclass(w.category, TumbleWarning) for w in said)
        return root, [str(w.message) for w in said]

    return find


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@posix
def test_ours_is_made_for_us_alone(found, tmp_path):
    before = os.umask(0o002)
    try:
        root, said = found()
    finally:
        os.umask(before)
    assert root == tmp_path / "base" / "tumble" and mode(root) == 0o700 and not said
    assert found() == (root, [])  # the second time it is there


@posix
@pytest.mark.parametrize("bits", [0o770, 0o702, 0o777])
def test_a_folder_that_others_can_write_to_is_refused(found, tmp_path, bits):
    ours = tmp_path / "base" / "tumble"
    ours.mkdir(parents=True)
    ours.chmod(bits)
    root, said = found()
    assert root != ours and mode(root) == 0o700 and len(said) == 1
    assert str(ours) in said[0] and "chmod go-w" in said[0] and "TUMBLE_CACHE_DIR" in said[0]
    ours.chmod(0o755)  # others may read what is there
    assert found() == (ours, [])


@posix
def test_a_folder_of_somebody_else_is_refused(found, tmp_path, monkeypatch):
    ours = found()[0]
    monkeypatch.setattr(os, "getuid", lambda: ours.stat().st_uid + 1)
    root, said = found()
    assert root != ours and len(said) == 1 and "belongs to another user" in said[0]


def test_without_a_home_there_is_a_temporary_cache(found, monkeypatch):
    monkeypatch.delenv("TUMBLE_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    root, said = found()
    assert root.is_dir() and len(said) == 1 and "home directory" in said[0]


SCRIPT = """
from tumble.kernels.jit import loop
@loop
def total(x):
    return x + x
print(total(2.0), total._cache.cache_path)
"""


def test_commands_work_where_no_cache_can_be_written(tmp_path):
    """A file is where the folder belongs (also root, who may write everywhere, cannot use it): one warning, an answer,
    and nothing left behind."""
    (tmp_path / "base").write_text("no folder")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    env = dict(os.environ, TUMBLE_CACHE_DIR=str(tmp_path / "base"))
    out = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, timeout=300)
    assert out.returncode == 0, out.stderr
    value, place = out.stdout.split()
    assert value == "4.0" and not Path(place).exists()
    assert out.stderr.count("TumbleWarning") == 1 and "Traceback" not in out.stderr


def test_the_warning_of_a_command_is_one_line(tmp_path):
    """Python's own way of showing it added a line of our code."""
    (tmp_path / "base").write_text("no folder")
    env = dict(os.environ, TUMBLE_CACHE_DIR=str(tmp_path / "base"))
    command = [sys.executable, "-m", "tumble", "--version"]
    out = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert out.returncode == 0 and out.stdout.startswith("tumble ")
    assert out.stderr.startswith("tumble: warning: kernel cache: must be a folder") and out.stderr.count("\n") == 1
