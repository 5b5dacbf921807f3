"""The standard audit with fixed seeds: no claim is refuted, and where a row changes few cells the audit sees half of epsilon."""

import pytest

from dpoutlier.audit import run
from dpoutlier.audit.cases import EPSILONS, EPSILONS_WITH_POWER, Case, standard_cases
from dpoutlier.audit.configuration import Configuration
from dpoutlier.audit.run import MANY, ONE, Effort, coins_for, run_audit, runs_for
from dpoutlier.detectors.registry import DETECTOR_NAMES

FEW = Effort(most_runs=400, most_elsewhere=200, most_files=200, canaries=3_000, most_coins=20_000)
SHARP = Effort(most_runs=100, most_elsewhere=100, most_files=50)


def names(cases):
    return [f"{case.label}-{case.neighbours}-{case.counts}" for case in cases]


AT_ONE = list(standard_cases((1.0,)))


def test_the_standard_cases_are_every_detector_relation_and_kind_of_counts():
    cases = list(standard_cases())
    found = {(case.detector, case.neighbours, case.counts) for case in cases}
    relations = ("add-or-remove-one", "replace-one")
    grids = {("grid", relation, kind) for relation in relations for kind in ("dense", "keyed", "sparse")}
    assert found == grids | {
        (name, relation, "dense") for relation in relations for name in set(DETECTOR_NAMES) - {"grid"}
    }
    assert {case.epsilon for case in cases} == set(EPSILONS)
    assert min(EPSILONS) < EPSILONS_WITH_POWER[0] < EPSILONS_WITH_POWER[1] < max(EPSILONS)


@pytest.mark.slow
@pytest.mark.parametrize("case", AT_ONE, ids=names(AT_ONE))
def test_no_claim_is_refuted(case):
    """Fails by chance with a probability below 1e-6: at most eight audits, each wrong with 1e-7. The seed makes it repeatable."""
    findings = run_audit([case], FEW, seed=1)
    assert {one.channel for one in findings} == (
        {"counts", "scores"} if case.counts == "keyed" else {"counts", "scores", "file"}
    )
    assert {one.method for one in findings} == ({MANY} if case.one.estimates_cells else {MANY, ONE})
    assert not [one for one in findings if one.refuted]


WITH_POWER = [case for case in standard_cases((0.5, 1.0, 2.0)) if case.has_power]


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", WITH_POWER, ids=[f"{name}-{c.epsilon}" for name, c in zip(names(WITH_POWER), WITH_POWER)]
)
def test_one_run_sees_half_of_epsilon(case):
    findings = [one for one in run_audit([case], SHARP, seed=2) if one.method == ONE]
    assert findings
    for one in findings:
        assert one.expects_power
        assert one.claimed / 2 <= one.bound
        assert not one.refuted


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("label", ["grid", "forest of 1", "marginals of 1"])
def test_many_runs_see_half_of_epsilon(label, epsilon):
    """On the smallest cases; ``make audit`` has the runs for four cells and for both relations."""
    case = next(case for case in standard_cases((epsilon,)) if case.label == label)
    effort = Effort(most_files=8_000, canaries=10, most_coins=10)
    findings = [one for one in run_audit([case], effort, seed=3) if one.method == MANY]
    assert [one.channel for one in findings] == ["counts", "scores", "file"]
    for one in findings:
        assert one.claimed / 2 <= one.bound
        assert not one.refuted


def test_effort_is_low_without_statistical_power():
    by_label = {(case.label, case.neighbours): case for case in standard_cases((0.5,))}
    effort = Effort(most_runs=10**7)
    cases = ("grid", "add-or-remove-one"), ("forest of 4", "add-or-remove-one"), ("forest of 4", "replace-one")
    runs = [runs_for(by_label[case], effort)[0] for case in cases]
    assert runs == sorted(set(runs))
    assert runs[-1] < effort.most_runs
    assert runs_for(by_label[cases[-1]], Effort(most_runs=runs[-1] - 1))[0] == effort.most_elsewhere
    assert runs_for(by_label["forest of 32", "replace-one"], effort)[0] == effort.most_elsewhere
    coins = [coins_for(by_label[case], effort) for case in cases]
    assert coins == sorted(coins)
    assert coins[0] < coins[-1] <= effort.most_coins


def test_of_models_of_many_cells_fewer_fits_are_made_unless_somebody_is_patient():
    def runs(bins, **effort):
        case = Case(
            "large",
            *[Configuration("grid", {"epsilon": 1, "features": (0, 1), "bins": bins, "k": 1})] * 2,
            has_power=False,
        )
        tasks = [task for task in run._tasks(0, case, Effort(**effort), 1) if task.method == MANY]
        return sum(task.what[4] for task in tasks) // 2

    assert runs(4096) == 1000
    assert runs(4096 * 4) == 250
    assert runs(4096 * 100) == 100
    assert runs(4096 * 4, patient=True) == 1000
