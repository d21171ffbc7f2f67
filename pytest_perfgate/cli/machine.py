"""Commands on the machine: ceilings, clocks, devices, and the error rates of the gate on it."""

from __future__ import annotations

import datetime as dt
import os
import shlex
import subprocess
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Any

from pytest_perfgate import wiring
from pytest_perfgate.app.devices import (
    catalogue_document,
    ceilings_document,
    clocks_document,
    measured_ceilings,
    reset,
    sheet_document,
    shown,
)
from pytest_perfgate.cli.dispatch import Project, add_root
from pytest_perfgate.cli.output import above_zero, from_one, from_zero, percent, room, say, show, write_file, write_json
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.wiring import devices

if TYPE_CHECKING:
    from pytest_perfgate.core.judge.calibration import Calibration, Rate

CEILINGS_ABOUT = """Measure the highest rates that this machine reaches: a large product of each dtype, a large copy.

perfgate stores them beside the baselines. They are the roof of a host, and of a device without a data sheet. A higher
rate of an earlier run stays.
"""


def ceilings_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--runtime", default="host", choices=("host", "torch"), help="the library to measure with")
    parser.add_argument("--dry-run", action="store_true", help="measure and show, store nothing")
    parser.add_argument("--show", action="store_true", help="show the stored ceilings, measure nothing")
    parser.add_argument("--clocks", default="observe", choices=("lock", "observe", "off"), help="policy on a GPU")
    add_root(parser)


def run_ceilings(options: Namespace) -> int:
    project = Project(options)
    bench = devices.ceiling_bench(project.config, options.runtime, options.clocks, _progress)
    store = devices.ceiling_store(project.baselines)
    stored = store.read(bench.device.key)
    if options.show:
        show(ceilings_document(bench.device, stored, ""), options)
        return 0
    today = dt.datetime.now(dt.timezone.utc).date().isoformat()
    _progress("measuring, for a few seconds on an idle machine and for a minute on a busy one")
    measured = measured_ceilings(bench.device, bench.library, bench.take, bench.loads, today)
    measured = measured if options.dry_run else measured.or_higher(stored)
    where = "" if options.dry_run else project.shown(store.write(measured))
    show(ceilings_document(bench.device, measured, where), options)
    return 0


def _progress(text: str) -> None:
    """Show progress on standard error, beside the answer."""
    sys.stderr.write(f"perfgate: {text}\n")


CLOCKS_ABOUT = """Show, lock or reset the clocks of devices.

show changes nothing. lock holds until reset. A run with `clocks = "lock"` locks and resets by itself.
"""


def clocks_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", default="show", choices=("show", "lock", "reset"))
    parser.add_argument(
        "--mhz", type=above_zero, default=0.0, help="SM clock to lock at (default: the catalogue's, or base)"
    )
    parser.add_argument("--device", default="", help="number as nvidia-smi counts, or UUID (default: all)")
    add_root(parser)


def run_clocks(options: Namespace) -> int:
    if options.mhz and options.action != "lock":
        fix = f"perfgate clocks lock --mhz {options.mhz:g}"
        raise PerfgateError("command-usage", f"--mhz is a clock to lock at, and {options.action} locks none", fix=fix)
    project, locks = Project(options), devices.clock_locks()
    cards = _cards(options.device, must=options.action != "show")
    if options.action == "lock":
        for card in cards:
            locks.lock_until_reset(card, options.mhz * 1e6 or devices.sheet_lock(project.config, card))
    if options.action == "reset":
        reset(cards, locks.read_locks(), locks.put_back)
    named = {card.uuid() for card in cards} if options.device and cards else None
    locked = [lock for lock in locks.read_locks() if named is None or lock.device in named]
    show(clocks_document(shown(cards, locked), devices.management().availability()), options)
    return 0


