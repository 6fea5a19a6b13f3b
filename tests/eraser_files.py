"""A small folder in ERASER's layout: the marked words decide, and a text has two lines."""

import json

import numpy as np

WORDS = [f"w{i:02d}" for i in range(30)]


def eraser_folder(folder, sizes=(60, 20, 20), seed=0):
    """Write train, val and test with their documents; return the folder."""
    rng = np.random.default_rng(seed)
    (folder / "docs").mkdir(parents=True)
    for name, count in zip(("train", "val", "test"), sizes, strict=True):
        lines = []
        for i in range(count):
            words = [WORDS[k] for k in rng.integers(0, 30, rng.integers(6, 14))]
            at = int(rng.integers(0, len(words) - 2))
            words[at : at + 2] = [["truly", "lovely"], ["rather", "dreadful"]][i % 2]
            half = len(words) // 2
            text = f"{' '.join(words[:half])} \n{' '.join(words[half:])}\n"
            docid = f"{name}-{i}.txt"
            (folder / "docs" / docid).write_text(text)
            span = {"docid": docid, "start_token": at, "end_token": at + 2, "text": ""}
            lines.append(
                {
                    "annotation_id": f"{name}-{i}",
                    "classification": ["POS", "NEG"][i % 2],
                    "evidences": [[span]],
                    "query": "What is the sentiment?",
                    "docids": [docid],
                }
            )
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    return folder
