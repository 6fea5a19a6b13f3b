"""People's own models of bags against the modules themselves: weights, imposed weights, deletions."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from wording import refused

import heedmap as hm
from heedmap.importance.deletions import reread_without_each
from heedmap.importance.leave_one_out import logits_without_each

WIDTH, HIDDEN, CLASSES = 6, 8, 3
TOLERANCE = 1e-5


class Gated(nn.Module):
    """The gated score by CLAM's names, written from the paper and the names of its state dict."""

    def __init__(self, size, rows):
        super().__init__()
        self.attention_a = nn.Sequential(nn.Linear(size, 5), nn.Tanh(), nn.Dropout(0.25))
        self.attention_b = nn.Sequential(nn.Linear(size, 5), nn.Sigmoid(), nn.Dropout(0.25))
        self.attention_c = nn.Linear(5, rows)

    def forward(self, h):
        return self.attention_c(self.attention_a(h) * self.attention_b(h)), h


class Plain(nn.Module):
    """The additive score by CLAM's names."""

    def __init__(self, size, rows):
        super().__init__()
        layers = [nn.Linear(size, 5), nn.Tanh(), nn.Dropout(0.25), nn.Linear(5, rows)]
        self.module = nn.Sequential(*layers)

    def forward(self, h):
        return self.module(h), h


class ClamSB(nn.Module):
    layer, rows = "attention_net.3", 1

    def __init__(self, score=Gated):
        super().__init__()
        first = [nn.Linear(WIDTH, HIDDEN), nn.ReLU(), nn.Dropout(0.25)]
        self.attention_net = nn.Sequential(*first, score(HIDDEN, self.rows))
        self.instance_classifiers = nn.ModuleList(nn.Linear(HIDDEN, 2) for _ in range(CLASSES))
        self._read_out()

    def _read_out(self):
        self.classifiers = nn.Linear(HIDDEN, CLASSES)

    def logits(self, M):
        return self.classifiers(M)

    def forward(self, h, imposed=None):
        A, h = self.attention_net(h)
        A = torch.softmax(A.T, dim=1) if imposed is None else imposed
        logits = self.logits(A @ h)
        return logits, logits.softmax(1), A


class PlainClam(ClamSB):
    def __init__(self):
        super().__init__(Plain)


class ClamMB(ClamSB):
    rows = CLASSES

    def _read_out(self):
        self.classifiers = nn.ModuleList(nn.Linear(HIDDEN, 1) for _ in range(CLASSES))

    def logits(self, M):
        outputs = [classifier(M[c]) for c, classifier in enumerate(self.classifiers)]
        return torch.cat(outputs).unsqueeze(0)


class Pool(nn.Module):
    def __init__(self, *, gated):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(WIDTH, 5), nn.Linear(5, 1, bias=False)
        if gated:
            self.fc_gated = nn.Linear(WIDTH, 5)

    def forward(self, X, imposed):
        a = self.fc1(X).tanh()
        if hasattr(self, "fc_gated"):
            a = a * self.fc_gated(X).sigmoid()
        s = torch.softmax(self.fc2(a), 1).transpose(1, 2) if imposed is None else imposed[None]
        return (s @ X).squeeze(1), s[0]


class Abmil(nn.Module):
    """torchmil's ABMIL, of batches: one logit per bag."""

    layer, rows = "pool.fc2", 1

    def __init__(self, *, gated=False):
        super().__init__()
        self.pool, self.classifier = Pool(gated=gated), nn.Linear(WIDTH, 1)

    def forward(self, X, imposed=None):
        assert X.dim() == 3, "a batch of bags"
        z, A = self.pool(X, imposed)
        return self.classifier(z).squeeze(-1), None, A


class GatedAbmil(Abmil):
    def __init__(self):
        super().__init__(gated=True)


class Contextual(nn.Module):
    """Items that read each other before they are pooled, and a tanh after."""

    layer, rows = "score", 2

    def __init__(self):
        super().__init__()
        self.mixer = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.score, self.head = nn.Linear(WIDTH, 2), nn.Linear(2 * WIDTH, CLASSES)

    def forward(self, X, imposed=None):
        h = (X + self.mixer(X, X, X)[0]) if X.dim() == 3 else self.forward(X[None], imposed)
        if X.dim() != 3:
            return h
        A = torch.softmax(self.score(h[0]).T, 1) if imposed is None else imposed
        return self.head((A @ h[0]).flatten().tanh()), None, A


