"""What can befall the files of a state folder: one damage at a time, each drawn by a source that can be seeded again.

None of them is what a crash leaves: every scene is quiet when its process ends, so all of it is acknowledged.
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

PAGE = 16_384
SECTOR = 512
LOG_HEADER, FRAME_HEADER = 32, 24
FRAME = FRAME_HEADER + PAGE
JOURNAL = "journal.sqlite"
# Where a damage is made, in this many of the cases: most often where the pushes are.
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
        """The files with something in them, but the index of a log, which is made anew at every start."""
        names = [entry.name for entry in os.scandir(self.folder) if entry.is_file() and entry.stat().st_size]
        return sorted(name for name in names if not name.endswith("-shm"))


# Each takes the place and a file's name, makes the damage, and says what was done.
Damage = Callable[[Place, str], str]


def flip_bits(place: Place, name: str, count: int) -> str:
    content, spots = place.read(name), []
    for _ in range(count):
        offset, bit = place.source.randrange(len(content)), place.source.randrange(8)
        content[offset] ^= 1 << bit
        spots.append(f"{offset}.{bit}")
    place.write(name, content)
    return f"bits {', '.join(spots)} flipped"


flip_bit: Damage = partial(flip_bits, count=1)
flip_four_bits: Damage = partial(flip_bits, count=4)


def overwrite(place: Place, name: str, size: int, is_zero: bool, offset: int | None = None) -> str:
    content = place.read(name)
    if offset is None:
        offset = place.source.randrange(max(1, (len(content) + size - 1) // size)) * size
    end = min(len(content), offset + size)
    content[offset:end] = bytes(end - offset) if is_zero else place.source.randbytes(end - offset)
    place.write(name, content)
    return f"bytes {offset}..<{end} {'zero' if is_zero else 'random'}"


zero_sector: Damage = partial(overwrite, size=SECTOR, is_zero=True)
garble_sector: Damage = partial(overwrite, size=SECTOR, is_zero=False)
zero_block: Damage = partial(overwrite, size=4096, is_zero=True)
garble_block: Damage = partial(overwrite, size=4096, is_zero=False)
zero_page: Damage = partial(overwrite, size=PAGE, is_zero=True)
zero_first_sector: Damage = partial(overwrite, size=SECTOR, is_zero=True, offset=0)
garble_first_sector: Damage = partial(overwrite, size=SECTOR, is_zero=False, offset=0)


def cut(place: Place, name: str, count: int) -> str:
    os.truncate(place.path(name), count)
    return f"cut to {count} bytes"


def cut_by_size(place: Place, name: str, kept: Callable[[int], int]) -> str:
    """`kept` gives how many bytes are left of how many."""
    return cut(place, name, kept(len(place.read(name))))


def cut_anywhere(place: Place, name: str) -> str:
    return cut_by_size(place, name, place.source.randrange)


cut_in_half: Damage = partial(cut_by_size, kept=lambda size: size // 2)
cut_to_nothing: Damage = partial(cut, count=0)
cut_to_a_sector: Damage = partial(cut_by_size, kept=lambda size: min(SECTOR, size - 1))
cut_last_byte: Damage = partial(cut_by_size, kept=lambda size: size - 1)
cut_last_page: Damage = partial(cut_by_size, kept=lambda size: max(0, size - PAGE))


def zero_tail(place: Place, name: str) -> str:
    count = len(place.read(name))
    return overwrite(place, name, count, True, place.source.randrange(count))


def append(place: Place, name: str, is_zero: bool) -> str:
    count = place.source.choice([1, SECTOR, FRAME, PAGE])
    place.write(name, place.read(name) + (bytes(count) if is_zero else place.source.randbytes(count)))
    return f"{count} {'zeros' if is_zero else 'random bytes'} appended"


append_garbage: Damage = partial(append, is_zero=False)
append_zeros: Damage = partial(append, is_zero=True)


def delete(place: Place, name: str) -> str:
    os.unlink(place.path(name))
    return "deleted"


def delete_database(place: Place, name: str) -> str:
    """A file with everything beside it that begins with its name."""
    gone = [each for each in os.listdir(place.folder) if each.startswith(name.partition(".")[0] + ".")]
    for each in gone:
        if os.path.isfile(place.path(each)):
            os.unlink(place.path(each))
    return f"deleted, with {', '.join(sorted(gone))}"


def put_older(place: Place, name: str) -> str:
    """The same file of an older moment; nothing when that moment had no such file, or the same."""
    older = os.path.join(place.scene.older or "", name)
    if not place.scene.older or not os.path.isfile(older):
        return delete(place, name) + " (its older moment had none)"
    shutil.copyfile(older, place.path(name))
    return "that of an older moment put in its place"


def put_others(place: Place, name: str) -> str:
    other = place.source.choice(place.others)
    path = os.path.join(other.state, name)
    if not os.path.isfile(path):
        return delete(place, name) + f" (state {other.name} has none)"
    shutil.copyfile(path, place.path(name))
    return f"that of state {other.name} put in its place"


def link(place: Place, name: str) -> str:
    """The file moved elsewhere and linked to; a log that it has stays behind."""
    os.mkdir(place.path("elsewhere"))
    os.rename(place.path(name), place.path(f"elsewhere/{name}"))
    os.symlink(f"elsewhere/{name}", place.path(name))
    return "moved elsewhere, a link in its place"


def link_database(place: Place, name: str) -> str:
    """All files of a database moved elsewhere, and only its own name linked: the log lies beside the target."""
    os.mkdir(place.path("elsewhere"))
    for each in list(place.names):
        if each.startswith(name):
            os.rename(place.path(each), place.path(f"elsewhere/{each}"))
    os.symlink(f"elsewhere/{name}", place.path(name))
    return "moved elsewhere with its log, a link in its place"


def link_and_damage_log(place: Place, name: str) -> str:
    said = link_database(place, name)
    log = f"elsewhere/{name}-wal"
    if not os.path.exists(place.path(log)):
        return said
    damage = place.source.choice([zero_first_sector, cut_in_half, flip_bit, delete, zero_tail])
    return f"{said}, and of its log there {damage(place, log)}"


def link_to_nothing(place: Place, name: str) -> str:
    os.unlink(place.path(name))
    os.symlink("nowhere", place.path(name))
    return "a link to nothing in its place"


def put_folder(place: Place, name: str) -> str:
    os.unlink(place.path(name))
    os.mkdir(place.path(name))
    return "a folder in its place"


def put_pipe(place: Place, name: str) -> str:
    os.unlink(place.path(name))
    os.mkfifo(place.path(name), 0o600)
    return "a named pipe in its place"


def move_page(place: Place, name: str, is_swap: bool) -> str:
    content = place.read(name)
    begin, size = (LOG_HEADER, FRAME) if name.endswith("-wal") else (0, PAGE)
    count = (len(content) - begin) // size
    if count < 2:
        return flip_bit(place, name)
    one, other = place.source.sample(range(count), 2)
    mine = slice(begin + one * size, begin + (one + 1) * size)
    theirs = slice(begin + other * size, begin + (other + 1) * size)
    first, second = content[mine], content[theirs]
    content[theirs] = first
    if is_swap:
        content[mine] = second
    place.write(name, content)
    return f"pages {one} and {other} swapped" if is_swap else f"page {one} copied over page {other}"


swap_pages: Damage = partial(move_page, is_swap=True)
copy_page: Damage = partial(move_page, is_swap=False)


# Of a log

def frames(content: bytes) -> list[int]:
    """Where the frames of the newest commits begin: those with the header's salt, in their order."""
    starts = range(LOG_HEADER, len(content) - FRAME + 1, FRAME)
    return [start for start in starts if content[start + 8 : start + 16] == content[16:24]]


