"""All planted bugs: privacy bugs, each with the test that must notice it and with where such a bug was seen."""

from . import (
    bugs_of_alerts,
    bugs_of_budgets,
    bugs_of_messages,
    bugs_of_noise,
    bugs_of_people,
    bugs_of_reading,
    bugs_of_secrets,
    bugs_of_sensitivity,
    bugs_of_serving,
)
from .planted_bug import PlantedBug

__all__ = ["BUGS", "PARTS", "PlantedBug"]

MODULES = (
    bugs_of_noise,
    bugs_of_sensitivity,
    bugs_of_reading,
    bugs_of_messages,
    bugs_of_people,
    bugs_of_budgets,
    bugs_of_secrets,
    bugs_of_serving,
    bugs_of_alerts,
)

PARTS: dict[str, list[PlantedBug]] = {module.PART: module.BUGS for module in MODULES}
"""By what the promise rests on."""
BUGS = [bug for bugs in PARTS.values() for bug in bugs]
