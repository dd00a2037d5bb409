"""Searches every layer of an image for secrets, including files that a later layer removes. deploy/test-image calls it.

Files that Debian publishes are not secrets: a file with the sum in its package's list is skipped, such as a library
with test keys.

Usage: deploy/lib/run image.secrets ARCHIVE, an archive of podman save --format docker-archive. Exits with 1 if it finds
any.
"""

import collections
import hashlib
import io
import json
import re
import sys
import tarfile
from collections.abc import Iterator

# Names of files that always count as secrets, including the gateway's own.
NAMES = re.compile(
    r"(^|/)(id_(rsa|dsa|ecdsa|ed25519)|\.(netrc|npmrc|env|bash_history|git/HEAD)|.*\.(p8|key))$"
)
CONTENTS = {
    "a private key": re.compile(
        rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----\s+(?:[A-Za-z-]+: .*\s+)*[A-Za-z0-9+/=\s]{64}"
    ),
    "a bearer token": re.compile(rb"\bwg1\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    "a password": re.compile(rb"^[a-z_][a-z0-9_-]*:\$[0-9a-z]+\$", re.MULTILINE),
}
LIST_OF_SUMS = re.compile(r"^var/lib/dpkg/info/.*\.md5sums$")
SETTINGS = re.compile(r"\b\w*(PASSWORD|SECRET|TOKEN|PRIVATE_KEY|CREDENTIAL)\w*=", re.IGNORECASE)


def of_file(name: str, content: bytes) -> list[str]:
    found = [f"{name} holds {what}" for what, pattern in CONTENTS.items() if pattern.search(content)]
    return found + ([f"{name} is named as a secret is"] if NAMES.search(name) else [])


def files_of(layer: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(layer)) as files:
        for member in files:
            file = files.extractfile(member) if member.isfile() else None
            if file is not None:
                yield member.name, file.read()


def published(layers: list[bytes]) -> dict[str, set[str]]:
    """Returns the sums of the files of every package, by name."""
    sums: dict[str, set[str]] = collections.defaultdict(set)
    for layer in layers:
        for name, content in files_of(layer):
            if LIST_OF_SUMS.search(name):
                for line in content.decode().splitlines():
                    digest, file = line.split(maxsplit=1)
                    sums[file].add(digest)
    return sums


def of_layer(layer: bytes, known: dict[str, set[str]]) -> tuple[list[str], int]:
    """Returns the findings in a layer, and the number of searched files."""
    found: list[str] = []
    count = 0
    for name, content in files_of(layer):
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        # Some packages list files of /lib under /usr/lib, and others do not.
        if any(digest in known.get(listed, ()) for listed in (name, name.removeprefix("usr/"))):
            continue
        count += 1
        found += of_file(name, content)
    return found, count


def of_config(config: dict[str, object]) -> list[str]:
    """Returns the findings in the image's configuration and build history."""
    text = json.dumps([config.get("config"), config.get("history")])
    return [f"its configuration has {match.group(0)}" for match in SETTINGS.finditer(text)]


def main() -> int:
    found: list[str] = []
    count = 0
    with tarfile.open(sys.argv[1]) as archive:

        def read(name: str) -> bytes:
            file = archive.extractfile(name)
            if file is None:
                raise ValueError(f"{sys.argv[1]} lacks {name}")
            return file.read()

        (image,) = json.loads(read("manifest.json"))
        found += of_config(json.loads(read(image["Config"])))
        layers = [read(layer) for layer in image["Layers"]]
        known = published(layers)
        for number, layer in enumerate(layers):
            findings, files = of_layer(layer, known)
            found += [f"layer {number}: {finding}" for finding in findings]
            count += files
    print("\n".join(found) if found else f"no secret in {count} files of {len(layers)} layers that no package lists")
    return 1 if found or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