def commits(content: bytes) -> list[list[int]]:
    """The same, by commit: the last frame of each tells how many pages the file has then."""
    found: list[list[int]] = [[]]
    for start in frames(content):
        found[-1].append(start)
        if struct.unpack_from(">I", content, start + 4)[0]:
            found.append([])
    return [commit for commit in found if commit]


def zero_frame_headers(place: Place, name: str) -> str:
    """Of all frames of some newest commits."""
    content = place.read(name)
    count = place.source.choice([1, 1, 2, 3, 5, 8])
    starts = [start for commit in commits(content)[-count:] for start in commit]
    for start in starts:
        content[start : start + FRAME_HEADER] = bytes(FRAME_HEADER)
    place.write(name, content)
    return f"headers of {len(starts)} frames of the last {count} commits zero"


def change_salt(place: Place, name: str) -> str:
    content = place.read(name)
    newest = commits(content)[-6:]
    if not newest:
        return flip_bit(place, name)
    back = place.source.randrange(len(newest))
    start = newest[-1 - back][0]
    content[start + 8 + place.source.randrange(8)] ^= 1 + place.source.randrange(255)
    place.write(name, content)
    return f"a salt byte of the frame at {start} changed, {back} commits before the last"


def change_frame_header(place: Place, name: str) -> str:
    content = place.read(name)
    found = frames(content)
    if not found:
        return flip_bit(place, name)
    offset = place.source.choice(found[-8:]) + place.source.randrange(FRAME_HEADER)
    content[offset] ^= 1 + place.source.randrange(255)
    place.write(name, content)
    return f"byte {offset}, of a frame's header, changed"