def _cards(device: str, *, must: bool) -> list[Any]:
    nvml = devices.management()
    availability = nvml.availability()
    if not availability.usable:
        if must:
            raise PerfgateError("clocks-unsupported", availability.why, fix=availability.fix)
        return []
    cards: list[Any] = list(nvml.every())
    if not device:
        return cards
    # Libraries other than the driver's write a UUID without GPU- before it.
    names = [{str(at), card.uuid(), card.uuid().removeprefix("GPU-")} for at, card in enumerate(cards)]
    chosen = [card for card, own in zip(cards, names) if device in own]
    if not chosen:
        what = f"there is no device {device!r}: {plural(len(cards), 'device')} here"
        raise PerfgateError("device-unmapped", what, fix="perfgate clocks show: their numbers, from 0, and UUIDs")
    return chosen


DEVICES_ABOUT = """Show data sheets of known devices: dense rates, their clocks, and the rates that were reached.

Without a name it shows the whole catalogue, first the project's own devices. --here shows those of this machine.
"""


def devices_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="*", help="a device, an architecture (sm_90) or a die (GH100)")
    parser.add_argument("--here", action="store_true", help="the devices of this machine")
    add_root(parser)


def run_devices(options: Namespace) -> int:
    word = " ".join(options.name)
    if options.here and word:
        raise PerfgateError("command-usage", f"--here and {word!r} name different devices", fix="leave one of them out")
    if options.here:
        from pytest_perfgate.app.doctor import machine_document

        show(machine_document(wiring.this_machine(Project(options).config)), options)
        return 0
    catalogue = devices.catalogue(Project(options).config)
    if not word:
        show(catalogue_document(tuple(catalogue), 0 if options.json else room()), options)
        return 0
    specs = catalogue.find(word)
    if not specs:
        raise PerfgateError("device-unknown", f"no data sheet matches {word!r}")
    show(sheet_document(specs), options)
    return 0


CALIBRATE_ABOUT = """Measure how often the gate raises a false alarm here, and how small a slowdown it finds.

It runs your tests on your machine, with the same code on both sides. A second run adds its rounds to the first.
"""


def calibrate_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--minutes", type=from_zero, default=10.0, metavar="N", help="minutes to measure; 0: none (default 10)"
    )
    parser.add_argument(
        "--limit", type=percent, default=3.0, metavar="PERCENT", help="the limit to judge by (default 3)"
    )
    parser.add_argument("--suites", type=from_one, default=300, metavar="N", help="suites to draw (default 300)")
    parser.add_argument("--fresh", action="store_true", help="forget the rounds of earlier calibrations")
    parser.add_argument("--scaled-only", action="store_true", help="do not inject slowdowns, only scale times")
    parser.add_argument("--svg", default="", metavar="PATH", help="draw the power curve")
    add_root(parser)
    parser.add_argument("--pytest", type=_words, default="", metavar="ARGS", help="arguments for pytest: '-k gemm'")


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as fault:
        raise ArgumentTypeError(f"{text!r}: {fault}") from None


def run_calibrate(options: Namespace) -> int:
    from pytest_perfgate.core.judge.calibration import calibration, calibration_document, curve
    from pytest_perfgate.core.render.drawing import standalone

    result = calibration(_measured(options), options.limit / 100, suites=options.suites)
    if options.svg:
        write_file(options.svg, standalone(curve(result).svg))
        say(f"wrote {options.svg}", options)
    if options.json:
        write_json(_calibration_facts(result))
    else:
        show(calibration_document(result), options)
    return 0


def _measured(options: Namespace) -> Any:
    """Return the rounds, new and stored, as one number for each process."""
    from pytest_perfgate.app.compare_arms import ROUND, pairs_of
    from pytest_perfgate.core.judge.calibration import FORKED, LEAST, Recorded
    from pytest_perfgate.model.verdict import PairedRound

    path = wiring.calibration_path(Project(options).root)
    path.parent.mkdir(exist_ok=True)
    if options.fresh:
        path.unlink(missing_ok=True)
    if options.minutes > 0:
        _pytest(options, str(path))
    rounds = wiring.read_values(path, PairedRound)
    paired = pairs_of(rounds, ROUND)
    measured = _judgeable(paired)
    if not measured:
        most = max((len(pairs.base) for pairs in paired.values()), default=0)
        raise PerfgateError(
            "calibration-wrong",
            f"{plural(most, 'round')} so far, and {LEAST} are the least to judge by",
            fix="perfgate calibrate --minutes 10: it adds to the rounds that are here",
        )
    forked = {str(key): pairs for key, pairs in pairs_of(rounds, FORKED).items() if str(key) in measured}
    return Recorded(pairs=measured, slowed=_slowed(rounds, measured), shares=_shares(rounds), forked=forked)


