"""Tables written by hand, small enough to check each number: they stand in for an audit's.

`two_classes`: twelve texts. Texts 0 to 2 are the same, and so are 3 and 4; text 9 was not sampled for the slow
measures; the map of text 10 is constant, no word's absence and no weights change its answer; text 11 has one
token.
`three_classes`: six texts, the last of one token. `layers`: eight texts of a transformer, six of them sampled.
"""

import pyarrow as pa

TEXTS = (
    *(["good", "film", "."],) * 3, *(["bad", "film", "again", "."],) * 2,
    ["a", "b", "c", "d", "e"], ["e", "d", "c", "b", "a"], ["t7"] * 6, ["t8"] * 6, ["t9"] * 8, ["t10"] * 4,
    ["!"],
)  # fmt: skip


def table(**columns):
    return pa.table({k: v if isinstance(v, pa.Array) else pa.array(v) for k, v in columns.items()})


def two_classes():
    return {
        "instances": table(
            tokens=list(TEXTS),
            n_tokens=[len(text) for text in TEXTS],
            label=[0, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 1],
            predicted=[0, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1, 1],
        ),
        "integrated_gradients": table(
            importance=[[1.0]] * 9 + [None] + [[1.0]] * 2,
            completeness_error=[0.01, 0.01, 0.01, 0.2, 0.2, 0.1, 1.0, 1.5, 0.05, None, 0.02, 0.03],
        ),
        "importance_mass": table(
            mass_leave_one_out=[0.6, 0.6, 0.6, 0.5, 0.5, 0.1, 0.4, 0.3, 0.2, 0.3, None, None],
            largest_leave_one_out=[0.7, 0.7, 0.7, 0.6, 0.6, 0.5, 0.8, 0.5, 0.4, 0.5, None, None],
            mass_gradient=[0.5, 0.5, 0.5, 0.3, 0.3, 0.2, 0.3, 0.2, 0.1, 0.2, 0.255, 1.0],
            largest_gradient=[0.8, 0.8, 0.8, 0.5, 0.5, 0.6, 0.5, 0.4, 0.3, 0.4, 0.26, 1.0],
            mass_integrated_gradients=[0.4, 0.4, 0.4, 0.2, 0.2, 0.3, 0.2, 0.4, 0.3, None, 0.24, 1.0],
            largest_integrated_gradients=[0.6, 0.6, 0.6, 0.6, 0.6, 0.4, 0.3, 0.6, 0.5, None, 0.25, 1.0],
        ),
        "baselines": table(
            tau_random_gradient=[0.1] * 9 + [None] * 3,
            tau_random_leave_one_out=[0.3, 0.3, 0.3, 0.1, 0.1, -0.2, 0.2, 0.1, 0.15, None, None, None],
            tau_twin_leave_one_out=[0.0, 0.0, 0.0, -0.1, -0.1, -0.3, 0.05, 0.1, -0.01, None, None, None],
            mass_shuffled_leave_one_out=[0.4, 0.4, 0.4, 0.3, 0.3, 0.3, 0.1, 0.2, 0.2, None, None, None],
            mass_shuffled_gradient=[0.4, 0.4, 0.4, 0.2, 0.2, 0.3, 0.2, 0.1, 0.1, None, None, None],
            mass_shuffled_integrated_gradients=[0.4] * 3 + [0.25, 0.25, 0.3, 0.2, 0.1, 0.2, None, None, None],
            against_shuffled=[0.4, 0.4, 0.4, 0.25, 0.25, 0.4, 0.1, 0.5, 0.5, None, None, None],
            tau_shuffled_gradient=[0.3, 0.3, 0.3, 0.1, 0.1, 0.2, 0.4, 0.1, 0.3, None, None, None],
            tau_largest_gradient=[0.8, 0.8, 0.8, 1.0, 1.0, 0.6, 0.9, 0.6, 0.8, None, None, None],
            tau_shuffled_leave_one_out=[0.1, 0.1, 0.1, 0.2, 0.2, 0.3, 0.2, 0.1, 0.0, None, None, None],
            tau_largest_leave_one_out=[0.9, 0.9, 0.9, 0.8, 0.8, 0.7, 1.0, 0.9, 1.0, None, None, None],
            tau_shuffled_integrated_gradients=[0.0, 0.0, 0.0, 0.1, 0.1, 0.1, 0.2, 0.1, 0.2, None, None, None],
            tau_largest_integrated_gradients=[1.0, 1.0, 1.0, 0.9, 0.9, 0.8, 1.0, 0.7, 1.0, None, None, None],
        ),
        "agreement": table(
            tau_attention_gradient=[0.4, 0.4, 0.4, 0.2, 0.2, -0.2, 0.6, 0.0, 0.4, 0.8, None, None],
            p_attention_gradient=[0.03, 0.03, 0.03, 0.2, 0.2, 0.05, 0.01, 1.0, 0.06, 0.001, None, None],
            tau_attention_leave_one_out=[0.7, 0.7, 0.7, 0.5, 0.5, 0.3, 0.8, 0.4, 0.6, 0.9, None, None],
            p_attention_leave_one_out=[0.1, 0.1, 0.1, 0.04, 0.04, 0.5, 0.02, 0.3, 0.2, 0.01, None, None],
            tau_attention_integrated_gradients=[0.1] * 3 + [-0.1, -0.1, 0.2, 0.3, 0.0, 0.5, None, None, None],
            p_attention_integrated_gradients=[0.6, 0.6, 0.6, 0.7, 0.7, 0.4, 0.3, 1.0, 0.02, None, None, None],
            tau_gradient_leave_one_out=[0.5, 0.5, 0.5, 0.4, 0.4, 0.6, 0.9, 0.2, 0.7, 1.0, 0.3, None],
        ),
        "opposing_mass": table(
            against=[0.1, 0.1, 0.1, 0.3, 0.3, 0.0, 0.2, 0.5, 0.4, 0.1, 0.25, None],
            against_chance=[0.4, 0.4, 0.4, 0.25, 0.25, 0.4, 0.0, 0.5, 0.5, 0.2, 0.25, None],
        ),
        "permutation": table(
            median_tvd=[0.2, 0.2, 0.2, 0.1, 0.1, 0.3, 0.05, 0.4, 0.25, 0.15, 0.0, 0.0],
            flipped=[0.5, 0.5, 0.5, 0.1, 0.1, 0.7, 0.0, 0.9, 0.49, 0.2, 0.0, 1.0],
            chance_tvd=[0.25, 0.25, 0.25, 0.2, 0.2, 0.3, 0.15, 0.3, 0.35, 0.15, 0.0, 0.0],
            largest_tvd=[0.5, 0.5, 0.5, 0.4, 0.4, 0.9, 0.35, 0.8, 0.6, 0.55, 0.0, 0.0],
            uniform_tvd=[0.15, 0.15, 0.15, 0.3, 0.3, 0.1, 0.2, 0.35, 0.05, 0.25, 0.0, 0.0],
            uniform_flipped=[0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0],
            uniform_chance=[0.1, 0.1, 0.1, 0.25, 0.25, 0.15, 0.2, 0.3, 0.1, 0.2, 0.0, 0.0],
            uniform_largest=[0.6, 0.6, 0.6, 0.7, 0.7, 0.35, 0.6, 0.5, 0.4, 0.65, 0.0, 0.0],
        ),
        "adversary": table(
            jsd=[0.6, 0.6, 0.6, 0.5, 0.5, 0.3, 0.4, 0.2, 0.65, 0.1, 0.45, 0.0],
            jsd_upper=[0.6, 0.6, 0.6, 0.5, 0.5, 0.3, 0.4, 0.2, 0.65, 0.1, 0.45, 0.0],
            search_jsd=[0.3, 0.3, 0.3, 0.4, 0.4, 0.2, 0.1, 0.2, 0.5, 0.0, 0.4, 0.0],
            curve_lower=[[0.0]] * 12,
        ),
        "smallest_change": table(
            least_jsd_gap=[0.0] * 12,
            least_tvd=[0.3, 0.3, 0.3, 0.4, 0.4, 0.1, 0.2, 0.6, 0.5, 0.7, None, 0.0],
            shuffled_least_tvd=[0.2, 0.2, 0.2, 0.3, 0.3, 0.2, 0.1, 0.3, 0.3, None, 0.9, None],
            least_tvd_largest=[0.5, 0.5, 0.5, 0.8, 0.8, 0.4, 0.6, 0.9, 0.6, 0.9, None, None],
            own_maximum=[0.65] * 11 + [0.0],
            changeable=[True] * 10 + [False, False],
            jsd_share=[0.9, 0.9, 0.9, 0.8, 0.8, 0.7, 0.6, 0.5, 0.95, 0.4, 1.0, None],
            jsd_share_upper=[1.0] * 11 + [None],
            jsd_share_pairs=[0.1] * 11 + [None],
            shuffled_jsd_share_pairs=[0.95, 0.95, 0.95, 0.9, 0.9, 0.8, 0.5, 0.75, 0.9, 0.6, 1.0, None],
            simplex_share=[0.01, 0.01, 0.01, 0.2, 0.2, 0.03, 0.05, 0.0, 0.1, 0.02, 1.0, 1.0],
            shuffled_simplex_share=[0.05, 0.05, 0.05, 0.1, 0.1, 0.04, 0.15, 0.1, 0.2, 0.12, 1.0, 1.0],
        ),
        "rationale": table(
            rationale_share=[0.3, 0.3, 0.3, 0.25, 0.25, 0.2, 0.4, 0.5, 0.2, 0.1, 0.0, 1.0],
            auc_attention=[0.9, 0.9, 0.9, 0.8, 0.8, 0.5, 0.7, 0.6, 0.85, 0.75, None, None],
            hit_attention=[1.0, 1.0, 1.0, 0.5, 0.5, 0.0, 1.0, 0.0, 1.0, 0.0, None, None],
            auc_gradient=[1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 1.0, 0.95, 0.99, 0.97, None, None],
            hit_gradient=[1.0] * 9 + [0.0] + [None] * 2,
            auc_leave_one_out=[0.2, 0.2, 0.2, 0.3, 0.3, 0.4, 0.1, 0.5, 0.25, 0.35, None, None],
            hit_leave_one_out=[0.0] * 10 + [None] * 2,
            auc_integrated_gradients=[0.6, 0.6, 0.6, 0.7, 0.7, 0.5, 0.65, 0.8, 0.55, None, None, None],
            hit_integrated_gradients=[0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, None, None, None],
        ),
    }  # fmt: skip


