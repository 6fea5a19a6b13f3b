"""Weights, read-outs and states of a model's texts, and the questions that these answer exactly."""

EXACT = (
    "instances", "permutation", "erasure", "class_erasure", "decision_flips", "adversary", "smallest_change",
    "relevance",
)  # fmt: skip


def traced(model, texts):
    """Weights (T,), read-outs (T, C) and states (T, D) of each text, one by one."""
    parts = []
    for text in texts:
        batch = model.batch([text], [0])
        trace = model.trace(batch)
        states = model.encode(model.embed(batch), batch)[0]
        parts.append((trace.attention[0, 0], trace.readout.relevance[0, 0], states))
    return [list(part) for part in zip(*parts, strict=True)]
