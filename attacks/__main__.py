"""`python -m attacks`: attack, print what broke as it goes, and at the end what was tried, what held, what broke."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from attacks import kinds
from attacks.runner import Broken, Tally, attack
from attacks.worker import kind_named

_SHOWN = 8  # broken attempts of one kind that are printed; all are counted


def main() -> int:
    """Run the selected kinds of attack. Return 1 if something broke."""
    parser = argparse.ArgumentParser(prog="python -m attacks", description=__doc__)
    parser.add_argument("--only", default="", help=f"kinds, separated by commas: {', '.join(kinds.NAMES)}")
    parser.add_argument("--seconds", type=float, default=210.0, help="for all kinds together (%(default)g)")
    parser.add_argument("--seed", default="1", help="another seed, other attempts")
    parser.add_argument("--jobs", type=int, default=2, help="how many kinds at once (%(default)s)")
    parser.add_argument("--attempt", type=int, help="this one alone, of one kind")
    parser.add_argument("--quick", action="store_true", help="the first few of each kind")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(kinds.NAMES)
    if unknown := [name for name in names if name not in kinds.NAMES]:
        parser.error(f"no kind {unknown[0]!r}; there are: {', '.join(kinds.NAMES)}")
    tallies = _attack_all(names, options)
    _print_table(tallies, markdown=options.markdown)
    return int(any(tally.broke for tally in tallies))


def _attack_all(names: Sequence[str], options: argparse.Namespace) -> list[Tally]:
    chosen = {name: kind_named(name) for name in names}
    whole = sum(kind.share for kind in chosen.values())
    at_once = max(1, min(options.jobs, len(names)))
    one_line = threading.Lock()

    def run(name: str) -> Tally:
        kind, shown = chosen[name], 0

        def tell(broken: Broken) -> None:
            nonlocal shown
            shown += 1
            if shown <= _SHOWN:
                with one_line:
                    print(broken, flush=True)

        first = options.attempt or 0
        last = first + 1 if options.attempt is not None else kind.quick if options.quick else sys.maxsize
        seconds = options.seconds * at_once * kind.share / whole
        tally = attack(name, seed=options.seed, seconds=seconds, first=first, last=last, tell=tell)
        with one_line:
            counts = f"{tally.tried:6} tried {tally.held:6} held {tally.broke:5} broke"
            print(f"{name:14}{counts}  {tally.seconds:5.1f} s  {kind.law}", flush=True)
        return tally

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(run, names))


def _print_table(tallies: Sequence[Tally], *, markdown: bool) -> None:
    rows = [(tally.kind, tally.tried, tally.held, tally.broke) for tally in tallies]
    rows.append(("in all", sum(row[1] for row in rows), sum(row[2] for row in rows), sum(row[3] for row in rows)))
    print()
    if markdown:
        print("| kind | what must stay true | tried | held | broke |\n|---|---|---:|---:|---:|")
        for kind, tried, held, broke in rows:
            sentence = kind_named(kind).law if kind in kinds.NAMES else ""
            print(f"| {kind} | {sentence} | {tried:,} | {held:,} | {broke:,} |")
        return
    print(f"{'kind':14}{'tried':>8}{'held':>8}{'broke':>8}")
    for kind, tried, held, broke in rows:
        print(f"{kind:14}{tried:8,}{held:8,}{broke:8,}")


if __name__ == "__main__":
    sys.exit(main())
