#!/usr/bin/env python3
"""Make a release of the last commit in `build/release`: built twice, compared, checked, listed, summed and signed.

python scripts/release.py         (`make release`) a dry run, signed with a key that is thrown away
python scripts/release.py KEY     signed with this SSH key; the commit must be the tag v<version>, and all be committed

It uploads nothing. Why SSH signatures: docs/design/decisions/releases.md.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

from packaging.metadata import Metadata

from scripts import sbom

ROOT = Path(__file__).resolve().parent.parent
SIGNER, PURPOSE = "kreassign-releases", "kreassign-release"
SUMS, SIGNATURE, SIGNERS = "SHA256SUMS", "SHA256SUMS.sig", "allowed_signers"


class NoReleaseError(Exception):
    """This cannot be released. The text says why."""


def build(root: Path, work: Path) -> tuple[Path, Path]:
    """The source distribution of the last commit, and the wheel that is made of it alone; in an empty folder."""
    epoch = int(_git(root, "log", "-1", "--format=%ct"))
    source = work / "source"
    _unpack(subprocess.run(["git", "archive", "HEAD"], cwd=root, check=True, capture_output=True).stdout, source)
    _build("--sdist", source, work, epoch)
    (sdist,) = work.glob("*.tar.gz")
    sdist.write_bytes(normal_sdist(sdist.read_bytes(), epoch))
    unpacked = work / "sdist"
    _unpack(gzip.decompress(sdist.read_bytes()), unpacked)
    (inside,) = unpacked.iterdir()
    _build("--wheel", inside, work, epoch)
    (wheel,) = work.glob("*.whl")
    return sdist, wheel


def normal_sdist(archive: bytes, epoch: int) -> bytes:
    """Sort the files, with one time and no owner: setuptools keeps those of the machine."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as old, tarfile.open(fileobj=packed, mode="w") as new:
        for member in sorted(old.getmembers(), key=lambda one: one.name):
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime, member.pax_headers = epoch, {}
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    return gzip.compress(packed.getvalue(), mtime=epoch)


def check(sdist: Path, wheel: Path) -> None:
    """Hold what was built to the rules of the index. Raises NoReleaseError."""
    with tarfile.open(sdist) as archive:
        (told,) = (name for name in archive.getnames() if name.count("/") == 1 and name.endswith("/PKG-INFO"))
        of_sdist = archive.extractfile(told)
        assert of_sdist is not None
        first = of_sdist.read()
    with zipfile.ZipFile(wheel) as packed:
        (told,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        second = packed.read(told)
    if first != second:
        raise NoReleaseError(f"{sdist.name} and {wheel.name} say different things of themselves")
    try:
        known = Metadata.from_email(first, validate=True)
    except ExceptionGroup as errors:
        raise NoReleaseError("; ".join(map(str, errors.exceptions))) from errors
    if not known.description or known.description_content_type != "text/markdown":
        raise NoReleaseError("the package has no description, or it is not said to be Markdown")


def write_sums(folder: Path) -> None:
    """SHA256SUMS, as `sha256sum --check` reads it."""
    paths = sorted(path for path in folder.iterdir() if path.name not in {SUMS, SIGNATURE, SIGNERS})
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths)
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def sign(folder: Path, key: Path) -> None:
    """A signature of the sums, and who may sign, as ssh-keygen writes and reads them."""
    (folder / SIGNATURE).unlink(missing_ok=True)
    _run("ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", PURPOSE, folder / SUMS)
    public = _run("ssh-keygen", "-y", "-f", key).split()[:2]
    (folder / SIGNERS).write_text(f'{SIGNER} namespaces="{PURPOSE}" {" ".join(public)}\n', encoding="utf-8")


