"""Compare the settings of runs, whose texts and vectors may have moved."""

from heedmap.settings import FineTuneSettings, RunSettings, TrainSettings


def differences(found: RunSettings, settings: RunSettings) -> list[str]:
    """Return how the existing settings `found` differ from `settings`, as `name: found -> wanted`."""
    found = relocated(found, settings)
    return found.difference(_completed(settings, found))


def relocated(found: RunSettings, settings: RunSettings) -> RunSettings:
    """Return `found` with the paths of `settings`, where the content has the same hash."""
    if found.fingerprint == settings.fingerprint:
        place = {
            name: getattr(settings.data, name)
            for name in ("source", "encoding", "separator", "quotes", "header")
        }
        data = found.data.model_copy(update=place)
        found = found.model_copy(update={"data": data})
    old, new = found.train, settings.train
    if (
        isinstance(old, TrainSettings)
        and isinstance(new, TrainSettings)
        and None is not old.vectors_hash == new.vectors_hash
    ):
        found = found.model_copy(update={"train": old.model_copy(update={"vectors": new.vectors})})
    return found


def _completed(settings: RunSettings, found: RunSettings) -> RunSettings:
    """Return the settings, completed from `found` with values known only after training."""
    model, train = settings.model, settings.train
    if isinstance(train, TrainSettings) and train.vectors is not None:
        # The file of word vectors determines the size.
        size = getattr(found.model, "embedding_size", 0)
        model = model.model_copy(update={"embedding_size": size})
    elif isinstance(train, FineTuneSettings) and not getattr(model, "weights", ""):
        # The weights' hash is known only after training.
        model = model.model_copy(update={"weights": getattr(found.model, "weights", "")})
    return settings.model_copy(update={"audit": found.audit, "model": model, "train": train})
