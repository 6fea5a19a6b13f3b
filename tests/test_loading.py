"""Classifiers and tokenizers from folders: what is read, and what is refused in one line."""

import json
import pickle
import resource
import shutil
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from saved_models import change, refusal, save, tokenizer
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    BertForSequenceClassification,
    ViTModel,
)
from transformers.utils import logging
from wording import refused, warned

from heedmap.data.tokens import pieces
from heedmap.errors import InputError
from heedmap.huggingface.configurations import find_model
from heedmap.huggingface.inputs import encode
from heedmap.huggingface.limits import UNLIMITED, longest
from heedmap.huggingface.loading import load_classifier, load_for_training
from heedmap.huggingface.logging import quiet
from heedmap.huggingface.refusals import first_line
from heedmap.huggingface.verification import verify
from heedmap.huggingface.zoo import VOCABULARY, ZOO, architecture


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return save(tmp_path_factory.mktemp("models") / "bert", architecture("bert").build())


@pytest.fixture
def folder(saved, tmp_path):
    """A copy to spoil."""
    return shutil.copytree(saved, tmp_path / "model")


def test_a_classifier_is_read_frozen_and_in_eval_mode(saved):
    model, words = load_classifier(saved)
    assert isinstance(model, BertForSequenceClassification)
    assert not model.training
    assert not any(weight.requires_grad for weight in model.parameters())
    assert words.is_fast
    again = architecture("bert").build().state_dict()
    assert all(torch.equal(value, again[name]) for name, value in model.state_dict().items())


def test_it_comes_in_another_dtype(saved):
    assert load_classifier(str(saved), dtype="bfloat16")[0].dtype == torch.bfloat16
    assert "float64" in refusal(saved, lambda source: load_classifier(source, dtype="float64"))


def test_a_folder_is_read_without_the_network_without_noise_and_without_moving_chance(
    saved, monkeypatch, capfd
):
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("went to the network"))
    before = logging.get_verbosity(), logging.is_progress_bar_enabled(), torch.get_rng_state()
    load_classifier(saved)
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before[:2]
    assert torch.equal(torch.get_rng_state(), before[2])
    assert capfd.readouterr() == ("", "")


def test_places_that_hold_no_model(tmp_path, saved, monkeypatch):
    assert "no config.json" in refusal(tmp_path)
    assert "does not exist" in refusal(tmp_path / "nothing")
    assert "does not exist" in refusal("./nothing")
    assert "is a file" in refusal(saved / "config.json")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    text = refusal("nobody/nothing")
    assert "nobody/nothing" in text
    assert "HF_HUB_OFFLINE" in text


@pytest.mark.parametrize("content", ["{spoilt", "{}", '{"model_type": "unheard-of"}', "[]"])
def test_a_spoilt_configuration(folder, content):
    (folder / "config.json").write_text(content)
    assert "config.json" in refusal(folder)


def test_code_that_comes_with_a_model_is_not_run(folder):
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    change(folder, model_type="evil", auto_map={"AutoConfig": "evil.Evil"})
    assert "its own code" in refusal(folder)


def test_a_model_without_a_trained_head_is_named_with_its_remedy(tmp_path):
    with quiet():
        model = AutoModel.from_config(architecture("bert").configuration())
    text = refusal(save(tmp_path / "body", model))
    assert "classifier.weight" in text
    assert "heedmap train --model" in text


def test_an_architecture_without_classification(tmp_path):
    text = refusal(save(tmp_path / "vit", ViTModel(architecture("vit").configuration())))
    assert "vit" in text


@pytest.mark.parametrize(
    ("change_to", "said", "load"),
    [
        (
            {"id2label": {"0": "score"}, "label2id": {"score": 0}},
            "it has 1 name (id2label)",
            load_classifier,
        ),
        (
            {"problem_type": "multi_label_classification"},
            "several at once",
            lambda source: find_model(source).outputs(),
        ),
    ],
)
def test_heads_that_are_no_classifiers(folder, change_to, said, load):
    change(folder, **change_to)
    assert said in refusal(folder, load)


