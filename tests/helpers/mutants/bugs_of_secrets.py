"""Planted bugs with secrets."""

from .patching import Patch
from .planted_bug import CONFUSED, COUNT_KINDS, PlantedBug

PART = "Secrets"

BUGS = [
    PlantedBug(
        name="key in a publishable file",
        summary="A keyed model, which holds exact counts and the key of their noise, is written as publishable.",
        function="KeyedCounts.publishable",
        old="False",
        new="True",
        caught_by=f"{CONFUSED}[keyed]",
    ),
    PlantedBug(
        name="secret file that everybody may read",
        summary="A secret model is written with mode 0644.",
        function="save_model",
        old="0o600",
        new="0o644",
        caught_by=f"{CONFUSED}[keyed]",
    ),
    PlantedBug(
        name="seeded model published",
        summary="A model whose noise anyone can compute from its seed counts as publishable.",
        function="Model.publishable",
        old="self.guarantee.private",
        new="True",
        caught_by="tests/privacy/test_guarantee.py::test_modes_that_are_not_private_warn_and_say_so[arguments1]",
        seen="Noise that can be predicted was drawn by PrivCount.",
        source="privcount/privcount#65",
    ),
    PlantedBug(
        name="seed of 0 taken for none",
        summary="A fit with the seed 0 neither warns nor loses its guarantee.",
        function="PrivateDetector._guarantee",
        old="self.unsafe_seed is not None",
        new="self.unsafe_seed",
        caught_by="tests/privacy/test_guarantee.py::test_modes_that_are_not_private_warn_and_say_so[arguments2]",
    ),
    PlantedBug(
        name="exact counts kept in the model",
        summary="A dense model keeps the exact counts beside the noisy ones, and a pickle carries them.",
        function="DenseCounts",
        old="counts: NDArray[np.int64]",
        new="counts: NDArray[np.int64]\nexact: Any = None",
        more=(
            Patch(
                "release_dense",
                "DenseCounts(release_vector(...))",
                "DenseCounts(release_vector(...), exact=exact)",
            ),
        ),
        caught_by=f"{COUNT_KINDS}::test_a_publishable_model_holds_these_fields_only[dense]",
        seen="diffprivlib's KMeans has noisy centres, and keeps the exact labels_ and inertia_ of its rows.",
        source="IBM/differential-privacy-library, models/k_means.py at 0a7292d",
    ),
    PlantedBug(
        name="pickled secret",
        summary="A keyed model can be pickled without permission, as job queues and caches do.",
        function="_may_travel",
        old="default=False",
        new="default=True",
        caught_by=f"{COUNT_KINDS}::test_a_dense_model_pickles_and_a_keyed_one_needs_secrets_may_travel",
    ),
    PlantedBug(
        name="secrets in a repr",
        summary="The text that a notebook or a log shows for keyed counts has the exact counts and the key.",
        function="KeyedCounts",
        old="repr=False",
        new="repr=True",
        caught_by=f"{COUNT_KINDS}::test_secrets_do_not_show_in_a_repr",
    ),
    PlantedBug(
        name="bounds from the rows forgotten",
        summary="A fit on bounds that were taken from the reference rows counts as private.",
        function="PrivateDetector._guarantee",
        old="self._leak()",
        new="[]",
        caught_by="tests/detectors/test_as_in_paper.py::"
        "test_leaked_bounds_void_the_guarantee_of_any_detector_and_of_what_is_made_from_it[DPForest]",
        seen="The paper's preprocessing takes mean and maximum from the rows, and its guarantee does not count them.",
        source="arXiv:2104.07938, Section 4.1",
    ),
    PlantedBug(
        name="bounds from the rows forgotten in a file",
        summary="An estimator made from a loaded model takes bounds that came from the reference rows for declared ones.",
        function="PartitionedDetector._arguments_of",
        old="LEAKED in model.guarantee.voided_by",
        new="False",
        caught_by="tests/detectors/test_as_in_paper.py::test_a_fit_with_a_twins_bounds_states_that_it_is_not_private",
    ),
]
