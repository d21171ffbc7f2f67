"""Error codes of devices, runtimes, timers and clocks."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code, Family

CODES: tuple[Code, ...] = (
    Code(
        name="device-entry",
        family=Family.CONFIGURATION,
        title="A device's data sheet does not read",
        why="a wrong peak makes every fraction of it wrong",
        mend="see docs/devices.md for the keys and their units",
    ),
    Code(
        name="device-unknown",
        family=Family.DEVICE,
        title="No device of the catalogue or of this machine has this name",
        why="without its data sheet there is no peak to hold a measurement against",
        mend="`perfgate devices` lists the catalogue; add your own under [tool.perfgate.device.NAME]",
    ),
)
