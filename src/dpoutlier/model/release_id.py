"""The release id: a hash of what was published, used by ledgers, merges and clients."""

import hashlib
import json
from typing import Any

from dpoutlier.model.model import Model
from dpoutlier.privacy.guarantee import Charge


def release_id(model: Model) -> str:
    """SHA-256 of what one fit released and of its public description; the same in every file, wherever the threshold was set.

    Its input must never change: merged models keep the ids of their parts, and must recognise them.

    Parameters
    ----------
    model : Model
        The released model: ``model_`` of a fitted detector.

    Returns
    -------
    str
        The id, 64 hexadecimal digits, as ``Ledger.commit`` and ``Ledger.check_paid`` take it.
    """
    description = {
        "names": model.domain.names,
        "lower": model.domain.lower,
        "upper": model.domain.upper,
        "partition": model.partition.to_json(),
        "epsilon": str(model.guarantee.epsilon),
        "neighbours": model.guarantee.neighbours.value,
        "rows_per_person": model.guarantee.rows_per_person,
        "charges": [_charge(charge) for charge in model.charges],
        "n_hint": model.n_rows_hint,
        **({"delta": str(model.guarantee.delta)} if model.guarantee.delta else {}),
    }
    released = dict(model.counts.arrays())
    if model.score_histogram is not None:
        released["score_counts"] = model.score_histogram.counts
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for name, array in sorted(released.items()):
        digest.update(f"\n{name} {array.dtype.str[1:]} {array.shape}\n".encode())
        digest.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()


def _charge(charge: Charge) -> list[Any]:
    """A charge in four entries, and whatever else a file says of its mechanism."""
    known = {"purpose", "epsilon", "sensitivity", "rate"}
    more = sorted((key, value) for key, value in charge.to_json().items() if key not in known)
    return [charge.purpose, str(charge.epsilon), charge.sensitivity.l1, str(charge.rate), *more]


def release_of(model: Model) -> str:
    """The id that tells clients which model answered: 64 hexadecimal digits."""
    if model.merged is None:
        return release_id(model)
    return hashlib.sha256("\n".join(part.release for part in model.merged.parts).encode()).hexdigest()