@pytest.mark.parametrize(
    ("change_to", "said"),
    [
        ({"id2label": ["no", "yes", "or"]}, "as id2label"),
        ({"id2label": "no, yes"}, "as id2label"),
        ({"id2label": {"no": 0, "yes": 1}}, "as id2label"),
        ({"dtype": "float33"}, "as dtype"),
        ({"dtype": ["float32"]}, "as dtype"),
        ({"id2label": {"0": "no", "1": "yes"}}, "(classifier.weight) have 3 outputs"),
        ({"id2label": None}, "names none (id2label), which stands for 2"),
        ({"vocab_size": 50}, f"word_embeddings.weight is {VOCABULARY} × 16, not 50 × 16; bring"),
        ({"hidden_size": 32}, "× 16, not"),
    ],
)
def test_a_wrong_value_of_the_configuration_is_named_with_what_was_expected(
    folder, change_to, said
):
    change(folder, **change_to)
    assert said in refusal(folder)


@pytest.mark.parametrize("values", [{"vocab_size": 50}, {"dtype": "float33"}])
def test_a_wrong_value_is_named_before_a_training_too(folder, values):
    change(folder, **values)
    assert "expected" in refusal(folder, lambda source: load_for_training(source, ["no", "yes"]))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.bool])
@pytest.mark.parametrize("prefix", ["bert.", ""])
def test_weights_that_are_no_floats_are_refused(folder, dtype, prefix):
    tensors = load_file(folder / "model.safetensors")
    chosen = {name: tensor for name, tensor in tensors.items() if "query.weight" in name}
    other = {f"{prefix}{name.removeprefix('bert.')}": x.to(dtype) for name, x in chosen.items()}
    rest = {name: tensor for name, tensor in tensors.items() if name not in chosen}
    save_file({**rest, **other}, folder / "model.safetensors", {"format": "pt"})
    text = refusal(folder)
    assert "expected weights of floating point" in text
    assert "query.weight" in text
    assert "dequantised" in refusal(
        folder, lambda source: load_for_training(source, ["no", "yes", "or"])
    )


def test_integers_that_are_no_weights_are_read_past(folder):
    tensors = load_file(folder / "model.safetensors")
    tensors["bert.embeddings.position_ids"] = torch.arange(40)[None]  # as older versions saved them
    whole, _ = load_classifier(folder)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    read, _ = load_classifier(folder)
    for name, weights in whole.state_dict().items():
        assert torch.equal(read.state_dict()[name], weights)


@pytest.mark.parametrize("name", ["roberta", "camembert", "xlm-roberta"])
@pytest.mark.parametrize("token", [None, -1, -2])
def test_a_model_that_counts_positions_from_its_padding_needs_it(tmp_path, name, token):
    folder = save(tmp_path / "model", architecture(name).build())
    change(folder, pad_token_id=token)
    text = refusal(folder)
    assert "pad_token_id" in text
    assert text.endswith(f"got {token}; correct it")
    assert "pad_token_id" in refusal(
        folder, lambda source: load_for_training(source, ["no", "yes"])
    )


def test_a_model_without_a_padding_token_that_counts_from_none_is_read(folder):
    change(folder, pad_token_id=-1)
    assert verify(*load_classifier(folder)).ok


def test_no_text_fits_a_limit_of_nothing(folder):
    model, words = load_classifier(folder)
    words.model_max_length = 0.5
    with refused(
        "BertForSequenceClassification", "0 positions", "max_position_embeddings", "config.json"
    ):
        verify(model, words)


def test_answers_are_taken_by_name_whatever_the_configuration_says(folder):
    change(folder, return_dict=False)
    assert verify(*load_classifier(folder)).ok


def test_names_with_two_numbers_are_noted(folder):
    numbers = {"no": 1, "yes": 0, "or": 2}
    change(folder, id2label={"0": "no", "1": "yes", "2": "or"}, label2id=numbers)
    with warned("config.json", "no, yes", "label2id", "id2label"):
        load_classifier(folder)


def test_what_a_library_says_is_cut_between_words():
    assert first_line(ValueError("one two three."), 9) == "one two …"
    assert first_line(ValueError("one two."), 9) == "one two"


def test_one_output_is_a_number_unless_it_is_said_to_be_a_label(tmp_path):
    config = architecture("bert").configuration()
    config.num_labels = 1
    folder = save(tmp_path / "one", BertForSequenceClassification(config))
    assert load_classifier(folder)[0].config.num_labels == 1
    change(folder, problem_type="multi_label_classification")
    assert "one output" in refusal(folder)


