"""The damages to the files of a state folder: one at a time, each chosen by a seeded random source.

None of them can result from a crash: every scene is idle when its process ends, so all of its data is acknowledged.
"""

import itertools
import os
import random
import shutil
import sqlite3
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from soak.damage_scene import Scene

PAGE = 8_192
SECTOR = 512
LOG_HEADER, FRAME_HEADER = 32, 24
FRAME = FRAME_HEADER + PAGE
JOURNAL = "journal.sqlite"
# The files to damage, with their weights. The files with the pushes are damaged most often.
WEIGHTS = {JOURNAL: 6, f"{JOURNAL}-wal": 8, "history.sqlite": 2, "history.sqlite-wal": 2}


@dataclass
class Place:
    """A copy of a scene's folder that is being damaged."""

    folder: str
    scene: Scene
    others: list[Scene]
    source: random.Random

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def read(self, name: str) -> bytearray:
        with open(self.path(name), "rb") as file:
            return bytearray(file.read())

    def write(self, name: str, content: bytes) -> None:
        with open(self.path(name), "wb") as file:
            file.write(content)

    @property
    def names(self) -> list[str]:
        """Returns the files with content, except the index of a log, which is rebuilt at every start."""
        names = [entry.name for entry in os.scandir(self.folder) if entry.is_file() and entry.stat().st_size]
        return sorted(name for name in names if not name.endswith("-shm"))


# Each function damages the file with this name in a place, and returns a description.
Damage = Callable[[Place, str], str]


def changed(change: Callable[..., str | None]) -> Damage:
    """Returns a damage that changes the file's content in place. If the change is impossible, a bit is flipped
    instead."""

    def damage(place: Place, name: str, **options: object) -> str:
        content = place.read(name)
        said = change(place, name, content, **options)
        if said is None:
            return flip_bit(place, name)
        place.write(name, content)
        return said

    return damage


@changed
def flip_bits(place: Place, _: str, content: bytearray, count: int) -> str:
    spots = []
    for _ in range(count):
        offset, bit = place.source.randrange(len(content)), place.source.randrange(8)
        content[offset] ^= 1 << bit
        spots.append(f"{offset}.{bit}")
    return f"bits {', '.join(spots)} flipped"


flip_bit: Damage = partial(flip_bits, count=1)