def three_classes():
    """Bounds of the adversary, and draws from the simplex."""
    return {
        "instances": table(
            tokens=[[str(i)] * n for i, n in enumerate((2, 3, 4, 5, 6, 1))],
            n_tokens=[2, 3, 4, 5, 6, 1],
            label=[2, 2, 2, 2, 1, 0],
            predicted=[0, 2, 2, 2, 1, 1],
        ),
        "adversary": table(
            jsd=[0.1, 0.2, 0.3, 0.4, 0.5, 0.0],
            jsd_upper=[0.2, 0.25, 0.4, 0.6, 0.69, 0.0],
            search_jsd=[0.05, 0.1, 0.3, 0.0, 0.2, 0.0],
            curve_lower=[[0.0]] * 6,
        ),
        "smallest_change": table(
            least_jsd_gap=[0.0] * 6,
            least_tvd=[0.2, 0.1, None, 0.4, 0.3, None],
            shuffled_least_tvd=[0.1, 0.2, 0.3, 0.2, 0.1, None],
            least_tvd_largest=[0.4, 0.3, None, 0.7, 0.8, None],
            own_maximum=[0.2, 0.4, 0.6, 0.65, 0.68, 0.0],
            changeable=[True, True, False, True, True, True],
            jsd_share=[0.5, 0.6, 0.7, 0.75, 0.8, None],
            jsd_share_upper=[1.0, 0.7, 0.8, 0.95, 1.0, None],
            jsd_share_pairs=[0.3, 0.4, 0.5, 0.6, 0.7, None],
            shuffled_jsd_share_pairs=[0.2, 0.3, 0.6, 0.7, 0.8, None],
            simplex_share=[0.1, 0.2, 0.05, 0.4, 0.3, 1.0],
            shuffled_simplex_share=[0.2, 0.2, 0.1, 0.3, 0.5, 1.0],
        ),
    }  # fmt: skip