INDEX = "model.safetensors.index.json"


def sharded(folder, *names):
    """The weights in several files, which an index names."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    place = {key: names[i % len(names)] for i, key in enumerate(sorted(tensors))}
    for name in names:
        part = {key: tensors[key] for key, where in place.items() if where == name}
        (folder / name).parent.mkdir(exist_ok=True)
        save_file(part, folder / name, {"format": "pt"})
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": place}))
    return folder


class Trap:
    """What unpickling must not do."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.write_text, (Path(self.path), "sprung")


@pytest.mark.parametrize(
    "names", [("a.safetensors", "b.safetensors"), ("parts/a.safetensors", "b.safetensors")]
)
def test_a_model_in_several_files_is_read(folder, saved, names):
    whole, parts = load_classifier(saved)[0], load_classifier(sharded(folder, *names))[0]
    assert all(torch.equal(value, parts.state_dict()[k]) for k, value in whole.state_dict().items())


@pytest.mark.parametrize("name", ["a.bin", "a.pt", "pytorch_model.bin", "a.safetensors.pkl"])
def test_an_index_that_names_a_pickle_is_refused_and_the_pickle_stays_shut(folder, name):
    sharded(folder, "a.safetensors", name)
    for keep in (torch.save, lambda trap, path: path.write_bytes(pickle.dumps(trap))):
        keep(Trap(folder / "sprung"), folder / name)
        assert f"names {name}, which may be a pickle" in refusal(folder)
        assert "may be a pickle" in refusal(folder, lambda at: load_for_training(at, ["no", "yes"]))
    assert not (folder / "sprung").exists()


@pytest.mark.parametrize(
    "named",
    ["../a.safetensors", "../../a.safetensors", "{outside}", "x/../../a.safetensors", "link.safetensors",
     "links/a.safetensors", "https://example.org/a.safetensors", 3, None, ""],
)  # fmt: skip
def test_an_index_that_leads_out_of_the_folder_is_refused(folder, named):
    sharded(folder, "a.safetensors", "b.safetensors")
    outside = folder.parent / "a.safetensors"
    shutil.copy(folder / "a.safetensors", outside)
    (folder / "link.safetensors").symlink_to(outside)
    (folder / "links").symlink_to(folder.parent)
    index = json.loads((folder / INDEX).read_text())
    named = str(outside) if named == "{outside}" else named
    for key, where in index["weight_map"].items():
        index["weight_map"][key] = named if where == "a.safetensors" else where
    (folder / INDEX).write_text(json.dumps(index))
    with pytest.raises(InputError, match=r"inside the folder|may be a pickle|is not there"):
        load_classifier(folder)


def test_links_into_the_hubs_own_cache_are_followed(folder, tmp_path):
    sharded(folder, "a.safetensors", "b.safetensors")
    snapshot = tmp_path / "models--a--b" / "snapshots" / "0123"
    blobs = tmp_path / "models--a--b" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for path in folder.iterdir():
        shutil.copy(path, blobs / f"of-{path.name}")
        (snapshot / path.name).symlink_to(f"../../blobs/of-{path.name}")
    assert not load_classifier(snapshot)[0].training


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{spoilt", "readable"), ("[]", "JSON object"), ("{}", "weight_map"),
        ('{"weight_map": []}', "weight_map"),
    ],
)  # fmt: skip
def test_a_spoilt_index(folder, content, said):
    (folder / "model.safetensors").unlink()
    (folder / INDEX).write_text(content)
    assert said in refusal(folder)


@pytest.mark.parametrize("named", ["a.bin", "adapter_model.bin", "../a.safetensors", INDEX])
def test_a_configuration_that_names_other_weights(folder, named):
    sharded(folder, "a.safetensors", "b.bin")
    change(folder, transformers_weights=named)
    for name in ("a.bin", "adapter_model.bin", "b.bin"):
        torch.save(Trap(folder / "sprung"), folder / name)
    with pytest.raises(InputError, match=r"inside the folder|may be a pickle"):
        load_classifier(folder)
    assert not (folder / "sprung").exists()