@changed
def overwrite(place: Place, _: str, content: bytearray, size: int, is_zero: bool, offset: int | None = None) -> str:
    if offset is None:
        offset = place.source.randrange(max(1, (len(content) + size - 1) // size)) * size
    end = min(len(content), offset + size)
    content[offset:end] = bytes(end - offset) if is_zero else place.source.randbytes(end - offset)
    return f"bytes {offset}..<{end} {'zero' if is_zero else 'random'}"


zero_first_sector: Damage = partial(overwrite, size=SECTOR, is_zero=True, offset=0)


def cut(place: Place, name: str, kept: Callable[[int], int]) -> str:
    """Cuts a file. `kept` returns the number of bytes to keep."""
    count = kept(os.path.getsize(place.path(name)))
    os.truncate(place.path(name), count)
    return f"cut to {count} bytes"


def cut_anywhere(place: Place, name: str) -> str:
    return cut(place, name, place.source.randrange)


cut_in_half: Damage = partial(cut, kept=lambda size: size // 2)


def zero_tail(place: Place, name: str) -> str:
    count = os.path.getsize(place.path(name))
    return overwrite(place, name, size=count, is_zero=True, offset=place.source.randrange(count))


@changed
def append(place: Place, _: str, content: bytearray, is_zero: bool) -> str:
    count = place.source.choice([1, SECTOR, FRAME, PAGE])
    content += bytes(count) if is_zero else place.source.randbytes(count)
    return f"{count} {'zeros' if is_zero else 'random bytes'} appended"


def delete(place: Place, name: str) -> str:
    os.unlink(place.path(name))
    return "deleted"


def delete_database(place: Place, name: str) -> str:
    """Deletes all files of a database."""
    gone = [each for each in os.listdir(place.folder) if each.startswith(name.partition(".")[0] + ".")]
    for each in gone:
        if os.path.isfile(place.path(each)):
            os.unlink(place.path(each))
    return f"deleted, with {', '.join(sorted(gone))}"


def put(place: Place, name: str, folder: str, whose: str) -> str:
    """Replaces the file by another folder's file of this name, if it has one."""
    if not os.path.isfile(os.path.join(folder, name)):
        return delete(place, name) + f" ({whose} has none)"
    shutil.copyfile(os.path.join(folder, name), place.path(name))
    return f"replaced by that of {whose}"


def put_older(place: Place, name: str) -> str:
    return put(place, name, place.scene.older or "/nowhere", "an older moment")


def put_others(place: Place, name: str) -> str:
    other = place.source.choice(place.others)
    return put(place, name, other.state, f"state {other.name}")


def move(place: Place, name: str, is_database: bool) -> str:
    """Moves the file elsewhere and links to it. Its log stays behind. All files of a database are moved, but only
    the database itself is linked, so that the log is next to the target."""
    os.mkdir(place.path("elsewhere"))
    for each in [each for each in place.names if each == name or is_database and each.startswith(name)]:
        os.rename(place.path(each), place.path(f"elsewhere/{each}"))
    os.symlink(f"elsewhere/{name}", place.path(name))
    return f"moved elsewhere{' with its log' if is_database else ''}, replaced by a link"


link_database: Damage = partial(move, is_database=True)


def link_and_damage_log(place: Place, name: str) -> str:
    said = link_database(place, name)
    log = f"elsewhere/{name}-wal"
    if not os.path.exists(place.path(log)):
        return said
    damage = place.source.choice([zero_first_sector, cut_in_half, flip_bit, delete, zero_tail])
    return f"{said}, and of its log there {damage(place, log)}"


def replace(place: Place, name: str, make: Callable[[str], None], what: str) -> str:
    """Replaces the file by something else."""
    os.unlink(place.path(name))
    make(place.path(name))
    return f"replaced by {what}"


@changed
def move_page(place: Place, name: str, content: bytearray, is_swap: bool, one: int | None = None) -> str | None:
    """Copies a page over another, or swaps the two; `one` is the first page, random by default."""
    begin, size = (LOG_HEADER, FRAME) if name.endswith("-wal") else (0, PAGE)
    count = (len(content) - begin) // size
    if count < (2 if one is None else 3):
        return None
    one, other = place.source.sample(range(count), 2) if one is None else (one, place.source.randrange(one + 1, count))
    mine, theirs = (slice(begin + page * size, begin + (page + 1) * size) for page in (one, other))
    first, second = content[mine], content[theirs]
    content[theirs] = first
    if is_swap:
        content[mine] = second
    return f"pages {one} and {other} swapped" if is_swap else f"page {one} copied over page {other}"


# Of a log

def frames(content: bytes) -> list[int]:
    """Returns the positions of the frames of the newest commits: those with the header's salt, in order."""
    starts = range(LOG_HEADER, len(content) - FRAME + 1, FRAME)
    return [start for start in starts if content[start + 8 : start + 16] == content[16:24]]


def commits(content: bytes) -> list[list[int]]:
    """Returns the frames by commit: the last frame of each has the file's number of pages after it."""
    found: list[list[int]] = [[]]
    for start in frames(content):
        found[-1].append(start)
        if struct.unpack_from(">I", content, start + 4)[0]:
            found.append([])
    return [commit for commit in found if commit]


@changed
def zero_frame_headers(place: Place, _: str, content: bytearray) -> str:
    """Zeros the headers of all frames of some newest commits."""
    count = place.source.choice([1, 1, 2, 3, 5, 8])
    starts = [start for commit in commits(content)[-count:] for start in commit]
    for start in starts:
        content[start : start + FRAME_HEADER] = bytes(FRAME_HEADER)
    return f"headers of {len(starts)} frames of the last {count} commits zero"


@changed
def change_salt(place: Place, _: str, content: bytearray) -> str | None:
    newest = commits(content)[-6:]
    if not newest:
        return None
    back = place.source.randrange(len(newest))
    start = newest[-1 - back][0]
    content[start + 8 + place.source.randrange(8)] ^= 1 + place.source.randrange(255)
    return f"a salt byte of the frame at {start} changed, {back} commits before the last"


@changed
def change_frame_header(place: Place, _: str, content: bytearray) -> str | None:
    if not (found := frames(content)):
        return None
    offset = place.source.choice(found[-8:]) + place.source.randrange(FRAME_HEADER)
    content[offset] ^= 1 + place.source.randrange(255)
    return f"byte {offset}, of a frame's header, changed"


@changed
def take_commits(place: Place, _: str, content: bytearray, is_cut: bool) -> str:
    """Cuts off the newest commits or zeros them; in a log without commits, its second half."""
    newest = commits(content)
    count = min(len(newest), place.source.choice([1, 1, 2, 3, 20]))
    start = newest[-count][0] if count else len(content) // 2
    content[start:] = b"" if is_cut else bytes(len(content) - start)
    return f"its last {count} commits {'cut' if is_cut else 'zero'}, from byte {start}"


@changed
def take_out_frame(place: Place, _: str, content: bytearray) -> str | None:
    if not (found := frames(content)):
        return None
    start = place.source.choice(found)
    del content[start : start + FRAME]
    return f"the frame at {start} taken out"


# Of the journal's file

@changed
def change_leaf(place: Place, _: str, content: bytearray) -> str:
    """Flips a bit in the header of a page: its kind, its free space, or its cell count."""
    page = place.source.randrange(max(1, len(content) // PAGE))
    offset = page * PAGE + (100 if page == 0 else 0) + place.source.randrange(12)
    bit = place.source.randrange(8)
    content[offset] ^= 1 << bit
    return f"bit {offset}.{bit}, of the header of page {page + 1}, flipped"


@changed
def empty_root(_: Place, __: str, content: bytearray) -> str | None:
    """Replaces the root of the rows by an empty leaf."""
    if len(content) < 2 * PAGE:
        return None
    content[PAGE : 2 * PAGE] = struct.pack(">BHHHB", 13, 0, 0, PAGE & 0xFFFF, 0).ljust(PAGE, b"\0")
    return "page 2, the root of the rows, an empty leaf"


STATEMENTS = (
    "DELETE FROM rows WHERE id = (SELECT max(id) FROM rows)",
    "DELETE FROM rows WHERE id > (SELECT max(id) FROM rows) - 5",
    "DELETE FROM rows WHERE id = (SELECT min(id) FROM rows)",
    "DELETE FROM rows WHERE id = (SELECT (min(id) + max(id)) / 2 FROM rows)",
    "DELETE FROM rows",
    "DROP TABLE rows",
    "UPDATE rows SET checksum = checksum + 1 WHERE id = (SELECT max(id) FROM rows)",
    "UPDATE rows SET content = x'' WHERE id = (SELECT max(id) FROM rows)",
    "UPDATE rows SET id = id + 1 WHERE id = (SELECT max(id) FROM rows)",
    "PRAGMA user_version = 1", "PRAGMA user_version = 0", "PRAGMA user_version = 99", "PRAGMA application_id = 77",
    "PRAGMA journal_mode = DELETE",
)  # fmt: skip


def run_statement(place: Place, name: str) -> str:
    """Makes an SQL change like a person would; half the time the log is merged into the file and removed."""
    statement, is_folded = place.source.choice(STATEMENTS), place.source.random() < 0.5
    files = [name, f"{name}-wal"]
    database = sqlite3.connect(place.path(name))
    try:
        database.execute(statement)
        database.commit()
        before = {each: bytes(place.read(each)) for each in files if os.path.exists(place.path(each))}
    finally:
        # Closing merges the log into the database.
        database.close()
    if not is_folded:
        for each, content in before.items():
            place.write(each, content)
    return f"{statement}{', the log folded in' if is_folded else ''}"


def put_older_pair(place: Place, name: str) -> str:
    """Replaces the file and its log by older ones, with everything else unchanged, like an incomplete copy."""
    said = [f"{each} {put_older(place, each)}" for each in (name, f"{name}-wal") if os.path.exists(place.path(each))]
    return "; ".join(said)


BOTH = (True, False)
ANYWHERE: tuple[Damage, ...] = (
    flip_bit, partial(flip_bits, count=4),
    *(partial(overwrite, size=size, is_zero=is_zero) for size in (SECTOR, 4096) for is_zero in BOTH),
    partial(overwrite, size=PAGE, is_zero=True),
    zero_first_sector, partial(overwrite, size=SECTOR, is_zero=False, offset=0),
    cut_anywhere, cut_in_half,
    *(partial(cut, kept=kept) for kept in (
        lambda size: 0, lambda size: min(SECTOR, size - 1), lambda size: size - 1, lambda size: max(0, size - PAGE)
    )),
    zero_tail, *(partial(append, is_zero=is_zero) for is_zero in BOTH),
    delete, put_older, put_others, partial(move, is_database=False),
    partial(replace, make=lambda path: os.symlink("nowhere", path), what="a link to nothing"),
    partial(replace, make=os.mkdir, what="a folder"),
    partial(replace, make=lambda path: os.mkfifo(path, 0o600), what="a named pipe"),
    *(partial(move_page, is_swap=is_swap) for is_swap in BOTH),
)  # fmt: skip
OF_LOGS: tuple[Damage, ...] = (
    zero_frame_headers, change_salt, change_frame_header, *(partial(take_commits, is_cut=is_cut) for is_cut in BOTH),
    take_out_frame,
)  # fmt: skip
OF_DATABASES: tuple[Damage, ...] = (change_leaf, delete_database, link_database, link_and_damage_log)
# The second page is the root of the rows.
OF_JOURNALS: tuple[Damage, ...] = (
    empty_root, partial(move_page, is_swap=True, one=1), run_statement, put_older_pair
)  # fmt: skip


def damages_of(name: str) -> tuple[Damage, ...]:
    if name.endswith("-wal"):
        return ANYWHERE + OF_LOGS
    if name == JOURNAL:
        return ANYWHERE + OF_DATABASES + OF_JOURNALS
    return ANYWHERE + OF_DATABASES if name.endswith(".sqlite") else ANYWHERE


def damage(place: Place, seed: int, number: int) -> str:
    """Makes the damage of this number: first each damage of every file once, with the files in turn and in the order of
    the seed, then random ones.

    Returns the file and a description.
    """
    source = random.Random(seed)
    rounds = [source.sample([(name, one) for one in damages_of(name)], len(damages_of(name))) for name in place.names]
    each = [pair for turn in itertools.zip_longest(*rounds) for pair in turn if pair]
    if number < len(each):
        name, one = each[number]
    else:
        names = place.names
        name = place.source.choices(names, [WEIGHTS.get(name, 1) for name in names])[0]
        one = place.source.choice(damages_of(name))
    return f"{name}: {one(place, name)}"
