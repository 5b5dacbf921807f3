"""What a user would take instead, each with its own defaults but one thread: plain k-NN without any privacy."""

import faiss
import numpy as np
from pyod.models.knn import KNN
from scipy.spatial import cKDTree
from sklearn.neighbors import NearestNeighbors

K = 10
faiss.omp_set_num_threads(1)


def kd_tree(rows):
    search = NearestNeighbors(n_neighbors=K, algorithm="kd_tree").fit(rows)
    return lambda points: search.kneighbors(points)[0][:, -1]


def brute(rows):
    search = NearestNeighbors(n_neighbors=K, algorithm="brute").fit(rows)
    return lambda points: search.kneighbors(points)[0][:, -1]


def scipy_tree(rows):
    search = cKDTree(rows)
    return lambda points: search.query(points, k=K)[0][:, -1]


def faiss_flat(rows):
    index = faiss.IndexFlatL2(rows.shape[1])
    index.add(rows.astype(np.float32))
    return lambda points: index.search(points.astype(np.float32), K)[0][:, -1]


def pyod_knn(rows):
    """Its fit would score all rows too, which takes hours for a million; only the search behind its scores is fitted on all."""
    detector = KNN(n_neighbors=K, n_jobs=1)
    detector.fit(rows[:1000])
    detector.neigh_.fit(rows)
    return detector.decision_function


RIVALS = {
    "scikit-learn kd_tree": kd_tree,
    "scikit-learn brute": brute,
    "SciPy cKDTree": scipy_tree,
    "faiss Flat": faiss_flat,
    "PyOD KNN": pyod_knn,
}
