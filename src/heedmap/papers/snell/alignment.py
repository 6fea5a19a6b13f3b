"""The alignment error rate of a translator's attention and relevance, beside the dictionary's."""

from jaxtyping import Float
from torch import Tensor

from heedmap.data.parallel import Pairs
from heedmap.importance.output_relevance import linear_relevance, output_relevance
from heedmap.models.encoder_decoder import EncoderDecoder
from heedmap.papers.kit.alignment import Counts, baselines, by_words, counts, error_rate, links
from heedmap.papers.kit.translators import Encoded
from heedmap.papers.snell.translation_task import read_sentence
from heedmap.papers.snell.word_proxies import Scores


def error_rates(
    models: dict[str, EncoderDecoder], lexicon: Scores, pairs: Pairs, encoded: Encoded
) -> dict[str, float]:
    """Return the alignment error rate of each map and baseline, of sentences with sure links."""
    assert pairs.sure is not None
    assert pairs.possible is not None
    counts_by_map: dict[str, list[Counts]] = {}
    for row, (sure, possible) in enumerate(zip(pairs.sure, pairs.possible, strict=True)):
        if not sure:
            continue
        maps: dict[str, tuple[Float[Tensor, "T S"], bool]] = {}
        for kind, model in models.items():
            sentence = read_sentence(model, encoded, row)
            if kind == "learned":
                maps["attention"] = (sentence.attention, True)
            relevance = output_relevance(
                model, sentence.decoded, sentence.states, sentence.targets[None]
            )[0]
            linear = linear_relevance(model, sentence.states, sentence.targets[None])[0]
            maps[f"relevance {kind}"] = (relevance, False)
            maps[f"linear {kind}"] = (linear, False)
        maps["dictionary"] = (lexicon(encoded.source[row], encoded.target[row]), False)
        for name, (values, summed) in maps.items():
            of_words = by_words(values, encoded, row, summed=summed)
            counts_by_map.setdefault(name, []).append(counts(links(of_words), sure, possible))
        lengths = len(pairs.source[row]), len(pairs.target[row])
        for name, map_counts in baselines(*lengths, sure, possible).items():
            counts_by_map.setdefault(name, []).append(map_counts)
    return {name: error_rate(map_counts) for name, map_counts in counts_by_map.items()}
