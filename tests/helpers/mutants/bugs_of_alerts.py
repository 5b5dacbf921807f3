"""Planted bugs in what is promised of alarms: thresholds, intervals, p-values and drift."""

from .planted_bug import PlantedBug

PART = "Alarms"

P_VALUES, FALSE_ALARMS = "tests/scoring/test_p_values.py", "tests/scoring/test_false_alarms.py"

BUGS = [
    PlantedBug(
        name="interval without the noise",
        summary="The interval for false alarms knows the chance of sampling, and not the noise of the release.",
        function="_at",
        old="SummedNoise(laws, above).half_width(level)",
        new="0",
        caught_by=f"{FALSE_ALARMS}::test_the_interval_contains_the_true_rate_as_often_as_it_says[1/32-0.05]",
        seen="Ordinary intervals on private releases cover far less than they say.",
        source="Ferrando, Wang and Sheldon 2022, Parametric bootstrap for differentially private confidence intervals (AISTATS)",
    ),
    PlantedBug(
        name="p-values without the point itself",
        summary="A p-value counts the rows that score as high, and not the point: it can be zero, and is too small.",
        function="p_values_of",
        old="factor * (1 + np.maximum(here_and_above, -1) + correction)",
        new="factor * (np.maximum(here_and_above, 0) + correction)",
        caught_by=f"{P_VALUES}::test_without_noise_they_are_the_conformal_ones[1]",
        seen="Permutation p-values without the one are a known error of published software.",
        source="Phipson and Smyth 2010, Permutation p-values should never be zero (SAGMB 9)",
    ),
    PlantedBug(
        name="p-values without the noise",
        summary="Noisy numbers of rows are used as if they were exact: too few above by chance, and a p-value is too small.",
        function="p_values_of",
        old="math.sqrt(n_bins * noise.variance) / 2",
        new="0.0",
        caught_by=f"{P_VALUES}::test_p_values_are_valid_for_every_staircase_of_rows[1]",
        seen="Tests on private tables that ignore the noise reject true hypotheses too often.",
        source="Gaboardi et al. 2016, Differentially private chi-squared hypothesis testing (ICML)",
    ),
    PlantedBug(
        name="rows scored with themselves",
        summary="A row lowers its own score, and points do not: thresholds are too low, and p-values too small.",
        function="LogCounts.own_scores",
        old="less=1",
        new="less=0",
        caught_by=f"{P_VALUES}::test_a_row_is_scored_as_if_it_had_not_been_counted[forest]",
    ),
    PlantedBug(
        name="drift without the noise",
        summary="Shares of points are compared with noisy shares of rows as if these were exact: alarms without a drift.",
        function="_compared",
        old="SummedNoise(share.laws, share.draws).half_width(level)",
        new="0",
        caught_by="tests/model/test_drift.py::test_points_of_the_same_law_raise_no_alarm[forest]",
        seen="Tests on private tables that ignore the noise reject true hypotheses too often.",
        source="Gaboardi et al. 2016, Differentially private chi-squared hypothesis testing (ICML)",
    ),
]