MODULES = [ClamSB, PlainClam, ClamMB, Abmil, GatedAbmil, Contextual]


def make(kind):
    torch.manual_seed(1)
    module = kind().eval()
    rng = np.random.default_rng(2)
    bags = [rng.normal(size=(n, WIDTH)).astype(np.float32) for n in (1, 2, 5, 3, 4)]
    return module, bags


def ask(module, bag, imposed=None):
    bag = torch.from_numpy(bag)
    with torch.no_grad():
        logits, _, A = module(bag[None] if isinstance(module, Abmil) else bag, imposed)
    logits = logits.flatten()
    return (torch.cat([torch.zeros(1), logits]) if len(logits) == 1 else logits), A


def compare(run, module, bags):
    model, texts = run.model, run.corpus.splits["test"].texts
    batch = model.batch(texts, range(len(texts)))
    trace = model.trace(batch)
    imposed = torch.rand(2, *trace.attention.shape) * batch.mask.unsqueeze(1)
    imposed = imposed / imposed.sum(-1, keepdim=True)
    predicted = model.predict(trace, imposed)
    embedded = model.embed(batch).requires_grad_()
    differentiable = model.logits_from(embedded, batch, imposed[0])
    assert torch.autograd.grad(differentiable.sum(), embedded)[0].abs().sum() > 0
    without = logits_without_each(model, batch, texts)
    read = reread_without_each(model, texts)
    for i, bag in enumerate(bags):
        logits, A = ask(module, bag)
        size = len(bag)
        assert torch.allclose(trace.logits[i], logits, atol=TOLERANCE)
        assert torch.allclose(model.logits(batch)[i], logits, atol=TOLERANCE)
        assert torch.allclose(trace.attention[i, :, :size], A, atol=TOLERANCE)
        for s in range(2):
            expected = ask(module, bag, imposed[s, i, :, :size])[0]
            assert torch.allclose(predicted[s, i], expected, atol=TOLERANCE)
        expected = ask(module, bag, imposed[0, i, :, :size])[0]
        assert torch.allclose(differentiable[i], expected, atol=TOLERANCE)
        for j in range(size if size > 1 else 0):
            expected = ask(module, bag[np.arange(size) != j])[0]
            assert torch.allclose(without[i, j], expected, atol=TOLERANCE)
            assert torch.allclose(read[i][j].float(), expected, atol=TOLERANCE)


@pytest.mark.parametrize("kind", MODULES)
def test_a_module_is_opened_as_it_is(kind):
    module, bags = make(kind)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    run = hm.open_pooling(module, bags, layer=kind.layer, per_class=kind is ClamMB)
    assert run.settings.model.rows == kind.rows
    compare(run, module, bags)
    assert all(before[name].equal(value) for name, value in module.state_dict().items())


@pytest.mark.parametrize("kind", MODULES[:-1])
def test_published_weights_become_a_model_of_our_own(tmp_path, kind):
    module, bags = make(kind)
    state = {name: value.clone() for name, value in module.state_dict().items()}
    save_file(state, tmp_path / "model.safetensors")
    run = hm.open_pooling(tmp_path / "model.safetensors", bags)
    compare(run, module, bags)
    wrapped = {f"module.{name}": value for name, value in state.items()}
    assert hm.open_pooling(wrapped, bags).settings.model == run.settings.model


def test_labels_are_matched_with_the_outputs():
    module, bags = make(ClamSB)
    run = hm.open_pooling(
        module, bags, layer="attention_net.3", labels=list("abcab"), classes=["a", "b", "c"]
    )
    assert run.corpus.splits["test"].labels.tolist() == [0, 1, 2, 0, 1]


class Scaled(ClamSB):
    def forward(self, h, imposed=None):
        A, h = self.attention_net(h)
        return self.logits(torch.sigmoid(A.T) @ h), None, A


class Normalised(nn.Module):
    """Weights that are made of the scores by a function, and pooled."""

    layer, rows = "score", 1

    def __init__(self, normalise=None):
        super().__init__()
        self.score, self.head = nn.Linear(WIDTH, 1), nn.Linear(WIDTH, CLASSES)
        self.normalise = normalise

    def forward(self, bag):
        return self.head(self.normalise(self.score(bag)).T @ bag)


def rectified(scores):
    """Weights by the part of the scores above their mean."""
    above = (scores - scores.mean(0)).relu()
    return above / above.sum(0)


