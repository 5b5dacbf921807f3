"""Models of every kind, by name."""

import numpy as np

from dpoutlier import DPForest, DPGridKNN, DPMarginals, Forest, GridKNN, Marginals

ROWS = np.random.default_rng(0).uniform(size=(200, 3))


NAMES = {"age": (0, 1), "bmi": (0, 2), "crp": (-1, 1)}


VARIANTS = {
    "dense": DPGridKNN("1/3", features=NAMES, bins=[2, 3, 4], target_fpr=0.1),
    "private rows": DPGridKNN(
        0.3, features=NAMES, n_rows_hint="estimate", weighted=True, distance="point", neighbours="replace-one"
    ),
    "keyed": DPGridKNN(0.3, features=NAMES, bins=7, counts="keyed", rows_per_person=2, max_depth=None),
    "sparse": DPGridKNN(1, features=NAMES, bins=1000, counts="sparse", sparse_size=500, target_fpr=0.1),
    "wide": DPGridKNN(1, features=NAMES, bins=2**24, k=3, max_cells=50),
    "seeded": DPGridKNN(1, features=NAMES, bins=3, unsafe_seed=3),
    "infinite": DPGridKNN(np.inf, features=NAMES, bins=3),
    "twin": GridKNN(NAMES, bins=3, target_fpr=0.2, exhausted="as-printed"),
    "forest": DPForest("1/3", features=NAMES, n_trees=3, depth=6, subspace=(1, 3), tree_seed=7, target_fpr=0.1),
    "private rows forest": DPForest(
        2, features=NAMES, n_rows_hint="estimate", neighbours="replace-one", rows_per_person=3
    ),
    "marginals": DPMarginals(0.3, features=NAMES, bins=[3, 10, 1], target_fpr=0.1, threshold_share=0.25),
    "infinite forest": DPForest(np.inf, features=NAMES, n_rows_hint=200),
    "forest's twin": Forest(NAMES, target_fpr=0.2),
    "marginals' twin": Marginals(NAMES, target_fpr=0.2),
}