def test_no_pickle_beside_a_model_is_opened_whatever_it_is_called(folder):
    names = (
        "pytorch_model.bin", "model.bin", "training_args.bin", "optimizer.pt", "scheduler.pt", "scaler.pt",
        "rng_state.pth", "vocab.pkl", "vocab.bin", "tokenizer.pkl", "tokenizer.model", "adapter_model.bin",
        "merges.pkl", "pytorch_model.bin.index.json", "special_tokens.pkl", "data.pkl", "model.pkl",
    )  # fmt: skip
    for name in names:
        torch.save(Trap(folder / "sprung"), folder / name)
    load_classifier(folder)
    load_for_training(folder, ["no", "yes"])
    (folder / "model.safetensors").unlink()
    for keep in (torch.save, lambda trap, path: path.write_bytes(pickle.dumps(trap))):
        keep(Trap(folder / "sprung"), folder / "pytorch_model.bin")
        keep(Trap(folder / "sprung"), folder / "model.safetensors")
        refusal(folder)
        (folder / "model.safetensors").unlink()
        refusal(folder)
    assert not (folder / "sprung").exists()
    pickle.loads(pickle.dumps(Trap(folder / "sprung")))  # the trap does work
    assert (folder / "sprung").exists()


def test_an_adapter_is_not_left_out_in_silence(folder):
    (folder / "adapter_config.json").write_text(
        '{"peft_type": "LORA", "base_model_name_or_path": "x"}'
    )
    assert "merge it into its model" in refusal(folder)
    assert "adapter" in refusal(folder, lambda source: load_for_training(source, ["no", "yes"]))
    (folder / "config.json").unlink()  # as peft saves it
    assert "merge it into its model" in refusal(folder)


@pytest.mark.parametrize("name", ["bert", "distilbert", "gpt2", "bart", "t5", "xlnet", "eurobert"])
def test_layers_that_the_configuration_drops_are_missed(tmp_path, name):
    path = save(tmp_path / "model", architecture(name).build())
    config = json.loads((path / "config.json").read_text())
    layers = ("num_hidden_layers", "n_layers", "n_layer", "num_layers", "encoder_layers")
    change(path, **{layer: 1 for layer in layers if layer in config})
    text = refusal(path)
    assert "it has no place for" in text
    assert "save the shorter model" in text
    assert "no place for" in refusal(path, lambda source: load_for_training(source, ["no", "yes"]))


def test_a_head_of_pretraining_in_the_weights_is_no_dropped_layer(tmp_path):
    with quiet():
        model = AutoModelForMaskedLM.from_config(architecture("bert").configuration())
    loaded, _ = load_for_training(save(tmp_path / "mlm", model), ["no", "yes"])
    assert loaded.config.num_hidden_layers == model.config.num_hidden_layers
    for name, tensor in model.bert.state_dict().items():
        assert torch.equal(loaded.bert.state_dict()[name], tensor), name


@pytest.mark.parametrize(
    ("count", "inside"),
    [*((count, None) for count in (101, 10_000, 100_000, 10**12, 1e30)), (10**12, "text_config")],
)
def test_more_layers_than_weights_are_refused_before_they_are_built(folder, count, inside):
    change(folder, **{inside: {"n_layer": count}} if inside else {"num_hidden_layers": count})
    started = time.perf_counter()
    text = refusal(folder)
    assert "config.json says" in text
    assert time.perf_counter() - started < 10


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("bert", {"max_position_embeddings": 5 * 10**7}),
        ("bert", {"vocab_size": 5 * 10**7}),
        ("distilbert", {"max_position_embeddings": 5 * 10**7, "sinusoidal_pos_embds": True}),
        pytest.param("albert", {"inner_group_num": 10**9}, marks=pytest.mark.exhaustive),
        ("gptj", {"n_positions": 5 * 10**7}),  # whose positions are a buffer
    ],
)
@pytest.mark.parametrize("shards", [False, True])
def test_a_model_much_larger_than_its_weights_is_refused_before_it_is_built(
    tmp_path, name, sizes, shards
):
    path, model = tmp_path / "model", architecture(name).build()
    model.save_pretrained(path, max_shard_size="10KB" if shards else "1GB")
    tokenizer().save_pretrained(path)
    assert (path / "model.safetensors.index.json").exists() == shards
    load_classifier(path)
    change(path, **sizes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for load in load_classifier, lambda source: load_for_training(source, ["no", "yes"]):
        text = refusal(path, load)
        assert "as large as the weights" in text
        assert f"{sum(p.stat().st_size for p in path.glob('*.safetensors')):,} bytes" in text
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


@pytest.mark.filterwarnings("ignore:.*flash_attention_2, which cannot be used here")
def test_a_large_model_is_refused_with_every_attention(folder):
    change(folder, vocab_size=5 * 10**7, attn_implementation="flash_attention_2")
    assert "as large as the weights" in refusal(folder)


@pytest.mark.parametrize("inside", [None, "text_config"])
@pytest.mark.parametrize("name", ["num_labels", "num_classes"])
def test_many_classes_are_refused_before_they_get_names(folder, name, inside):
    numbers = {"id2label": None, "label2id": None, name: 10**8}
    change(folder, **{inside: numbers} if inside else numbers)
    assert f"{name} = 1e+08" in refusal(folder)
    assert f"{name} = 1e+08" in refusal(folder, find_model)


def change_tokenizer(folder, **parts):
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | parts))


