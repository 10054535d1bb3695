"""Tasks whose local labels mix fine classes and superclasses of CIFAR-100: one label per image is then ill-defined.

A task takes its classes one after another, a fine class or a superclass with equal chances, so that no two share an
image: "maple" may meet "trout" or "fish", but not "trees". So one image is "maple" in some tasks and "trees" in others.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

Ids = npt.NDArray[np.int64]


def concepts(truth: pd.DataFrame, superclasses: Mapping[str, str]) -> dict[str, list[str]]:
    """The fine classes of each concept: every class by itself, and every superclass of two or more of them.

    Parameters
    ----------
    truth : DataFrame
        Column class.
    superclasses : mapping
        Of each class.
    """
    fine = sorted(truth["class"].unique())
    groups = pd.Series(fine).groupby([superclasses[name] for name in fine]).agg(list)
    return {name: [name] for name in fine} | {name: own for name, own in groups.items() if len(own) > 1}


def draw_mixed_tasks(
    truth: pd.DataFrame,
    superclasses: Mapping[str, str],
    *,
    n_tasks: int,
    ways: int,
    shots: int,
    queries: int,
    seed: int,
) -> pd.DataFrame:
    """Tasks with replacement; task t depends on (seed, t) alone.

    Parameters
    ----------
    truth : DataFrame
        Columns image_id, class.
    superclasses : mapping
        Of each class.
    n_tasks, ways, shots, queries, seed : int

    Returns
    -------
    DataFrame with columns task_id, image_id, local_label, role, concept
    """
    members = concepts(truth, superclasses)
    levels = [sorted(name for name, own in members.items() if (len(own) > 1) == coarse) for coarse in (False, True)]
    images = {name: ids.to_numpy(dtype=np.int64) for name, ids in truth.groupby("class")["image_id"]}
    pools = {name: np.concatenate([images[one] for one in own]) for name, own in members.items()}
    parts = []
    for task in range(n_tasks):
        generator = np.random.default_rng(np.random.SeedSequence([seed, task]))
        taken: set[str] = set()
        for way in range(ways):
            level = levels[int(generator.random() < 0.5)]
            free = [name for name in level if not taken & set(members[name])]
            name = free[int(generator.integers(len(free)))]
            taken |= set(members[name])
            chosen = generator.choice(pools[name], size=shots + queries, replace=False)
            roles = np.repeat(["support", "query"], [shots, queries])
            part = {"task_id": task, "image_id": chosen, "local_label": way, "role": roles, "concept": name}
            parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)