MAPS = (("row", 0, None), ("row", 0, 0), ("row", 1, None), ("row", 1, 1))
TAUS = (  # per text that was sampled and map
    (0.1, 0.6, 0.2, -0.1), (0.0, 0.5, 0.3, 0.2), (0.2, 0.9, 0.1, 0.0),
    (0.3, 0.7, 0.2, 0.1), (0.1, 0.8, 0.0, 0.3), (0.2, 0.4, 0.1, 0.2),
)  # fmt: skip


def layers():
    """Tables of two layers of two heads; texts 6 and 7 were not sampled, and text 7 has one token."""
    row, layer, head = zip(
        *((r, at, h) for r in range(6) for at in range(2) for h in range(2)), strict=True
    )
    searched = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, None, None]
    return {
        "instances": table(
            tokens=[[str(i)] * n for i, n in enumerate((3, 4, 5, 6, 7, 8, 9, 1))],
            n_tokens=[3, 4, 5, 6, 7, 8, 9, 1],
            label=[0, 1] * 4,
            predicted=[0, 1] * 4,
        ),
        "adversary": table(
            jsd=searched,
            jsd_upper=[0.2, 0.25, 0.3, 0.5, 0.6, 0.65, None, None],
            tvd=[0.01] * 6 + [None] * 2,
            on_text_before=[0.5, 0.6, 0.7, 0.8, 0.9, 0.7, None, None],
            on_text=[0.2, 0.3, 0.4, 0.5, 0.6, 0.4, None, None],
        ),
        "smallest_change": table(
            least_tvd=[0.3, 0.2, None, 0.5, 0.4, 0.6, None, None],
            shuffled_least_tvd=[0.1, 0.2, 0.3, 0.3, 0.2, 0.2, None, None],
            own_maximum=[0.5, 0.6, 0.6, 0.6, 0.65, 0.68, None, None],
            changeable=[1.0, 1.0, None, 1.0, 1.0, 1.0, None, None],
            jsd_share=[0.2, 0.3, 0.5, 0.6, 0.7, 0.8, None, None],
            jsd_share_upper=[0.4, 0.4, 0.5, 0.8, 0.9, 1.0, None, None],
        ),
        "scan": table(
            row=[r for r in range(6) for _ in MAPS],
            view=[view for _ in range(6) for view, _, _ in MAPS],
            layer=[at for _ in range(6) for _, at, _ in MAPS],
            head=pa.array([at for _ in range(6) for _, _, at in MAPS], pa.int64()),
            computed=[True] * 24,
            tau_leave_one_out=[tau for text in TAUS for tau in text],
        ),
        "heads": table(
            row=row,
            layer=layer,
            head=head,
            row_on_words=[0.1 * r + 0.2 * at + 0.1 * h for r, at, h in zip(row, layer, head, strict=True)],
            **{"share_[CLS]": [0.3 - 0.2 * at for at in layer], "share_words": [0.6] * 24},
            effective_share=[0.9 - 0.1 * r * at for r, at in zip(row, layer, strict=True)],
            free_on_simplex=[int(r > 3) for r in row],
            rank=[r + 2 for r in row],
        ),
    }  # fmt: skip
