"""Builds the wheel: maturin's backend, after the command line and its tracer were built and laid into the package.

One wheel has all three of one version. `PAGELAB_PROFILE` names another profile of cargo's than release.
"""

import os
import shutil
import subprocess
from pathlib import Path

import maturin
from maturin import get_requires_for_build_wheel, prepare_metadata_for_build_wheel  # noqa: F401

CRATE = Path(__file__).resolve().parent.parent
WORKSPACE = CRATE.parent.parent
PROGRAMS = ["pagelab", "libpagelab_tracer.so", "libpagelab_preload.so"]


def lay_in():
    """Builds the programs and copies them into the package."""
    profile = os.environ.get("PAGELAB_PROFILE", "release")
    cargo = os.environ.get("CARGO", "cargo")
    crates = [word for crate in ("pagelab", "pagelab-tracer", "pagelab-preload") for word in ("-p", crate)]
    build = [cargo, "build", "--locked", "--profile", profile, *crates]
    subprocess.run(build, cwd=WORKSPACE, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", WORKSPACE / "target"))
    built = target / ("debug" if profile == "dev" else profile)
    programs = CRATE / "python" / "pagelab" / "_bin"
    programs.mkdir(exist_ok=True)
    for name in PROGRAMS:
        # In the place of the old one, which may be running.
        made = programs / f".{name}"
        shutil.copy2(built / name, made)
        if shutil.which("strip"):
            subprocess.run(["strip", "--strip-debug", made], check=True)
        made.rename(programs / name)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    lay_in()
    settings = dict(config_settings or {})
    profile = os.environ.get("PAGELAB_PROFILE", "release")
    settings.setdefault("build-args", f"--profile {profile} --locked")
    return maturin.build_wheel(wheel_directory, settings, metadata_directory)