@pytest.mark.parametrize(
    "normalise", [lambda s: (8 * s).softmax(0), lambda s: (s / 5**0.5).softmax(0), rectified]
)
def test_weights_that_no_softmax_of_the_scores_makes_are_refused(normalise):
    module, bags = make(Normalised)
    module.normalise = normalise
    with refused("score", "softmax", "scaled"):
        hm.open_pooling(module, bags, layer="score")
    module.normalise = lambda scores: scores.softmax(0)
    assert hm.open_pooling(module, bags, layer="score").settings.model.rows == 1


class Ordered(Normalised):
    """Items that read those before them."""

    def __init__(self):
        super().__init__(lambda scores: scores.softmax(0))
        self.reader = nn.GRU(WIDTH, WIDTH)

    def forward(self, bag):
        return super().forward(self.reader(bag)[0])


def test_items_with_places_leave_the_normaliser_unchecked_and_it_is_said():
    module, bags = make(Ordered)
    with pytest.warns(UserWarning, match="score: that a softmax .* could not be checked"):
        hm.open_pooling(module, bags, layer="score")


class Averaging(nn.Module):
    """It takes items for bags where it is not given a batch."""

    layer, rows = "score", 1

    def __init__(self):
        super().__init__()
        self.score, self.head = nn.Linear(WIDTH, 1), nn.Linear(WIDTH, CLASSES)

    def forward(self, X, imposed=None):
        A = torch.softmax(self.score(X), -2)
        return self.head((A * X).sum(-2) if X.dim() == 3 else A * X)


def test_a_module_that_takes_items_for_bags_is_given_a_batch():
    module, bags = make(Averaging)
    run = hm.open_pooling(module, bags, layer="score")
    batch = run.model.batch(run.corpus.splits["test"].texts, range(5))
    with torch.no_grad():
        expected = torch.cat([module(torch.from_numpy(bag)[None]) for bag in bags])
    assert torch.allclose(run.model.logits(batch), expected, atol=TOLERANCE)


class Squeezed(nn.Module):
    """An attention-based pooling that squeezes the batch away first and returns a probability, or a logit."""

    layer = "attention.2"

    def __init__(self, *, is_probability):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.ReLU())
        self.attention = nn.Sequential(nn.Linear(HIDDEN, 5), nn.Tanh(), nn.Linear(5, 1))
        self.head, self.is_probability = nn.Linear(HIDDEN, 1), is_probability

    def forward(self, x, imposed=None):
        x = x.squeeze(0)
        h = self.encoder(x)
        A = self.attention(h).transpose(1, 0).softmax(1) if imposed is None else imposed
        z = self.head(A @ h)
        p = z.sigmoid().clamp(1e-5, 1 - 1e-5)
        return (p, p >= 0.5, A) if self.is_probability else (z, p, A)


def test_a_module_that_squeezes_its_batch_reads_bags_of_any_size_in_a_batch():
    torch.manual_seed(1)
    module = Squeezed(is_probability=False).eval()
    _, bags = make(ClamSB)
    run = hm.open_pooling(module, bags, layer=module.layer)
    texts = run.corpus.splits["test"].texts
    batch = run.model.batch(texts, range(len(texts)))
    with torch.no_grad():
        expected = [module(torch.from_numpy(bag)[None])[0].flatten() for bag in bags]
        without = reread_without_each(run.model, texts)
        assert torch.allclose(run.model.logits(batch)[:, 1], torch.cat(expected), atol=TOLERANCE)
        for i, item in ((1, 0), (1, 1), (2, 3)):
            rest = torch.from_numpy(np.delete(bags[i], item, 0))[None]
            assert torch.allclose(without[i][item][1].float(), module(rest)[0], atol=TOLERANCE)


class Alone(Normalised):
    """It squeezes all axes away, so that a bag of one item is none."""

    def __init__(self):
        super().__init__(lambda scores: scores.softmax(0))

    def forward(self, bag):
        return super().forward(bag.squeeze())


def test_a_module_that_cannot_read_one_item_is_refused_when_it_is_opened():
    module, bags = make(Alone)
    with refused("Alone", "5, 7 and 1 items"):
        hm.open_pooling(module, bags, layer="score")


class Probable(Normalised):
    """Probabilities of several classes, by a softmax or a sigmoid, or the logits of them."""

    def __init__(self):
        super().__init__(lambda scores: scores.softmax(0))
        self.end = None

    def forward(self, bag):
        return self.end(super().forward(bag))


