"""Write architecture.md and architecture.svg from the import contracts and the first line of each folder's docstring."""
# ruff: noqa: E501 - rows of a table cannot be wrapped

import ast
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "src/dpoutlier"
CONTRACTS = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
    "contracts"
]
"""What ``lint-imports`` checks."""

TEXT = """\
# Architecture

Reference data becomes noisy counts once; everything after that only reads them.

![The folders as layers. Reference rows go down to trusted; noisy counts come out of it; scores are made of these](architecture.svg)

The code is in `src/dpoutlier/`, and so is every path below. A folder may import from the folders below it, never from those above or beside it. From top to bottom:

| folder | what it is for |
|---|---|
{folders}

**Only `trusted` (red) asks for reference rows and decides what is released of them**, as [its proof](../src/dpoutlier/trusted/PROOF.md)
requires. {callers} may hand rows to it. No other folder can import it, directly or through another one. What `trusted` calls
below it handles each row separately and stores none. Two parts go around it: `as_in_paper` takes its bounds from the rows, and `KNN`
keeps the rows. Their warnings and guarantees say that they are not private.

## Where is it?

| question | answer |
|---|---|
| Where is the noise drawn? | `noise/laplace.py` (`DiscreteLaplace.draw`), called by `trusted/release.py`. For keyed counts `kernels/counts.py` computes it from a secret key each time a cell is looked up |
| Where are reference rows counted? | `trusted/counts.py`, or a query engine through `trusted/in_engine.py` |
| Where are the other releases made? | `trusted/fit.py` makes all of them: the number of rows, private bounds with `trusted/quantiles.py`, narrower ranges with `trusted/ranges.py`, the threshold with `scoring/threshold.py`. `trusted/people.py` limits the rows of each person first; `trusted/engine_people.py` does so in a query engine |
| Where is a CSV file read? | `tables/csv.py`: `CsvTable` for reference rows; `CsvPoints` for points, on the command line and in the server. The server's page has its own, `server/page/csv.js` |
| Where does a value become a position? | `features/lattice.py` defines it; `tables/rows.py` applies it to tables, `engines/expressions/positions.py` inside a query |
| Where is epsilon divided, and charged? | `model/plan.py` divides it; `ledger/ledger.py` (`Ledger.reserve`) charges it to the ledger, if there is one, before `trusted/open.py` reads the first row |
| Where is a score computed? | `scoring/log_counts.py` for forests and marginals, `scoring/nearest_cells.py` for grids (the paper's Algorithm 1: `kernels/walk.py`, and `kernels/walk_stored.py` where only some cells are stored) |

## Where would it go?

| something new | where |
|---|---|
| a detector | its file in `detectors/` and one line in `detectors/registry.py`. Its base is `PrivateDetector` of `detectors/partitioned.py`, its example `detectors/marginals.py`. New cells or a new score: also a file and a line in `partitions/` or `scoring/` |
| a noise | one file in `noise/`, that implements the protocol `Noise` of `noise/mechanism.py`, and one line in `noise/registry.py`. If it has a delta, only dense counts take it; ledgers and merges refuse it so far |
| an engine for lazy frames | one file in `engines/`, with a `LocalEngine` or `ClusterEngine` of `engines/base.py`, and one line in `engines/registry.py` |
| a route of the server | its function in `server/routes.py`, its answer in `server/schemas.py`. Who may ask follows from its parameters, of `server/dependencies.py`: with `ModelToQuery` it needs a key for that model, and the request is written to the audit log; with `ModelToShow` it needs such a key; with `RequestKey` any valid key; without one of them it is open to everybody |
| a version of the model file | one module in `model/file/` and one line in `model/file/versions.py`; read its first lines before you change what a file holds |
| a command | its file in `cli/` and one line in `cli/app.py` |

Each brings its tests in the folder of the same name under `tests/`. Give a new folder a layer in `pyproject.toml`.

`make contracts` checks the layers. `make architecture` writes this page from them, with the text in `docs/make_architecture.py`; a test
fails if it was not run.
"""

KINDS = {
    "rows": "asks for reference rows",
    "caller": "may hand rows to trusted",
    "reader": "cannot ask for rows",
    "tool": "tools",
}
"""The kinds of folders, and what they mean."""
LEFT, RIGHT, WIDTH, TOP, ROW, STEP = 238, 662, 900, 76, 34, 42
STYLE = """\
text { font: 14px Helvetica, Arial, sans-serif; fill: #222222 }
text.folder { font: bold 14px Menlo, Consolas, monospace; text-anchor: middle }
text.title { font-size: 18px; text-anchor: middle }
text.pill { font-weight: bold; text-anchor: middle }
rect.rows { fill: #b3261e; stroke: #b3261e } text.rows { fill: #ffffff }
rect.caller { fill: #fbdedb; stroke: #b3261e } text.caller { fill: #7a1a14 }
rect.reader { fill: #dbe9f8; stroke: #2b6cb0 } text.reader { fill: #1d4673 }
rect.tool { fill: #f1f0ea; stroke: #8f8b7d } text.tool { fill: #4c493f }
.red { stroke: #b3261e } .blue { stroke: #2b6cb0 }
text.red { fill: #b3261e; stroke: none } text.blue { fill: #2b6cb0; stroke: none }
path, rect.pill { fill: none; stroke-width: 2.5 }
"""


