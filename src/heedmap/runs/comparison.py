"""Whether two settings are of the same run, though its texts and vectors may lie elsewhere by now."""

from heedmap.settings import FineTuneSettings, RunSettings, TrainSettings


def differences(found: RunSettings, settings: RunSettings) -> list[str]:
    """In what the run that was `found` differs from one with these settings: `name: its -> theirs`."""
    found = relocated(found, settings)
    return found.difference(_completed(settings, found))


def relocated(found: RunSettings, settings: RunSettings) -> RunSettings:
    """`found` with the places of `settings`, where what is there is the same by its hash."""
    if found.fingerprint == settings.fingerprint:
        data = found.data.model_copy(update={"source": settings.data.source})
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
    """The settings, with those from `found` that are known only once the run is made."""
    model, train = settings.model, settings.train
    if isinstance(train, TrainSettings) and train.vectors is not None:
        # A file of word vectors decides the size, once it is read.
        size = getattr(found.model, "embedding_size", 0)
        model = model.model_copy(update={"embedding_size": size})
        if isinstance(found.train, TrainSettings) and found.train.vectors_hash is None:
            train = train.model_copy(update={"vectors_hash": None})  # from before it was kept
    elif isinstance(train, FineTuneSettings) and not getattr(model, "weights", ""):
        # Weights have a hash once they are trained.
        model = model.model_copy(update={"weights": getattr(found.model, "weights", "")})
    return settings.model_copy(update={"audit": found.audit, "model": model, "train": train})
