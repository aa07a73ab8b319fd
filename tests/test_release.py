"""A release as `make release` tries it: the same bytes twice, signed, and refused with one other byte."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from scripts.release import PURPOSE, SIGNATURE, SIGNER, SIGNERS, SUMS, NoReleaseError, check, release, verify
from tests.checks.source import ROOT

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy of this checkout, committed elsewhere."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "all", "--date", "2026-11-01T00:00:00Z")
    return folder


@pytest.fixture(scope="module")
def dry(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release") / "dry"
    release(checkout, folder, None)
    return folder


def test_a_release_has_all_that_a_user_checks_and_nothing_else(dry: Path) -> None:
    names = {path.name for path in dry.iterdir()}
    (sdist,), (wheel,) = dry.glob("kreassign-*.tar.gz"), dry.glob("kreassign-*-py3-none-any.whl")
    assert names == {
        sdist.name, wheel.name, "licences.txt", "product.lock", "sbom.json", SUMS, SIGNATURE, SIGNERS,
    }  # fmt: skip
    assert json.loads((dry / "sbom.json").read_text())["bomFormat"] == "CycloneDX"
    assert "numpy" in (dry / "licences.txt").read_text()
    listed = {line.split("  ")[1] for line in (dry / SUMS).read_text().splitlines()}
    assert listed == names - {SUMS, SIGNATURE, SIGNERS}


def test_what_is_built_tells_nothing_of_who_built_it_and_where(dry: Path) -> None:
    """It was built twice, in two folders, and compared: `release` refuses differences."""
    (sdist,), (wheel,) = dry.glob("*.tar.gz"), dry.glob("*.whl")
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    assert {(one.uid, one.gid, one.uname, one.gname) for one in members} == {(0, 0, "", "")}
    assert len({one.mtime for one in members}) == 1
    assert {one.mode for one in members} <= {0o644, 0o755}
    with zipfile.ZipFile(wheel) as packed:
        assert len({one.date_time for one in packed.infolist()}) == 1


def test_a_user_verifies_it_with_ssh_keygen_and_sha256sum_alone(dry: Path) -> None:
    """The commands of SECURITY.md."""
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    commands = (
        f"ssh-keygen -Y verify -f {SIGNERS} -I {SIGNER} -n {PURPOSE} -s {SIGNATURE} < {SUMS}",
        f"sha256sum --check {SUMS}",
    )
    for command in commands:
        assert command in page
        subprocess.run(["bash", "-c", command], cwd=dry, check=True, capture_output=True)


def test_another_byte_another_file_and_another_signer_are_refused(dry: Path, tmp_path: Path) -> None:
    verify(dry, dry / SIGNERS)
    for path in dry.iterdir():
        copy = tmp_path / path.name
        shutil.copytree(dry, copy)
        content = bytearray((copy / path.name).read_bytes())
        content[len(content) // 2] ^= 1
        (copy / path.name).write_bytes(content)
        with pytest.raises(NoReleaseError, match=r"was not signed by|is not what was signed"):
            verify(copy, (copy if path.name == SIGNERS else dry) / SIGNERS)
    other = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
    forged = tmp_path / "forged"
    shutil.copytree(dry, forged)
    (forged / SIGNATURE).unlink()
    words = ["ssh-keygen", "-q", "-Y", "sign", "-f", other, "-n", PURPOSE, forged / SUMS]
    subprocess.run(list(map(str, words)), check=True, capture_output=True)
    with pytest.raises(NoReleaseError, match="was not signed by"):
        verify(forged, dry / SIGNERS)


def test_what_says_nothing_of_itself_is_not_released(dry: Path, tmp_path: Path) -> None:
    (sdist,), (wheel,) = dry.glob("*.tar.gz"), dry.glob("*.whl")
    check(sdist, wheel)
    other = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as packed, zipfile.ZipFile(other, "w") as changed:
        for name in packed.namelist():
            content = packed.read(name)
            changed.writestr(name, content.replace(b"Name: kreassign", b"Name: kreassing"))
    with pytest.raises(NoReleaseError, match="different things"):
        check(sdist, other)


def test_with_your_key_only_a_clean_tagged_commit_is_released(checkout: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    with pytest.raises(NoReleaseError, match=r"is not the tag v\d"):
        release(checkout, tmp_path / "release", key)
    (checkout / "README.md").write_text("changed")
    try:
        with pytest.raises(NoReleaseError, match="not committed"):
            release(checkout, tmp_path / "release", key)
    finally:
        git(checkout, "checkout", "--quiet", "README.md")
    assert not (tmp_path / "release").exists()


def test_the_command_says_in_one_line_why_there_is_no_release(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts/release.py"), str(tmp_path / "no-key")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)})
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert done.stderr.startswith("no release: ")
