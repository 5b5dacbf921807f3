"""Planted bugs in the budget."""

from patching import Patch
from planted_bug import (
    ALL_PARTS,
    BOUGHT_BOUNDS,
    LEDGER_COSTS,
    LEDGER_FAULTS,
    LEDGER_FITS,
    LEDGER_PAID,
    PlantedBug,
)

__all__ = ["BUGS"]

PART = "The budget"

BUGS = [
    PlantedBug(
        name="true anchor not asked",
        summary="While another anchor is given, the one that the ledger names is not asked, although it is there and knows better.",
        function="Ledger._anchors",
        old="own is not None and (lost or self._override(book) is not None)",
        new="own is None",
        caught_by="tests/ledger/test_overrides.py::"
        "test_an_old_copy_under_another_anchor_says_so_and_all_else_that_knows_better_still_does",
    ),
    PlantedBug(
        name="budget share not charged",
        summary="The counts keep the share of epsilon that the threshold costs, so that the fit costs more than epsilon.",
        function="Plan.epsilon_counts",
        old="self.threshold_share",
        new="0",
        caught_by=ALL_PARTS,
        seen="A change to PipelineDP that would have given every metric the whole budget was stopped in review.",
        source="OpenMined/PipelineDP#113",
    ),
    PlantedBug(
        name="share for bounds not charged",
        summary="The same for private bounds.",
        function="Plan.epsilon_counts",
        old="self.bounds_share",
        new="0",
        caught_by=BOUGHT_BOUNDS,
        seen="diffprivlib's linear regression centres X and y from one share of epsilon, as an open issue reports.",
        source="IBM/differential-privacy-library#104",
    ),
    PlantedBug(
        name="ledger charged for the counts alone",
        summary="The ledger is charged what the counts cost, and not what was spent on bounds, number of rows and threshold.",
        function="Plan.reserved",
        old="self.guarantee",
        new="replace(self.guarantee, epsilon=self.epsilon_counts)",
        top=("from dataclasses import replace",),
        caught_by=f"{LEDGER_FITS}::test_all_that_a_fit_buys_is_charged",
        seen="A budget manager for advertisements could leave out the charge to one of its buckets.",
        source="world-federation-of-advertisers/cross-media-measurement#2209",
    ),
    PlantedBug(
        name="ledger committed before reserved",
        summary="Rows are read first and charged then: who stops the fit in between pays nothing.",
        function="open_reference",
        old="charge()\nreturn InBlocks(read_reference(reference, plan.domain, person, most))",
        new="rows = read_reference(reference, plan.domain, person, most)\ncharge()\nreturn InBlocks(rows)",
        caught_by=f"{LEDGER_FITS}::test_the_charge_is_on_disk_before_the_first_read_of_rows[marginals]",
        seen="diffprivlib's KMeans checks the budget first, and spends it when the result is there.",
        source="IBM/differential-privacy-library, models/k_means.py at 0a7292d",
    ),
    PlantedBug(
        name="charge refunded after a failure",
        summary="A charge counts once the release is committed: who makes fits fail has a budget without end.",
        function="Book._add_reserve",
        old="self.sums[name] = self._own(name) + cost",
        new="",
        more=(
            Patch(
                "Book._add",
                'spending.release = str(content["release"])',
                (
                    'spending.release = str(content["release"])\n'
                    "self.sums[spending.dataset] = self._own(spending.dataset) + spending.epsilon"
                ),
            ),
        ),
        caught_by=f"{LEDGER_COSTS}::test_what_is_reserved_is_spent_whether_it_is_released_or_not",
        seen="Apple's budget on macOS was full again every day.",
        source="Tang et al. 2017, Privacy loss in Apple's implementation of differential privacy (arXiv 1709.02753)",
    ),
    PlantedBug(
        name="budget checked before the file is held",
        summary="What is left is read before the ledger is locked: two fits at once spend it twice.",
        function="Ledger.reserve",
        old=(
            "book = Book.of(appending.entries)\n"
            "cost = cost_of(guarantee, book.budget(dataset))\n"
            "book.check_covers(dataset, cost)"
        ),
        new="",
        more=(
            Patch(
                "Ledger.reserve",
                "dataset = checked_name(dataset=dataset)",
                (
                    "dataset = checked_name(dataset=dataset)\n"
                    "book = Book.of(self.entries())\n"
                    "cost = cost_of(guarantee, book.budget(dataset))\n"
                    "book.check_covers(dataset, cost)"
                ),
            ),
        ),
        caught_by=f"{LEDGER_COSTS}::test_what_is_left_is_read_when_nobody_else_can_spend_it",
        seen="PipelineDP had to see to it that a budget cannot be used twice.",
        source="OpenMined/PipelineDP#164",
    ),
    PlantedBug(
        name="charge not yet on disk",
        summary="The ledger does not wait for the disk: after a power failure the charge is gone, and the model is not.",
        function="ledger.store:append",
        old='"PRAGMA synchronous = EXTRA"',
        new='"PRAGMA synchronous = OFF"',
        caught_by="tests/ledger/test_store.py::test_a_charge_is_written_with_the_strictest_setting_of_sqlite",
    ),
    PlantedBug(
        name="parts that do not spend from the whole",
        summary="A fit on a part may spend what fits on the whole have spent already.",
        function="Book.left",
        old="self._own(budget.part_of)",
        new="0",
        caught_by=f"{LEDGER_COSTS}::test_nobody_ever_loses_more_than_the_budget",
        seen="From which epochs to deduct a budget was left open by a draft for private attribution in browsers.",
        source="w3c/attribution#75",
    ),
    PlantedBug(
        name="relation not converted",
        summary="A fit under add-or-remove-one is charged to a budget of replace-one at half its price.",
        function="cost_of",
        old="Fraction(sensitivity(budget.neighbours), sensitivity(guarantee.neighbours))",
        new="1",
        caught_by=f"{LEDGER_COSTS}::test_a_fit_is_charged_in_the_relation_and_unit_of_the_budget[guarantee2-budget2-2]",
        seen="Google's accountant mixed the two relations up by the same factor.",
        source="google/differential-privacy#378",
    ),
    PlantedBug(
        name="cost rounded down",
        summary="A cost with many decimals is rounded down in the ledger, so that a part of each charge is forgotten.",
        function="rounded_up",
        old="math.ceil",
        new="math.floor",
        caught_by=f"{LEDGER_COSTS}::test_a_cost_is_rounded_up_and_by_less_than_a_billionth_of_a_thousandth",
        seen="A draft for private attribution in browsers kept its budget in floats, whose errors add up.",
        source="w3c/attribution#77",
    ),
    PlantedBug(
        name="old copy of the ledger accepted",
        summary="The anchor is not compared: a copy from before the last fits gives their budget back.",
        function="check_anchor",
        old='check_heads(entries, heads, f"the anchor {place}")',
        new="",
        caught_by="tests/ledger/test_anchor.py::test_an_anchor_makes_an_old_copy_useless",
        seen="Apple's budget on macOS was full again every day.",
        source="Tang et al. 2017 (arXiv 1709.02753)",
    ),
    PlantedBug(
        name="merged epsilon as maximum",
        summary="Releases of people who may overlap are merged at the largest of their epsilons, instead of the sum.",
        function="Merged._together",
        old="sum(epsilons, Fraction(0))",
        new="max(epsilons)",
        caught_by="tests/model/test_parts.py::test_disjoint_people_cost_the_largest_epsilon_and_overlapping_people_the_sum",
    ),
    PlantedBug(
        name="a charge without a release covers any model",
        summary="An entry that was reserved and never committed passes for every model that carries its receipt.",
        function="Ledger.check_paid",
        old="spending.release is None",
        new="False",
        more=(Patch("Ledger.check_paid", "spending.release != release", "spending.release not in (None, release)"),),
        caught_by=f"{LEDGER_PAID}::test_an_entry_without_a_release_pays_for_no_model",
    ),
    PlantedBug(
        name="the same people merged as disjoint",
        summary="Releases that were charged to one data set are merged at the larger of their epsilons.",
        function="charged_to_same_dataset",
        old="other is not part",
        new="False",
        caught_by=f"{LEDGER_PAID}::test_releases_of_one_data_set_are_not_disjoint_however_they_are_grouped",
    ),
    PlantedBug(
        name="another anchor leaves no trace",
        summary="An old copy of the ledger is charged under an anchor that was made for it, and no entry says so.",
        function="Ledger._appending",
        old="_change_anchor(appending, given, override=True)",
        new="pass",
        more=(
            Patch(
                "Ledger._appending",
                "Book.of(appending.entries).anchor",
                "str(self.anchor or Book.of(appending.entries).anchor)",
            ),
        ),
        caught_by="tests/ledger/test_overrides.py"
        "::test_an_old_copy_under_another_anchor_says_so_and_all_else_that_knows_better_still_does",
    ),
    PlantedBug(
        name="a charge called none",
        summary="When a fit fails after its charge, the command line says that nothing was charged.",
        function="Ledger.reserve",
        old="receipt = self.tried = Receipt(book.ledger, dataset, entry.number, entry.hash)",
        new="receipt = Receipt(book.ledger, dataset, entry.number, entry.hash)",
        caught_by=f"{LEDGER_FAULTS}::test_a_fit_says_what_is_true_whichever_call_fails[full]",
    ),
    PlantedBug(
        name="failure of the disk called no charge",
        summary="When SQLite fails after it has committed, the ledger says that nothing was added.",
        function="_what_was_added",
        old="there",
        new="there is None",
        caught_by=f"{LEDGER_FAULTS}::test_other_entries_leave_a_ledger_that_can_be_used_whichever_call_fails[charge-full]",
    ),
    PlantedBug(
        name="release named before its model is there",
        summary="The command line commits the release before it writes the model file: if that fails, the ledger names a "
        "release that nobody has.",
        function="DeferredLedger.commit",
        old="self._release = (receipt, release)",
        new="super().commit(receipt, release)",
        caught_by=f"{LEDGER_FAULTS}::test_a_fit_says_what_is_true_whichever_call_fails[full]",
    ),
    PlantedBug(
        name="anchor not tried before the charge",
        summary="A full disk of the anchor is noticed when the charge is made.",
        function="Ledger._appending",
        old="try_anchor(Path(named), last.number)",
        new="pass",
        caught_by=f"{LEDGER_FAULTS}::test_a_full_disk_of_the_anchor_is_noticed_before_the_charge[0]",
    ),
    PlantedBug(
        name="output not tried before the charge",
        summary="A full disk of the output is noticed when the charge is made and the model is lost.",
        function="cli.fit:fit",
        old="try_target(output)",
        new="pass",
        caught_by=f"{LEDGER_FAULTS}::test_a_full_disk_of_the_output_is_noticed_before_the_charge",
    ),
    PlantedBug(
        name="short write of the anchor",
        summary="A disk that takes a part of a line is not noticed, and the anchor does not know the charge.",
        function="ledger.anchor:_add",
        old="left = left[os.write(handle, left) :]",
        new=('os.write(handle, left)\nleft = b""'),
        caught_by=f"{LEDGER_FAULTS}::test_a_disk_that_takes_a_part_of_a_line_is_noticed[30]",
    ),
    PlantedBug(
        name="merges forget who paid",
        summary="A merge drops the receipts of its parts, so that in a second merge the same people pass as disjoint.",
        function="_parts_of",
        old="model.receipt",
        new="None",
        caught_by=f"{LEDGER_PAID}::test_a_merge_keeps_the_receipts_of_its_parts",
    ),
]