def layers() -> list[list[str]]:
    """The folders of each layer, from top to bottom. Single modules are left out: all of them lie below the folders."""
    contract = next(one for one in CONTRACTS if one["type"] == "layers" and one["containers"] == ["dpoutlier"])
    named = [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]
    found = [[name for name in layer if (PACKAGE / name).is_dir()] for layer in named]
    order = list(KINDS)
    return [sorted(layer, key=lambda name: order.index(kind(name, found))) for layer in found if layer]


def kind(folder: str, found: list[list[str]]) -> str:
    """What a folder has to do with reference rows, by its layer and by the contracts that forbid importing ``trusted``."""
    height = {name: -place for place, layer in enumerate(found) for name in layer}
    forbidden = {
        source.removeprefix("dpoutlier.")
        for one in CONTRACTS
        if one["type"] == "forbidden" and "dpoutlier.trusted" in one["forbidden_modules"]
        for source in one["source_modules"]
    }
    if folder == "trusted":
        return "rows"
    if height[folder] > height["trusted"] and folder not in forbidden:
        return "caller"
    return "reader" if height[folder] >= height["counts"] else "tool"


def first_line(folder: str) -> str:
    """First line of the docstring of the folder."""
    docstring = ast.get_docstring(ast.parse((PACKAGE / folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    return docstring.split("\n")[0].replace("``", "`")


def page() -> str:
    """The text of architecture.md."""
    found = layers()
    names = [name for layer in found for name in layer]
    callers = [f"`{name}`" for name in names if kind(name, found) == "caller"]
    return TEXT.format(
        folders="\n".join(f"| `{name}` | {first_line(name)} |" for name in names),
        callers=f"{', '.join(callers[:-1])} and {callers[-1]}",
    )


def picture() -> str:
    """The text of architecture.svg."""
    found = layers()
    y = {name: TOP + place * STEP + ROW // 2 for place, layer in enumerate(found) for name in layer}
    bottom = TOP + len(found) * STEP
    rows, counts = y["trusted"] - 8, y["counts"]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 44}" width="{WIDTH}" height="{bottom + 44}">',
        f"<style>\n{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{bottom + 44}" fill="#ffffff"/>',
        _text(
            WIDTH // 2, 34, "title", "Reference data becomes noisy counts once; everything after that only reads them."
        ),
        *(_boxes(layer, TOP + place * STEP, found) for place, layer in enumerate(found)),
        _pill(20, "red", "reference rows"),
        _arrow("red", f"M 44 {TOP + ROW} V {rows} H {LEFT - 3}", "l -7 -5 m 7 5 l -7 5"),
        _text(58, TOP + ROW + 56, "red", "fit: rows go down to", "trusted, and no further"),
        _arrow("blue", f"M {LEFT} {rows + 16} H 44 V {counts} H {LEFT - 3}", "l -7 -5 m 7 5 l -7 5"),
        _text(58, (rows + counts) // 2, "blue", "noise is added, once:", "noisy counts come out"),
        _pill(RIGHT + 40, "blue", "scores, explanations"),
        _arrow("blue", f"M {RIGHT} {counts} H {WIDTH - 44} V {TOP + ROW + 3}", "l -5 7 m 5 -7 l 5 7"),
        _text(
            RIGHT + 54,
            counts - 120,
            "blue",
            "score, explain,",
            "export, serve:",
            "as often as wanted,",
            "at no further cost",
        ),
    ]
    for place, (one, meaning) in enumerate(KINDS.items()):
        x = 30 + 200 * place
        parts += [_rect(x, bottom + 6, 16, 16, 3, one), _text(x + 24, bottom + 19, "meaning", meaning)]
    return "\n".join([*parts, "</svg>", ""])


def _boxes(layer: list[str], y: int, found: list[list[str]]) -> str:
    """One box for each folder of a layer, side by side."""
    step = (RIGHT - LEFT + 8) // len(layer)
    parts = []
    for place, name in enumerate(layer):
        x, one = LEFT + place * step, kind(name, found)
        parts += [_rect(x, y, step - 8, ROW, 6, one), _text(x + step // 2 - 4, y + 22, f"folder {one}", name)]
    return "\n".join(parts)


def _pill(x: int, colour: str, words: str) -> str:
    return _rect(x, TOP, 180, ROW, ROW // 2, f"pill {colour}") + "\n" + _text(x + 90, TOP + 22, f"pill {colour}", words)


def _rect(x: int, y: int, width: int, height: int, radius: int, style: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}" class="{style}"/>'


def _arrow(colour: str, line: str, head: str) -> str:
    return f'<path d="{line} {head}" class="{colour}"/>'


def _text(x: int, y: int, style: str, *lines: str) -> str:
    return "\n".join(
        f'<text x="{x}" y="{y + 18 * place}" class="{style}">{line}</text>' for place, line in enumerate(lines)
    )


if __name__ == "__main__":
    (HERE / "architecture.md").write_text(page(), encoding="utf-8")
    (HERE / "architecture.svg").write_text(picture(), encoding="utf-8")
