"""What is known of a planted bug, and the tests that catch several."""

from dataclasses import dataclass

from .patching import Patch

UNKNOWN = "No public case known to us."


@dataclass(frozen=True)
class PlantedBug:
    """A small patch of the package that breaks its promise."""

    name: str
    summary: str
    function: str
    old: str
    new: str
    """These three, and ``top``, are those of ``Patch``."""
    caught_by: str
    """The test, as pytest names it."""
    seen: str = UNKNOWN
    """Where such a bug was seen outside of this project."""
    source: str = ""
    """A paper, or an issue as owner/repository#number; empty if there is none."""
    top: tuple[str, ...] = ()
    more: tuple[Patch, ...] = ()
    """What else must be patched."""

    @property
    def patches(self) -> tuple[Patch, ...]:
        return (Patch(self.function, self.old, self.new, self.top), *self.more)


EXACT, COUNT_KINDS, REPLAY = (
    "tests/trusted/test_privacy_exact.py",
    "tests/counts/test_base.py",
    "tests/trusted/test_neighbour_replay.py",
)
LEDGER_COSTS, LEDGER_FITS = "tests/ledger/test_budgets.py", "tests/ledger/test_fits.py"
LEDGER_PAID, LEDGER_FAULTS = "tests/ledger/test_paid.py", "tests/ledger/test_faults.py"
LAW_OF_A_FIT = "tests/noise/test_laplace.py::test_what_a_fit_releases_has_the_noise_that_was_charged[grid]"
ALL_PARTS = f"{EXACT}::test_all_parts_together_cost_at_most_epsilon[add-or-remove-one-1-forest]"
PRIVATE_BOUNDS = (
    "tests/detectors/test_real_tables.py::test_private_bounds_are_charged_at_the_rate_at_which_they_are_chosen"
    "[add-or-remove-one-1-marginals]"
)
RANGES = "tests/trusted/test_ranges.py"
NO_ROWS = "tests/cli/test_commands.py::test_a_header_without_a_line_end_is_a_file_of_no_rows"
FIRST_BIN = "tests/cli/test_commands.py::test_values_that_do_not_parse_count_in_the_first_bin"
CONFUSED = "tests/model/test_file.py::test_secret_and_publishable_files_cannot_be_confused"