def test_outputs_that_are_probabilities_are_refused_and_small_logits_are_not():
    _, bags = make(ClamSB)
    with refused("Squeezed", "logits", "0 to 1", "torch.logit"):
        hm.open_pooling(Squeezed(is_probability=True).eval(), bags, layer=Squeezed.layer)
    module, _ = make(Probable)
    for module.end in (lambda z: z.softmax(-1), torch.sigmoid):
        with refused("Probable", "logits", "0 to 1"):
            hm.open_pooling(module, bags, layer="score")
    for module.end in (lambda z: z.log_softmax(-1), lambda z: 0.5 + 0.01 * z):
        run = hm.open_pooling(module, bags, layer="score")
        batch = run.model.batch(run.corpus.splits["test"].texts, range(len(bags)))
        with torch.no_grad():
            expected = torch.cat([module(torch.from_numpy(bag)) for bag in bags])
        assert torch.allclose(run.model.logits(batch), expected, atol=TOLERANCE)


BAD = {
    "no layer": (ClamSB, {}, ("layer",)),
    "another layer": (ClamSB, {"layer": "attention"}, ("attention_net", "'attention'")),
    "no scores": (ClamSB, {"layer": "classifiers"}, ("classifiers", "counts the items")),
    "earlier": (ClamSB, {"layer": "attention_net.3.attention_a.1"}, ("attention_a.1", "softmax")),
    "no softmax": (Scaled, {"layer": "attention_net.3"}, ("attention_net.3", "softmax")),
    "unused": (ClamSB, {"layer": "instance_classifiers.0"}, ("instance_classifiers.0", "0")),
    "classes": (ClamSB, {"layer": "attention_net.3", "classes": ["a"]}, ("classes", "3", "1")),
    "rows": (ClamSB, {"layer": "attention_net.3", "per_class": True}, ("per_class", "3", "1")),
}


@pytest.mark.parametrize("name", BAD)
def test_a_module_that_cannot_be_read_gets_one_line(name):
    kind, options, parts = BAD[name]
    module, bags = make(kind)
    with refused(*parts):
        hm.open_pooling(module, bags, **options)


def test_weights_of_another_layout_get_one_line(tmp_path):
    module, bags = make(ClamSB)
    state = module.state_dict()
    with refused("model.pt", "pickled"):
        hm.open_pooling(tmp_path / "model.pt", bags)
    with refused("missing.safetensors", "cannot be read"):
        hm.open_pooling(tmp_path / "missing.safetensors", bags)
    with refused("CLAM", "conv.weight"):
        hm.open_pooling({**state, "conv.weight": torch.zeros(1)}, bags)
    with refused("4", "6"):
        hm.open_pooling(state, [bag[:, :4] for bag in bags])
    with refused("CLAM", "read-out"):
        hm.open_pooling({n: v for n, v in state.items() if "classifiers" not in n}, bags)
    with refused("decoder", "(3, 8)", "(3, 7)"):
        hm.open_pooling({**state, "classifiers.weight": torch.zeros(3, 7)}, bags)
    with refused("classes", "3", "2"):
        hm.open_pooling(state, bags, classes=["a", "b"])
    with refused("classifiers.weight", "finite"):
        hm.open_pooling({**state, "classifiers.weight": torch.full((3, 8), torch.nan)}, bags)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ClamMB, Contextual])
def test_an_opened_model_is_audited(tmp_path, kind):
    module, _ = make(kind)
    rng = np.random.default_rng(2)
    bags = [rng.normal(size=(n % 4 + 2, WIDTH)).astype(np.float32) for n in range(20)]
    run = hm.open_pooling(module, bags, layer=kind.layer, per_class=kind is ClamMB)
    audit = hm.audit(run, permutations=5, progress=False)
    assert {"permutation", "leave_one_out", "erasure"} <= set(audit)
    audit.save(tmp_path / "report.html")
    with refused("bags"):
        run.explain("a text")


def test_the_heat_map_of_a_module_is_the_mean_of_its_rows_or_the_predicted_classes():
    module, bags = make(Contextual)
    model = (run := hm.open_pooling(module, bags, layer="score")).model
    texts = run.corpus.splits["test"].texts
    trace = model.trace(batch := model.batch(texts, range(len(texts))))
    assert torch.allclose(
        model.to_heatmap(trace, trace.attention[None])[0], trace.attention.mean(1)
    )
    assert model.token_positions(batch).sum(1).tolist() == [len(bag) for bag in bags]
    values = torch.arange(batch.ids.numel()).reshape(batch.ids.shape).float()
    assert torch.equal(model.on_tokens(values, batch), values[:, 1:-1])
