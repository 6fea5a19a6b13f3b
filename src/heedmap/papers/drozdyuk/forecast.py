"""How long a reproduction takes, measured on its untrained models before it begins."""

import time

from heedmap.data.corpus import Corpus
from heedmap.data.readers import SPLITS
from heedmap.huggingface.interventions import KeyAdversary
from heedmap.papers.drozdyuk.adversaries import ATTACKS, AttackObjective, key_widths
from heedmap.papers.drozdyuk.interventions import TEMPERATURES
from heedmap.papers.drozdyuk.model import (
    TransformerObjective,
    all_logits,
    new_transformer,
    numbered,
    vocabulary_of,
)
from heedmap.papers.drozdyuk.paper import sampled
from heedmap.papers.drozdyuk.settings import DrozdyukSettings
from heedmap.retraining.estimate import training_seconds
from heedmap.training.sweep import one_thread


def cell_seconds(corpus: Corpus, settings: DrozdyukSettings) -> list[float]:
    """Return the seconds of each cell on one core, at most: trainings may stop earlier."""
    splits, _ = sampled(corpus, settings)
    vocabulary = vocabulary_of(splits["train"], settings)
    train, dev, test = (numbered(splits[name], vocabulary, settings) for name in SPLITS)
    seconds = []
    for transformer in settings.transformers:
        sized = settings.of_transformer(transformer)
        for activation in settings.activations:
            subject_model = new_transformer(
                sized, len(vocabulary), len(corpus.classes), activation, 0
            )
            objective = TransformerObjective(subject_model, train, dev, sized, 0)
            learning = training_seconds(objective)
            subject_model.model.eval().requires_grad_(False)
            adversary = KeyAdversary(key_widths(subject_model, train), sized.adversary_hidden)
            attacking = training_seconds(
                AttackObjective("adversarial_weights", adversary, subject_model, train, sized, 0)
            )
            with one_thread():
                start = time.perf_counter()
                all_logits(subject_model, dev)
                reading = (time.perf_counter() - start) / max(1, len(dev))
            # Recording the weights and comparing them takes about as long as reading again.
            plans = 5 + 4 * (1 + sized.layers) + len(ATTACKS)
            passes = 3 * plans * len(test) + 2 * len(TEMPERATURES) * len(dev)
            seconds.append(learning + attacking * len(ATTACKS) + reading * passes)
    return seconds * settings.seeds
