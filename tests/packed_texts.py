"""A slow, obvious decoder of the texts that a page carries."""

import base64
import json
import math
import struct
import zlib


def content(packed):
    return zlib.decompress(base64.b64decode(packed))


def unpacked(packed_texts):
    """The index, and of each text its maps by name: the largest weight and the weights, or None."""
    index = json.loads(content(packed_texts.index))
    texts = []
    for number, block in enumerate(packed_texts.blocks):
        first = number * index["block"]
        rows = range(first, min(first + index["block"], len(index["tokens"])))
        data = content(block)
        maps = [{} for _ in rows]
        at = 4 * len(index["maps"]) * len(rows)
        place = 0
        for m, head in enumerate(index["maps"]):
            own = index["own"].get(str(m))
            for row, of_text in zip(rows, maps, strict=True):
                (largest,) = struct.unpack_from("<f", data, place)
                place += 4
                if math.isnan(largest):
                    of_text[head["name"]] = None
                    continue
                tokens = (own and own[row]) or index["tokens"][row]
                steps = struct.unpack_from(f"{len(tokens)}b", data, at)
                at += len(tokens)
                of_text[head["name"]] = (largest, [step * largest / 127 for step in steps])
        assert at == len(data)
        texts += maps
    return index, texts