def cut_commits(place: Place, name: str) -> str:
    newest = commits(place.read(name))
    count = min(len(newest), place.source.choice([1, 1, 2, 3, 20]))
    return f"its last {count} commits {cut(place, name, newest[-count][0])}" if count else cut_in_half(place, name)


def zero_commits(place: Place, name: str) -> str:
    content = place.read(name)
    newest = commits(content)
    count = min(len(newest), place.source.choice([1, 1, 2, 3, 20]))
    if not count:
        return zero_tail(place, name)
    start = newest[-count][0]
    return f"its last {count} commits: {overwrite(place, name, len(content), True, start)}"


def take_out_frame(place: Place, name: str) -> str:
    content = place.read(name)
    found = frames(content)
    if not found:
        return cut_in_half(place, name)
    start = place.source.choice(found)
    del content[start : start + FRAME]
    place.write(name, content)
    return f"the frame at {start} taken out"


# Of the journal's file

def change_leaf(place: Place, name: str) -> str:
    """A bit of the header of a page: its kind, its free space, and its count of cells."""
    content = place.read(name)
    page = place.source.randrange(max(1, len(content) // PAGE))
    offset = page * PAGE + (100 if page == 0 else 0) + place.source.randrange(12)
    bit = place.source.randrange(8)
    content[offset] ^= 1 << bit
    place.write(name, content)
    return f"bit {offset}.{bit}, of the header of page {page + 1}, flipped"


def empty_root(place: Place, name: str) -> str:
    """The root of the rows replaced by an empty leaf."""
    content = place.read(name)
    if len(content) < 2 * PAGE:
        return flip_bit(place, name)
    leaf = bytearray(PAGE)
    leaf[0:8] = struct.pack(">BHHHB", 13, 0, 0, PAGE & 0xFFFF, 0)
    content[PAGE : 2 * PAGE] = leaf
    place.write(name, content)
    return "page 2, the root of the rows, an empty leaf"


def swap_root(place: Place, name: str) -> str:
    content = place.read(name)
    count = len(content) // PAGE
    if count < 3:
        return flip_bit(place, name)
    other = place.source.randrange(2, count)
    mine, theirs = slice(PAGE, 2 * PAGE), slice(other * PAGE, (other + 1) * PAGE)
    content[mine], content[theirs] = content[theirs], content[mine]
    place.write(name, content)
    return f"page 2, the root of the rows, and page {other + 1} swapped"


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
    """What somebody does who knows SQLite; half the time the log is folded into the file and goes."""
    statement, is_folded = place.source.choice(STATEMENTS), place.source.random() < 0.5
    files = [name, f"{name}-wal"]
    database = sqlite3.connect(place.path(name))
    try:
        database.execute(statement)
        database.commit()
        before = {each: bytes(place.read(each)) for each in files if os.path.exists(place.path(each))}
    finally:
        # Which folds the log in.
        database.close()
    if not is_folded:
        for each, content in before.items():
            place.write(each, content)
    return f"{statement}{', the log folded in' if is_folded else ''}"


def put_older_pair(place: Place, name: str) -> str:
    """The file and its log of an older moment, everything else as it is: a copy that was made without the rest."""
    said = [f"{each} {put_older(place, each)}" for each in (name, f"{name}-wal") if os.path.exists(place.path(each))]
    return "; ".join(said)


ANYWHERE: tuple[Damage, ...] = (
    flip_bit, flip_four_bits, zero_sector, garble_sector, zero_block, garble_block, zero_page, zero_first_sector,
    garble_first_sector, cut_anywhere, cut_in_half, cut_to_nothing, cut_to_a_sector, cut_last_byte, cut_last_page,
    zero_tail, append_garbage, append_zeros, delete, put_older, put_others, link, link_to_nothing, put_folder, put_pipe,
    swap_pages, copy_page,
)  # fmt: skip
OF_LOGS: tuple[Damage, ...] = (
    zero_frame_headers, change_salt, change_frame_header, cut_commits, zero_commits, take_out_frame,
)  # fmt: skip
OF_DATABASES: tuple[Damage, ...] = (change_leaf, delete_database, link_database, link_and_damage_log)
OF_JOURNALS: tuple[Damage, ...] = (empty_root, swap_root, run_statement, put_older_pair)


def damages_of(name: str) -> tuple[Damage, ...]:
    if name.endswith("-wal"):
        return ANYWHERE + OF_LOGS
    if name == JOURNAL:
        return ANYWHERE + OF_DATABASES + OF_JOURNALS
    return ANYWHERE + OF_DATABASES if name.endswith(".sqlite") else ANYWHERE


def damage(place: Place, seed: int, number: int) -> str:
    """Makes the damage of this number: first each of every file once, the files in turn, in an order of the seed's, then
    drawn ones.

    The file, and what was done to it.
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