def _judgeable(recorded: Any) -> dict[str, Any]:
    """Return the tests with enough rounds to judge."""
    from pytest_perfgate.core.judge.calibration import LEAST

    return {str(key): pairs for key, pairs in recorded.items() if len(pairs.base) >= LEAST}


def _slowed(rounds: Any, measured: Any) -> dict[float, Any]:
    """Return rounds with an injected slowdown, of calls with the host's timer, which alone can be slowed."""
    from pytest_perfgate.app.compare_arms import pairs_of, phase_of
    from pytest_perfgate.core.judge.calibration import INJECTED

    hosts = {str(c.key) for one in rounds for c in one.head if c.samples and c.samples[-1].timer == "host"}
    by_size = {by: _judgeable(pairs_of(rounds, phase_of(by))) for by in INJECTED}
    return {
        by: {name: pairs for name, pairs in shares.items() if name in measured and name in hosts}
        for by, shares in by_size.items()
    }


def _shares(rounds: Any) -> dict[str, float]:
    """Return a round's seconds by test, with its part of starting the processes."""
    from statistics import fmean

    from pytest_perfgate.app.compare_arms import ROUND

    samples: dict[str, list[float]] = {}
    for one in rounds:
        if one.phase == ROUND and one.share_s:
            samples.setdefault(one.nodeid, []).append(one.share_s)
    return {nodeid: fmean(shares) for nodeid, shares in samples.items()}


def _pytest(options: Namespace, path: str) -> None:
    arguments = ["-qq", "-p", "no:cacheprovider", "-p", "pytest_perfgate.plugin.calibrating", "--perfgate=off"]
    settings = {"PERFGATE_CALIBRATION": path, "PERFGATE_CALIBRATION_SECONDS": str(options.minutes * 60)}
    slowing = {} if options.scaled_only else {"PERFGATE_CALIBRATION_SLOWING": "1"}
    try:
        result = subprocess.run(
            [sys.executable, "-m", "pytest", *arguments, *options.pytest],
            cwd=options.root or None,
            env={**os.environ, **settings, **slowing},
            stdout=sys.stderr,
            check=False,
        )
    except KeyboardInterrupt:
        sys.stderr.write("perfgate: finished rounds are kept; run it again and it goes on\n")
        raise
    if result.returncode not in {0, 5}:
        raise PerfgateError("calibration-wrong", f"pytest ended with exit code {result.returncode}; it says why above")


def _calibration_facts(calibration: Calibration) -> dict[str, object]:
    """Return a calibration by name for programs, with bounds of its rates."""
    return {
        "limit": calibration.limit,
        "rounds": calibration.rounds,
        "alarms": _rate_fields(calibration.alarms),
        "undecided": _rate_fields(calibration.undecided),
        "processes": calibration.processes,
        "seconds": calibration.seconds,
        "power": [{"by": by, "seen": _rate_fields(rate)} for by, rate in calibration.power],
        "injected": [
            {"by": slowed.by, "found": slowed.measured, "rounds": slowed.rounds, "seen": _rate_fields(slowed.detected)}
            for slowed in calibration.injected
        ],
        "suits": calibration.suits,
        "forks": [dict(zip(("test", "fresh", "forked"), fork)) for fork in calibration.forks],
        "tests": [
            {"test": name, "own_shift": own, "limit": limit, "rounds": rounds}
            for name, own, limit, rounds in calibration.own
        ],
    }


def _rate_fields(rate: Rate) -> dict[str, float]:
    return {"hits": rate.hits, "count": rate.count, "rate": rate.rate, "low": rate.bounds.low, "high": rate.bounds.high}