def replacing(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def in_turn(*stages):
    return {"type": "Sequence", "normalizers": stages}


LONGER = replacing({"Regex": "."}, "w" * 1000)


@pytest.mark.parametrize(
    "normaliser",
    [
        in_turn(LONGER, LONGER, LONGER),
        in_turn(LONGER, in_turn(in_turn(LONGER), LONGER)),
        in_turn(replacing({"String": "q"}, "z" * 20), replacing({"String": "z"}, "q" * 20)),
    ],
)
def test_a_tokenizer_that_makes_texts_too_long_is_refused_before_it_is_used(folder, normaliser):
    token = {"id": 5, "content": "aaq", "normalized": True, "special": False}
    flags = {"single_word": False, "lstrip": False, "rstrip": False}
    change_tokenizer(folder, normalizer=normaliser, added_tokens=[token | flags])
    assert "normalizer" in refusal(folder)


def test_a_normaliser_that_makes_texts_a_little_longer_is_used(folder):
    wide = in_turn(replacing({"String": "w"}, " w "), replacing({"Regex": "w"}, "ww"))
    change_tokenizer(folder, normalizer=wide)
    _, words = load_classifier(folder)
    assert words.backend_tokenizer.normalizer.normalize_str("w1") == " ww 1"


def test_a_tokenizer_needs_no_number_for_every_word(folder):
    change_tokenizer(folder, model={"type": "WordLevel", "vocab": {"w3": 3}, "unk_token": "none"})
    assert load_classifier(folder)[1]("w3")["input_ids"] == [3]


@pytest.mark.slow
@pytest.mark.parametrize("name", [each.name for each in ZOO])
def test_no_architecture_is_taken_for_one_with_layers_missing(tmp_path, name):
    model = architecture(name).build()
    if "SequenceClassification" in type(model).__name__:  # not of pictures, speech and translations
        loaded, _ = load_classifier(save(tmp_path / name, model))
        assert type(loaded) is type(model)
        assert loaded.state_dict().keys() == model.state_dict().keys()


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["pos", "pos", "neg"], "pos for several outputs"),
        (["a", "b\nc", "d"], "of one line"),
        (["a", "", "d"], "of one line"),
    ],
)
def test_class_names_that_say_nothing(folder, names, said):
    change(folder, id2label=dict(enumerate(names)))
    assert said in refusal(folder)


