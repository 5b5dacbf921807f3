"""Planted bugs in what is read off the rows."""

from .planted_bug import ALL_PARTS, EXACT, FIRST_BIN, LEDGER_FITS, PRIVATE_BOUNDS, RANGES, PlantedBug

PART = "What is read off the rows"

BUGS = [
    PlantedBug(
        name="edges learned from data",
        summary="Without declared bounds the least and the largest value of the rows are taken.",
        function="PartitionedDetector.fit",
        old="self._declared()",
        new="self._declared() if self.features is not None else Bounds.of((np.min(X), np.max(X)))",
        caught_by=f"{LEDGER_FITS}::test_what_is_refused_for_public_reasons_costs_nothing_and_reads_nothing"
        "[more0-InvalidParameterError]",
        seen="diffprivlib does so, with a PrivacyLeakWarning; published PATE-GAN code does so without.",
        source="IBM/differential-privacy-library#20; vanderschaarlab/synthcity#278",
    ),
    PlantedBug(
        name="means learned from data",
        summary="Missing values are replaced by the mean of their column, so that every row moves the place of others.",
        function="Reference._rows",
        old="convert.values(...)",
        new="[np.where(np.isnan(column), np.nanmean(column), column) for column in convert.columns(table, self._domain)]",
        caught_by=FIRST_BIN,
        seen="The paper that this package implements centres by the data's own mean; SmartNoise left such filling out as a leak.",
        source="Rauch, Olatunji and Khosla, Section 4.1; opendp/smartnoise-sdk#418",
    ),
    PlantedBug(
        name="rows dropped in silence against the policy",
        summary="Rows with a missing value are left out, although the policy puts them into the first bin.",
        function="Reference._rows",
        old="read = len(rows)",
        new=(
            "whole = ~np.isnan(np.stack(rows.columns)).any(axis=0)\n"
            "rows = Rows([column[whole] for column in rows.columns], self._domain)\n"
            "read = len(rows)"
        ),
        caught_by=FIRST_BIN,
        seen="In OpenDP values that a cast could not read were left out of a count that was taken for public.",
        source="opendp/opendp#2938",
    ),
    PlantedBug(
        name="uncharged threshold from reference scores",
        summary="The threshold comes from the exact scores of the rows, and nothing is charged for it.",
        function="_release_threshold",
        old="plan.charge_for_threshold()",
        new="None",
        caught_by=ALL_PARTS,
        seen="scikit-learn's outlier detectors set offset_ from the scores of their training rows; a private one may inherit it.",
        source="scikit-learn, LocalOutlierFactor and IsolationForest, attribute offset_",
    ),
    PlantedBug(
        name="small releases without noise",
        summary="The number of rows and the histogram of scores are charged, and released as they are.",
        function="_release_small",
        old="release_vector(...)",
        new="exact",
        caught_by=f"{EXACT}::test_small_releases_carry_the_noise_that_is_charged[1-add-or-remove-one-forest]",
        seen="Without bounds in the metadata SmartNoise SQL answered sums with no noise at all.",
        source="opendp/smartnoise-sdk#317",
    ),
    PlantedBug(
        name="exact number of rows after paying for a noisy one",
        summary="The rule for the grid uses the exact number of rows, although epsilon was spent on a noisy one.",
        function="_estimate_row_count",
        old="noisy[0]",
        new="exact[0]",
        caught_by=f"{EXACT}::test_small_releases_carry_the_noise_that_is_charged[1-add-or-remove-one-forest]",
        seen="SmartNoise's covariance clipped the data, and then computed from the data as they were before.",
        source="opendp/smartnoise-sdk#622",
    ),
    PlantedBug(
        name="quantiles chosen without noise",
        summary="Private bounds are the exact quantiles of the rows.",
        function="_choose_bounds",
        old="choose_quantiles(counts, ..., source)",
        new="choose_quantiles(counts, None, source)",
        caught_by=PRIVATE_BOUNDS,
        seen="Two published PATE-GANs scale by the exact range of the data.",
        source="BorealisAI/private-data-generation#12; vanderschaarlab/mlforhealthlabpub#31",
    ),
    PlantedBug(
        name="windows chosen without noise",
        summary="A fit that looks for the rows takes the best window, which is an exact function of the rows.",
        function="_Looked._choose",
        old="permute_and_flip(useful, self._rate, source)",
        new="int(np.argmax(useful))",
        caught_by=f"{RANGES}::test_all_looks_of_a_fit_cost_at_most_what_is_charged_and_not_much_less"
        "[3 alike-add-or-remove-one-1-each]",
        seen="Two published PATE-GANs scale by the exact range of the data.",
        source="BorealisAI/private-data-generation#12; vanderschaarlab/mlforhealthlabpub#31",
    ),
    PlantedBug(
        name="limit on rows that are alike from the rows",
        summary="How many rows of one value count in a look is a share of the true number of rows.",
        function="_Looked.__init__",
        old="math.ceil(n_rows * windows.MOST_ALIKE)",
        new="math.ceil(int(counts[0].sum()) * windows.MOST_ALIKE)",
        caught_by=f"{RANGES}::test_how_many_rows_of_one_value_count_is_not_learned_from_them",
    ),
    PlantedBug(
        name="found bounds taken for public ones",
        summary="Bounds that a fit without privacy took from the rows count as declared in the next fit, which promises privacy.",
        function="HoldsModel.bounds_",
        old="leaked=not model.guarantee.private",
        new="leaked=False",
        caught_by=f"{RANGES}::test_bounds_that_were_found_without_a_guarantee_void_that_of_a_fit_that_takes_them",
        seen="Two published PATE-GANs scale by the exact range of the data.",
        source="BorealisAI/private-data-generation#12; vanderschaarlab/mlforhealthlabpub#31",
    ),
    PlantedBug(
        name="threshold of a sparse model from the data",
        summary="The threshold follows from the number of empty cells, which depends on the rows.",
        function="_release_counts",
        old="tau_for(partition.n_cells, ...)",
        new="tau_for(partition.n_cells - len(exact.counts), ...)",
        caught_by="tests/counts/test_sparse.py::test_how_many_cells_are_occupied_does_not_move_the_threshold",
        seen="Those who found 13 bugs in 12 libraries name noise whose scale depends on the data set among the usual ones.",
        source="Cebere et al. 2026, Privacy in theory, bugs in practice (PETS)",
    ),
]
