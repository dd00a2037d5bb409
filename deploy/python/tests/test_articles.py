"""The workers that the documentation shows pass strict type checks."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import wakegate


def test_types(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    pages = [root / "Sources/Server/Gateway/Gateway.docc/TestingABackend.md", root / "deploy/python/README.md"]
    if not pages[0].exists() or importlib.util.find_spec("mypy") is None:
        return  # Outside a checkout there are no articles.
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    workers = [block for block in re.findall(r"```python\n(.*?)```\n", text, re.DOTALL) if "worker.run()" in block]
    assert len(workers) == 2
    for number, worker in enumerate(workers):
        (tmp_path / f"worker{number}.py").write_text(worker, encoding="utf-8")
    env = {**os.environ, "MYPYPATH": str(Path(wakegate.__file__).parents[1])}
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    files = [f"worker{number}.py" for number in range(len(workers))]
    ended = subprocess.run(command + files, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True, timeout=120)
    assert ended.returncode == 0, ended.stdout
