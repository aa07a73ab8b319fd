"""Keys of people who sign, made by the real ssh-keygen, and the file of those who may."""

from __future__ import annotations

import subprocess
from pathlib import Path


class Keyring:
    """A folder with a key for each name, and the allowed signers `name@x`."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.folder = folder
        folder.mkdir()
        for name in names:
            self.create(name)
        self.allow(*names)

    @property
    def signers(self) -> Path:
        return self.folder / "signers"

    def create(self, name: str) -> None:
        """Create a key that nobody allows yet."""
        words = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(self[name]))
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL)

    def allow(self, *names: str, options: str = "") -> None:
        """Allow just these to sign."""
        keys = {name: self.folder.joinpath(f"{name}.pub").read_text().split()[:2] for name in names}
        self.signers.write_text("".join(f"{name}@x {options} {' '.join(key)}\n" for name, key in keys.items()))

    def __getitem__(self, name: str) -> Path:
        return self.folder / name
