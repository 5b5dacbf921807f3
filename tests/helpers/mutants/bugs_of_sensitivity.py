"""Planted bugs in how much a row may change."""

from .planted_bug import EXACT, PRIVATE_BOUNDS, PlantedBug

PART = "How much a row may change"

BUGS = [
    PlantedBug(
        name="sensitivity 1 under replace-one",
        summary="One cell loses a row and another gains it, and only one of the two is counted.",
        function="sensitivity",
        old="changes = 2",
        new="changes = 1",
        caught_by=f"{EXACT}::test_the_largest_log_ratio_is_the_epsilon_in_use[replace-one-1-grid of 2]",
        seen="Lemma 1 of the paper that this package implements; and Google's accountant, off by the same factor of 2.",
        source="Rauch, Olatunji and Khosla; google/differential-privacy#378",
    ),
    PlantedBug(
        name="cells of a row forgotten",
        summary="The counts of a forest are charged as if a row lay in one tree.",
        function="_charge_for_counts",
        old="partition.cells_per_row",
        new="1",
        caught_by=f"{EXACT}::test_the_largest_log_ratio_is_the_epsilon_in_use[add-or-remove-one-1-2 trees]",
        seen="A sensitivity off by a factor of the batch size in published code: epsilon was above 2.79, and claimed to be 0.21.",
        source="Tramèr et al. 2022, Debugging differential privacy (arXiv 2202.12219)",
    ),
    PlantedBug(
        name="rows of a person forgotten",
        summary="Noise for one row, although a person has up to m of them.",
        function="Guarantee.sensitivity",
        old="self.rows_per_person",
        new="1",
        caught_by=f"{EXACT}::test_the_noise_that_is_drawn_is_the_noise_that_is_charged[4-add-or-remove-one-grid of 2]",
        seen="Google's C++ library, for several contributions of a user where bounds were found by the library itself.",
        source="google/differential-privacy#87",
    ),
    PlantedBug(
        name="row counted twice",
        summary="Blocks of rows overlap by one, so that some rows count twice.",
        function="_Dense.__call__",
        old="first + step",
        new="first + step + 1",
        caught_by="tests/trusted/test_counts.py::test_forests_and_marginals_count_each_row_in_each_member[1-margins-C]",
        seen="Sums as libraries compute them can change by more than on paper; nearly all of them were affected.",
        source="Casacuberta, Shoemate, Vadhan and Wagaman 2022, Widespread underestimation of sensitivity (CCS)",
    ),
    PlantedBug(
        name="length of the interval of utilities",
        summary="Bounds are chosen at a rate that leaves out a factor of the change that a row makes to the utilities.",
        function="spread",
        old="b * max(a, b - a)",
        new="max(a, b - a)",
        caught_by="tests/trusted/test_quantiles.py::test_a_choice_costs_at_most_its_rate_and_not_much_less[rate0-quantile0]",
        seen="Most published variants of the sparse vector technique scale their noise wrongly and are not private.",
        source="Lyu, Su and Li 2017, Understanding the sparse vector technique (PVLDB)",
    ),
    PlantedBug(
        name="second quantile forgotten",
        summary="Two quantiles are chosen for each feature, and one is charged.",
        function="Plan.charge_for_bounds",
        old="QUANTILES",
        new="1",
        caught_by=PRIVATE_BOUNDS,
        seen="diffprivlib's linear regression centres X and y from one share of epsilon, as an open issue reports.",
        source="IBM/differential-privacy-library#104",
    ),
]
