"""File systems in memory, or in a file whose power can be lost. Both require root."""

import contextlib
import ctypes
import functools
import os
import subprocess

from shared import waiting

IMAGE_MEGABYTES, MEMORY_MEGABYTES = 512, 64
# The commands that create each file system, and its mount options: during a round, only synced data must reach the
# image, nothing on a timer.
FILE_SYSTEMS = {
    "ext4": (["mkfs.ext4", "-q", "-F"], "loop,commit=300"),
    "xfs": (["mkfs.xfs", "-q", "-f"], "loop"),
}


NEW_MOUNTS, PRIVATE_MOUNTS = 0x00020000, 0x4000 | 0x40000
RELEASE_SECONDS = 30


@functools.cache
def hide_mounts() -> None:
    """Makes later mounts of this process and its children private.

    A process that copies the mounts of the machine, such as `unshare --mount`, would keep a file system that is shut
    down: unmounting it here does not release it, and mounting its image again would show the same broken file system.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_MOUNTS) or libc.mount(b"none", b"/", None, PRIVATE_MOUNTS, None):
        raise OSError(ctypes.get_errno(), "a name space of mounts cannot be had")


class LoopFolder(contextlib.AbstractContextManager):
    """A file system in a file, mounted; unmounted and deleted when the block is left."""

    def __init__(self, folder: str, file_system: str):
        self.image, self.mount_point = os.path.join(folder, "image"), os.path.join(folder, "mount")
        self.make, self.options = FILE_SYSTEMS[file_system]
        self.is_mounted = False
        subprocess.run(["truncate", f"--size={IMAGE_MEGABYTES}M", self.image], check=True)
        subprocess.run([*self.make, self.image], check=True)
        os.mkdir(self.mount_point)
        hide_mounts()
        self.mount()

    def __exit__(self, *_: object) -> None:
        # A file system that was shut down cannot even report whether it is mounted.
        if self.is_mounted:
            subprocess.run(["umount", "--lazy", self.mount_point], check=False)
            self.is_mounted = False

    def mount(self) -> None:
        subprocess.run(["mount", "-o", self.options, self.image, self.mount_point], check=True)
        self.is_mounted = True

    def shut_down(self) -> None:
        """Shuts the file system down. Without -f nothing is flushed: every page that was not synced is lost."""
        subprocess.run(["xfs_io", "-x", "-c", "shutdown", self.mount_point], check=True)

    def mount_again(self) -> None:
        subprocess.run(["umount", self.mount_point], check=True)
        self.is_mounted = False
        users = ["losetup", "--associated", self.image]
        if not waiting.until(lambda: not subprocess.check_output(users), RELEASE_SECONDS):
            raise RuntimeError(f"{self.image} is still mounted somewhere else, so no power was lost; unmount it")
        self.mount()


class MemoryFolder(contextlib.AbstractContextManager):
    """A tmpfs of 64 MB; unmounted when the block is left."""

    def __init__(self, folder: str):
        self.mount_point = os.path.join(folder, "mount")
        os.mkdir(self.mount_point)
        options = ["-t", "tmpfs", "-o", f"size={MEMORY_MEGABYTES}m", "tmpfs", self.mount_point]
        subprocess.run(["mount", *options], check=True)

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "--lazy", self.mount_point], check=False)

    def remount(self, options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", self.mount_point], check=True)


def fill(folder: str) -> str:
    """Fills the remaining space of a file system, and returns the file that uses it."""
    path = os.path.join(folder, "filler")
    with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"\0" * 65536):
            pass
    return path
