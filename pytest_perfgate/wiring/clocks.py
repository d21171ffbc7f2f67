"""The composition root of clocks in the hands of a person: which library tells them, who locked them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_perfgate.model.config import Config


def sheet_lock(project: Config, card: Any) -> float | None:
    """The clock that the catalogue says a card holds under any load."""
    from pytest_perfgate.wiring.devices import catalogue

    spec = catalogue(project).lookup(card.described().name)
    return spec.lock_hz if spec else None


def management() -> Any:
    """The management library of this machine's devices: NVIDIA's, else AMD's; one that hangs is told of."""
    from pytest_perfgate.adapters.bindings.amdsmi import Amd
    from pytest_perfgate.adapters.bindings.nvml import Nvml
    from pytest_perfgate.adapters.bindings.patience import silence

    nvml, amd = Nvml(), Amd()
    chosen = nvml.availability().usable or silence(nvml.maker)
    return nvml if chosen or not amd.availability().usable else amd


def clock_locks() -> Any:
    """Locks on clocks that are on file, and what lifts one."""
    from pytest_perfgate.adapters.devices import locks

    return locks


def lift(card: Any) -> None:
    """Put a card's clocks back."""
    from pytest_perfgate.adapters.devices.owning import put_back

    put_back(card)


def keep_lock(card: Any, sm_hz: float | None) -> None:
    """Lock a card's clocks beyond this process."""
    from pytest_perfgate.adapters.devices.owning import lock_for_good

    lock_for_good(card, sm_hz)


def lift_left() -> tuple[str, ...]:
    """Put back what children of this run left locked when they died, and say so; nobody else's locks are touched."""
    from pytest_perfgate.adapters.devices.locks import read_locks, this_run
    from pytest_perfgate.model.errors import PerfgateError

    left = {lock.device: lock for lock in read_locks() if lock.stale and lock.run == this_run()}
    if not left:
        return ()
    try:
        cards = {card.uuid(): card for card in management().every()}
        for device in left:
            lift(cards[device])
    except (PerfgateError, KeyError) as error:
        return (f"clocks left locked by a child that died could not be put back: {error}",)
    return tuple(f"put back the clocks of {device}, left locked by process {lock.pid}" for device, lock in left.items())