def test_a_model_of_the_hub_is_looked_at_in_the_same_way(folder, tmp_path, monkeypatch):
    """In the cache that a download leaves, without the network."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    cache = tmp_path / "cache"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    monkeypatch.setattr("transformers.utils.hub.constants.HF_HUB_CACHE", str(cache))
    home = cache / "models--some--model"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text("0" * 40)
    shutil.copytree(folder, home / "snapshots" / ("0" * 40))
    assert not load_classifier("some/model")[0].training
    sharded(home / "snapshots" / ("0" * 40), "a.safetensors", "b.bin")
    assert "may be a pickle" in refusal("some/model")
    (home / "snapshots" / ("0" * 40) / "adapter_config.json").write_text("{}")
    assert "adapter" in refusal("some/model")


def test_a_name_too_long_for_a_folder(tmp_path):
    with refused("File name too long"):
        load_classifier(tmp_path / ("n" * 300))


def test_damaged_and_pickled_weights(folder):
    weights = folder / "model.safetensors"
    content = weights.read_bytes()
    for spoilt in (content[: len(content) // 2], b"garbage" * 100, b""):
        weights.write_bytes(spoilt)
        assert "damaged" in refusal(folder)
    weights.unlink()
    assert "there are none" in refusal(folder)
    torch.save({}, folder / "pytorch_model.bin")
    assert "pickled weights only" in refusal(folder)


def test_no_tokenizer_or_a_slow_one(folder):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    assert "tokenizer" in refusal(folder)  # transformers makes an empty one up
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "ByT5Tokenizer"}')
    assert "fast tokenizer" in refusal(folder)
    (folder / "tokenizer.json").write_text("{spoilt")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    assert "tokenizer" in refusal(folder)


@pytest.mark.parametrize(
    "name",
    ["gpt2", "llama", "qwen2", "mistral", "gemma2", "opt", "bloom", "falcon", "gptj", "gpt_neo",
     "gpt_neox", "phi3", "olmo2", "mpt"],
)  # fmt: skip
@pytest.mark.parametrize("declared", [None, 2])
def test_a_decoder_reads_batches_as_the_plain_model_reads_each_text(tmp_path, name, declared):
    row = architecture(name)
    config = row.configuration()
    config.pad_token_id = declared
    torch.manual_seed(0)
    made = type(row.build())(config).eval()
    path = save(tmp_path / name, made, pad_token=None, eos_token="[END]")
    texts = ["w5 w6 w7 w8 [END]", "w9 w9", "w5 [END] w6", "w7"]
    plain = AutoModelForSequenceClassification.from_pretrained(path).eval()
    model, words = load_classifier(path)[0], tokenizer(pad_token=None)
    assert model.config.pad_token_id == plain.config.pad_token_id == declared
    batch = encode(
        words, [pieces(text, "words") for text in texts], range(4), model.device, declared
    )
    for _ in range(2):
        many = model(input_ids=batch.ids, attention_mask=batch.real.long()).logits
        assert model.config.pad_token_id == declared
        for i, text in enumerate(texts):
            ids = words(text, return_tensors="pt")["input_ids"]
            with torch.no_grad():
                assert torch.allclose(plain(input_ids=ids).logits[0], many[i], atol=1e-5), text


def test_a_model_that_cannot_look_up_its_tokenizers_padding_is_refused(tmp_path):
    path = save(tmp_path / "b", architecture("gpt2").build(), pad_token="[NEW]")
    assert f"{VOCABULARY} tokens" in refusal(path)


def test_training_makes_a_head_where_none_is_or_another_size(tmp_path, saved):
    def same_twice(source, classes):
        heads = []
        for _ in range(2):
            with torch.random.fork_rng():
                torch.manual_seed(1)
                model, _words = load_for_training(source, classes)
            heads.append(model.classifier.weight)
        assert torch.equal(*heads)
        assert model.training
        assert all(weight.requires_grad for weight in model.parameters())
        return model

    with quiet():
        model = AutoModelForMaskedLM.from_config(architecture("bert").configuration())
    bare = save(tmp_path / "mlm", model)
    trained = same_twice(bare, ["no", "yes"])
    assert trained.config.id2label == {0: "no", 1: "yes"}
    assert trained.config.label2id == {"no": 0, "yes": 1}
    assert torch.equal(
        trained.bert.embeddings.word_embeddings.weight, model.bert.embeddings.word_embeddings.weight
    )
    assert same_twice(saved, list("abcd")).classifier.out_features == 4
    kept, _ = load_for_training(saved, list("abc"))
    assert torch.equal(kept.classifier.weight, load_classifier(saved)[0].classifier.weight)
    assert "two classes" in refusal(saved, lambda source: load_for_training(source, ["one"]))


def test_training_refuses_a_body_that_is_not_there(folder):
    change(folder, num_hidden_layers=3)
    text = refusal(folder, lambda source: load_for_training(source, ["no", "yes"]))
    assert "bert.encoder.layer.2" in text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bert", 40),
        ("roberta", 38),
        ("gpt2", 40),
        ("opt", 40),
        ("xlnet", UNLIMITED),
        ("bloom", None),
    ],
)
def test_the_longest_text_a_model_reads(name, expected):
    model = architecture(name).build()
    found = longest(model, tokenizer())
    assert found == (expected or UNLIMITED)
    assert longest(model, tokenizer(model_max_length=17)) == 17