def verify(folder: Path, signers: Path) -> None:
    """Check a release as a user does before installing: the signature, then the sums. Raises NoReleaseError."""
    words = ["ssh-keygen", "-Y", "verify", "-f", signers, "-I", SIGNER, "-n", PURPOSE, "-s", folder / SIGNATURE]
    done = subprocess.run(list(map(str, words)), input=(folder / SUMS).read_bytes(), capture_output=True, check=False)
    if done.returncode:
        raise NoReleaseError(f"{SUMS} was not signed by {SIGNER}: {done.stderr.decode().strip()}")
    for line in (folder / SUMS).read_text(encoding="utf-8").splitlines():
        digest, name = line.split("  ")
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            raise NoReleaseError(f"{name} is not what was signed")


def is_refused_when_changed(folder: Path) -> bool:
    """True if a change of one byte, of any file, is noticed."""
    for path in (path for path in folder.iterdir() if path.name != SIGNERS):
        content = path.read_bytes()
        path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
        try:
            verify(folder, folder / SIGNERS)
        except NoReleaseError:
            continue
        else:
            return False
        finally:
            path.write_bytes(content)
    return True


def release(root: Path, folder: Path, key: Path | None) -> None:
    """Make it. Raises NoReleaseError."""
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    if key is not None:
        _check_tag(root, version)
    try:
        parts = sbom.components()
    except sbom.IncompleteError as error:
        raise NoReleaseError(str(error)) from error
    if unclear := sbom.without_permissive_licence(parts.values()):
        raise NoReleaseError(f"licences are not known or not permissive: {unclear}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory(prefix="elsewhere") as two:
        first, second = build(root, Path(one)), build(root, Path(two))
        if differ := [a.name for a, b in zip(first, second, strict=True) if a.read_bytes() != b.read_bytes()]:
            raise NoReleaseError(f"built twice, these differ: {', '.join(differ)}")
        check(*first)
        for path in first:
            shutil.copy(path, folder)
        _write(folder / "sbom.json", json.dumps(sbom.document(parts), indent=2))
        _write(folder / "licences.txt", "\n".join(f"{one.name} {one.version}: {one.licence}" for one in parts.values()))
        shutil.copy(root / "locks" / "product.lock", folder)
        write_sums(folder)
        if key is None:
            key = Path(one) / "key"
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", SIGNER, "-f", key)
        sign(folder, key)
    verify(folder, folder / SIGNERS)
    if not is_refused_when_changed(folder):
        raise NoReleaseError("a changed file is not noticed")


def _check_tag(root: Path, version: str) -> None:
    if _git(root, "status", "--porcelain"):
        raise NoReleaseError("there are changes that are not committed")
    if f"v{version}" not in _git(root, "tag", "--points-at", "HEAD").split():
        raise NoReleaseError(f"the last commit is not the tag v{version}")


def _write(path: Path, text: str) -> None:
    path.write_text(text + "\n", encoding="utf-8")


def _unpack(archive: bytes, folder: Path) -> None:
    folder.mkdir()
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(folder, filter="data")


def _build(kind: str, source: Path, folder: Path, epoch: int) -> None:
    """Build, not isolated: with the setuptools of locks/build.lock, which is here."""
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", kind, "--outdir", str(folder), str(source)],
        check=True, capture_output=True, umask=0o022,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0"},
    )  # fmt: skip


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def _run(*words: object) -> str:
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoReleaseError(f"{words[0]}: {done.stderr.strip()}")
    return done.stdout


def main(words: Iterable[str]) -> None:
    """Make it and say what there is."""
    key = next((Path(word) for word in words), None)
    folder = ROOT / "build" / "release"
    try:
        release(ROOT, folder, key)
    except NoReleaseError as error:
        raise SystemExit(f"no release: {error}") from error
    except subprocess.CalledProcessError as error:
        said = (error.stderr or b"").decode() if isinstance(error.stderr, bytes) else error.stderr
        raise SystemExit(f"no release: {' '.join(map(str, error.cmd))}: {said}") from error
    sys.stdout.write("".join(f"build/release/{path.name}\n" for path in sorted(folder.iterdir())))
    if key is None:
        sys.stdout.write("a dry run: signed with a key that is gone\n")


if __name__ == "__main__":
    main(sys.argv[1:])
