"""Planted bugs with secrets."""

from planted import Patch
from planted_bug import CONFUSED, COUNT_KINDS, UNKNOWN, PlantedBug

__all__ = ["BUGS"]

PART = "Secrets"

BUGS = [
    PlantedBug(
        part=PART,
        name="key in a publishable file",
        summary="A keyed model, which holds exact counts and the key of their noise, is written as publishable.",
        file="counts/keyed.py",
        old="        return False\n",
        new="        return True\n",
        caught_by=f"{CONFUSED}[keyed]",
        seen=UNKNOWN,
        source="",
    ),
    PlantedBug(
        part=PART,
        name="secret file that everybody may read",
        summary="A secret model is written with mode 0644.",
        file="model/file/store.py",
        old="mode = 0o644 if model.publishable else 0o600",
        new="mode = 0o644",
        caught_by=f"{CONFUSED}[keyed]",
        seen=UNKNOWN,
        source="",
    ),
    PlantedBug(
        part=PART,
        name="seeded model published",
        summary="A model whose noise anyone can compute from its seed counts as publishable.",
        file="model/model.py",
        old="return self.guarantee.private and self.counts.publishable",
        new="return self.counts.publishable",
        caught_by="tests/privacy/test_guarantee.py::test_modes_that_are_not_private_warn_and_say_so[arguments1]",
        seen="Noise that can be predicted was drawn by PrivCount.",
        source="privcount/privcount#65",
    ),
    PlantedBug(
        part=PART,
        name="seed of 0 taken for none",
        summary="A fit with the seed 0 neither warns nor loses its guarantee.",
        file="detectors/partitioned.py",
        old="voided += [SEEDED] if self.unsafe_seed is not None else []",
        new="voided += [SEEDED] if self.unsafe_seed else []",
        caught_by="tests/privacy/test_guarantee.py::test_modes_that_are_not_private_warn_and_say_so[arguments2]",
        seen=UNKNOWN,
        source="",
    ),
    PlantedBug(
        part=PART,
        name="exact counts kept in the model",
        summary="A dense model keeps the exact counts beside the noisy ones, and a pickle carries them.",
        file="counts/dense.py",
        old="    unsafe_float: bool = False\n",
        new="    unsafe_float: bool = False\n    exact: Any = None\n",
        more=(
            Patch(
                "trusted/release.py",
                "return DenseCounts(release_vector(exact, law, source))",
                "return DenseCounts(release_vector(exact, law, source), exact=exact)",
            ),
        ),
        caught_by=f"{COUNT_KINDS}::test_a_publishable_model_holds_these_fields_only[dense]",
        seen="diffprivlib's KMeans has noisy centres, and keeps the exact labels_ and inertia_ of its rows.",
        source="IBM/differential-privacy-library, models/k_means.py at 0a7292d",
    ),
    PlantedBug(
        part=PART,
        name="pickled secret",
        summary="A keyed model can be pickled without a word, as job queues and caches do.",
        file="counts/keyed.py",
        old='ContextVar("secrets_may_travel", default=False)',
        new='ContextVar("secrets_may_travel", default=True)',
        caught_by=f"{COUNT_KINDS}::test_a_dense_model_pickles_and_a_keyed_one_needs_a_word",
        seen=UNKNOWN,
        source="",
    ),
    PlantedBug(
        part=PART,
        name="secrets in a repr",
        summary="The text that a notebook or a log shows for keyed counts has the exact counts and the key.",
        file="counts/keyed.py",
        old="@dataclass(frozen=True, eq=False, repr=False)",
        new="@dataclass(frozen=True, eq=False)",
        caught_by=f"{COUNT_KINDS}::test_secrets_do_not_show_in_a_repr",
        seen=UNKNOWN,
        source="",
    ),
    PlantedBug(
        part=PART,
        name="bounds from the rows forgotten",
        summary="A fit on bounds that were taken from the reference rows counts as private.",
        file="detectors/partitioned.py",
        old="        voided += self._leak()\n",
        new="",
        caught_by="tests/detectors/test_as_in_paper.py::"
        "test_leaked_bounds_void_the_guarantee_of_any_detector_and_of_what_is_made_from_it[DPForest]",
        seen="The paper's preprocessing takes mean and maximum from the rows, and its guarantee does not count them.",
        source="arXiv:2104.07938, Section 4.1",
    ),
    PlantedBug(
        part=PART,
        name="bounds from the rows forgotten in a file",
        summary="An estimator made from a loaded model takes bounds that came from the reference rows for declared ones.",
        file="detectors/partitioned.py",
        old="leaked = model.score_histogram, LEAKED in model.guarantee.voided_by",
        new="leaked = model.score_histogram, False",
        caught_by="tests/detectors/test_as_in_paper.py::test_a_twin_keeps_the_confession_for_a_private_fit_with_its_bounds",
        seen=UNKNOWN,
        source="",
    ),
]
