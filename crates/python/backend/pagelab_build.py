"""Builds the wheel: maturin's backend, after the command line and its tracer were built and laid into the package.

One wheel has all three of one version. `PAGELAB_PROFILE` names another profile of cargo's than release.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import maturin
from maturin import prepare_metadata_for_build_wheel  # noqa: F401

CRATE = Path(__file__).resolve().parent.parent
WORKSPACE = CRATE.parent.parent
PROGRAMS = ["pagelab", "libpagelab_tracer.so", "libpagelab_preload.so"]


CARGO = os.environ.get("CARGO", "cargo")


def get_requires_for_build_wheel(config_settings=None):
    """Nothing more than maturin. Without Rust it would download an installer."""
    if shutil.which(CARGO) is None:
        sys.exit("pagelab is built from source with Rust, which is not installed: see https://rustup.rs, or install a wheel")
    return maturin.get_requires_for_build_wheel(config_settings)


def commit():
    """The commit of the sources, with a digest of what was changed since; None outside a clone."""

    def git(*words):
        return subprocess.run(["git", "-C", WORKSPACE, *words], check=True, capture_output=True).stdout

    try:
        # A folder within a clone of something else has none of its files.
        git("ls-files", "--error-unmatch", "Cargo.toml")
        changes = git("diff", "HEAD")
        changed = f"+{hashlib.sha256(changes).hexdigest()[:12]}" if changes else ""
        return git("rev-parse", "HEAD").decode().strip() + changed
    except (OSError, subprocess.CalledProcessError):
        return None


def record_commit(programs):
    """Tells a package whose programs are in this folder of which commit it is."""
    (programs / "commit").write_text(commit() or "")


def lay_in():
    """Builds the programs and copies them into the package."""
    profile = os.environ.get("PAGELAB_PROFILE", "release")
    crates = [word for crate in ("pagelab", "pagelab-tracer", "pagelab-preload") for word in ("-p", crate)]
    build = [CARGO, "build", "--locked", "--profile", profile, *crates]
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
    record_commit(programs)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    lay_in()
    settings = dict(config_settings or {})
    profile = os.environ.get("PAGELAB_PROFILE", "release")
    settings.setdefault("build-args", f"--profile {profile} --locked")
    return maturin.build_wheel(wheel_directory, settings, metadata_directory)
