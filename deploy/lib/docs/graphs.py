"""Prepares the input of docc: for each catalog Sources/LAYER/MODULE/MODULE.docc a folder with its module's symbols.

A module with a public interface is documented with its public symbols, and every other module with those visible to the
rest of the package. Exits with 1 and a message if a catalog and the modules do not match.
"""

import json
import pathlib
import sys


def graphs_of(module: str, folder: pathlib.Path) -> dict[str, dict]:
    """Returns the symbol graphs of a module by file name: its own, and those of its extensions of other modules."""
    files = [folder / f"{module}.symbols.json", *sorted(folder.glob(f"{module}@*.symbols.json"))]
    return {file.name: json.loads(file.read_text()) for file in files if file.exists()}


def keep_public(graph: dict) -> None:
    graph["symbols"] = [symbol for symbol in graph["symbols"] if symbol["accessLevel"] in ("public", "open")]
    known = {symbol["identifier"]["precise"] for symbol in graph["symbols"]}
    graph["relationships"] = [relation for relation in graph["relationships"] if relation["source"] in known]


def is_public(graphs: dict[str, dict]) -> bool:
    return any(symbol["accessLevel"] == "public" for graph in graphs.values() for symbol in graph["symbols"])


def main(folder: pathlib.Path, output: pathlib.Path) -> None:
    catalogs = sorted(pathlib.Path("Sources").glob("*/*/*.docc"))
    if not catalogs:
        sys.exit("no catalog is below Sources")
    for catalog in catalogs:
        module = catalog.parent.name
        graphs = graphs_of(module, folder)
        if catalog.stem != module or not graphs:
            sys.exit(f"{catalog} is of no module; name it as its module: Sources/LAYER/MODULE/MODULE.docc")
        if is_public(graphs):
            for graph in graphs.values():
                keep_public(graph)
        (output / module).mkdir(parents=True)
        for name, graph in graphs.items():
            (output / module / name).write_text(json.dumps(graph))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
