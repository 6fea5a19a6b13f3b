"""Compare the settings of runs, whose texts and vectors may have moved."""

from heedmap.settings.run import RunSettings
from heedmap.settings.training import FineTuneSettings, TrainSettings


def differences(stored: RunSettings, settings: RunSettings) -> list[str]:
    """Return how the existing settings `stored` differ from `settings`, as `name: found -> wanted`."""
    stored = relocated(stored, settings)
    return stored.difference(_completed(settings, stored))


def relocated(stored: RunSettings, settings: RunSettings) -> RunSettings:
    """Return `stored` with the paths of `settings`, where the content has the same hash.

    The run that it was trained for is the one that `settings` name.
    """
    stored = stored.model_copy(update={"parent": settings.parent})
    if stored.fingerprint == settings.fingerprint:
        place = {
            name: getattr(settings.data, name)
            for name in ("source", "encoding", "separator", "quotes", "header")
        }
        data = stored.data.model_copy(update=place)
        stored = stored.model_copy(update={"data": data})
    old, new = stored.train, settings.train
    if (
        isinstance(old, TrainSettings)
        and isinstance(new, TrainSettings)
        and None is not old.vectors_hash == new.vectors_hash
    ):
        stored = stored.model_copy(
            update={"train": old.model_copy(update={"vectors": new.vectors})}
        )
    return stored


def _completed(settings: RunSettings, stored: RunSettings) -> RunSettings:
    """Return the settings, completed from `stored` with values known only after training."""
    model, train = settings.model, settings.train
    if isinstance(train, TrainSettings) and train.vectors is not None:
        # The file of word vectors determines the size.
        size = getattr(stored.model, "embedding_size", 0)
        model = model.model_copy(update={"embedding_size": size})
    elif isinstance(train, FineTuneSettings) and not getattr(model, "weights", ""):
        # The weights' hash is known only after training.
        model = model.model_copy(update={"weights": getattr(stored.model, "weights", "")})
    return settings.model_copy(update={"audit": stored.audit, "model": model, "train": train})
