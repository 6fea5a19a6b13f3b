"""Adam that reads and writes only those rows of a large embedding that a batch holds.

Its numbers are dense Adam's. That moves every row at every step, also those without a gradient: the moments
decay, and the penalty pulls. Here a row without a gradient waits. Before it is read, it takes all the steps
that it missed, one after the other, in a copy in the processor's cache. These are the same operations on the
same numbers, by the same kernel (`torch._fused_adam_`, that of `Adam(fused=True)`), so weights and moments are
those of dense Adam bit for bit; what is saved is the way to the memory, once per step and row, and the dense
gradient. From LARGE numbers (32 MB) on this wins: no cache holds the moments, and the gradient is memory that
the system hands out and zeroes at every step.

The kernel computes the last numbers of a tensor one by one, without fused multiply-add, and all others as
vectors. So copies of rows are padded to whole vectors (LANES), and the last rows of a table, which hold its
last numbers, take every step in their place.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.nn import functional

# Numbers of an embedding (28,000 words of 300): dense steps of smaller ones are as fast.
LARGE = 8 << 20
LANES = 16  # numbers of the longest vector of a processor that torch has kernels for
BLOCK = 20_000  # numbers of a copied block: with its moments it stays in the second cache
MOMENTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
OPTIONS = ("lr", "betas", "eps", "weight_decay", "amsgrad", "maximize")


class RowAdam(torch.optim.Adam):
    """Adam of parameter groups, some of which are large embeddings on the CPU.

    It watches the embeddings until `release`: rows are brought up to date before the module looks them up or
    its state is read. Read `embedding.weight` itself after `release` or `state_dict` only. The state is that
    of `Adam(fused=True)`, in checkpoints too.
    """

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        embeddings: Sequence[nn.Embedding],
        *,
        lr: float,
        amsgrad: bool,
    ) -> None:
        super().__init__(groups, lr=lr, amsgrad=amsgrad, fused=True)
        self.tables = [_Table(self, embedding) for embedding in embeddings]

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Take a step: of a table's rows with a gradient, and of all other parameters."""
        gradients = {table: table.take_gradient() for table in self.tables}
        loss = super().step(closure)
        for table, gradient in gradients.items():
            if gradient is not None:
                table.step(gradient)
        return loss

    def state_dict(self) -> dict[str, Any]:
        """Return the state of `Adam(fused=True)`, with every row up to date."""
        for table in self.tables:
            table.finish()
        return super().state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state of this class or of `Adam(fused=True)`, which belongs to the weights as they are."""
        super().load_state_dict(state_dict)
        for table in self.tables:
            table.restart()

    def release(self) -> None:
        """Bring all rows up to date, and stop to watch the embeddings."""
        for table in self.tables:
            table.finish()
            table.release()


class _Table:
    """One embedding: how many steps each of its rows has taken, of those that it takes one by one."""

    def __init__(self, optimizer: RowAdam, embedding: nn.Embedding) -> None:
        self.optimizer, self.weight = optimizer, cast("nn.Parameter", embedding.weight)
        rows, self.width = self.weight.shape
        self.watched = rows - rows % (LANES // math.gcd(self.width, LANES))
        self.counter = torch.zeros(())
        self.restart()
        self.handles = [
            embedding.register_forward_pre_hook(self._before_lookup),
            embedding.register_forward_hook(self._after_lookup),
            embedding.register_state_dict_pre_hook(lambda *_: self.finish()),  # type: ignore[no-untyped-call]
        ]

    def restart(self) -> None:
        """Regard all rows as up to date."""
        state = self.optimizer.state.get(self.weight)
        self.steps_done = int(state["step"]) if state else 0
        self.row_steps = torch.full((self.watched,), self.steps_done)
        self.copies: list[Tensor] = []
        self.options = self._options()

    def release(self) -> None:
        """Remove what watches the module."""
        self.copies = []
        for handle in self.handles:
            handle.remove()

    def finish(self) -> None:
        """Bring all rows up to date."""
        self._catch_up(torch.arange(self.watched))

    def take_gradient(self) -> Tensor | None:
        """Take a gradient of rows away from the parameter; a dense one stays there, for a dense step."""
        gradient = self.weight.grad
        if gradient is None:
            return None
        if not gradient.is_sparse:
            self.finish()
            self.steps_done += 1
            self.row_steps.fill_(self.steps_done)
            return None
        self.weight.grad = None
        return gradient.coalesce()

    def step(self, gradient: Tensor) -> None:
        """Move the rows of a gradient; all others miss this step."""
        if self.options != self._options():  # missed steps are those of the rate at their time
            self.finish()
            self.options = self._options()
        if self.weight not in self.optimizer.state:
            self._begin()
        self.steps_done += 1
        self.optimizer.state[self.weight]["step"].fill_(self.steps_done)
        rows, values = gradient.indices()[0], gradient.values()
        inside = rows < self.watched
        last = torch.zeros_like(self.weight[self.watched :])
        last[rows[~inside] - self.watched] = values[~inside]
        if len(last):
            self._kernel([t[self.watched :] for t in self._tensors()], last, self.steps_done)
        rows, values = rows[inside], values[inside]
        blocks = (torch.split(tensor, self._rows_at_once) for tensor in (rows, values))
        for block, part in zip(*blocks, strict=True):
            copies = self._copied(block)
            self._kernel(copies, functional.pad(part, (0, -self.width % LANES)), self.steps_done)
            self._write(block, copies)
        self.row_steps[rows] = self.steps_done

    def _before_lookup(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        rows = inputs[0].flatten()
        if rows.device.type == "cpu":  # elsewhere all steps are dense
            self._catch_up(rows[rows < self.watched])

    def _after_lookup(
        self, module: nn.Module, inputs: tuple[Tensor, ...], looked_up: Tensor
    ) -> Tensor | None:
        distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        if not looked_up.requires_grad or looked_up.device.type != "cpu" or distributed:
            return None  # autograd makes a dense gradient
        passed_on: Tensor = _RowGradient.apply(  # type: ignore[no-untyped-call]
            looked_up.detach(), module.weight, inputs[0], module.padding_idx
        )
        return passed_on

    @torch.no_grad()
    def _catch_up(self, rows: Int[Tensor, " N"]) -> None:
        """Take the steps that rows have missed, the ones that wait longest first."""
        rows = torch.unique(rows[self.row_steps[rows] < self.steps_done])
        longest_first = rows[self.row_steps[rows].argsort(stable=True)]
        for block in torch.split(longest_first, self._rows_at_once):
            if len(block):
                self._replay(block)
                self.row_steps[block] = self.steps_done

    def _replay(self, rows: Int[Tensor, " b"]) -> None:
        taken = self.row_steps[rows].tolist()
        copies = self._copied(rows)
        nothing = torch.zeros_like(copies[0])
        late, parts = 0, copies
        for step in range(taken[0] + 1, self.steps_done + 1):
            if late < len(rows):
                late = bisect_left(taken, step)  # rows are in order: these have not taken this step
                parts, none = [copy[:late] for copy in copies], nothing[:late]
            self._kernel(parts, none, step)
        self._write(rows, copies)

    def _tensors(self) -> list[Tensor]:
        state = self.optimizer.state[self.weight]
        return [self.weight.data, *(state[name] for name in MOMENTS if name in state)]

    def _copied(self, rows: Int[Tensor, " b"]) -> list[Float[Tensor, "b _"]]:
        tensors = self._tensors()
        if not self.copies:  # one set for all blocks: new memory costs more than the steps
            size = (self._rows_at_once, self.width + -self.width % LANES)
            self.copies = [tensor.new_zeros(size) for tensor in tensors]
        copies = [copy[: len(rows)] for copy in self.copies]
        for tensor, copy in zip(tensors, copies, strict=True):
            torch.index_select(tensor, 0, rows, out=copy[:, : self.width])
        return copies

    def _write(self, rows: Int[Tensor, " b"], copies: list[Tensor]) -> None:
        # NumPy writes rows three times as fast as `index_copy_`.
        for tensor, copy in zip(self._tensors(), copies, strict=True):
            tensor.numpy()[rows.numpy()] = copy[:, : self.width].numpy()

    def _kernel(self, tensors: list[Tensor], gradient: Tensor, step: int) -> None:
        weight, mean, square, *largest = tensors
        options = self.options
        self.counter.fill_(step)
        torch._fused_adam_(
            [weight],
            [gradient],
            [mean],
            [square],
            largest,
            [self.counter],
            lr=options["lr"],
            beta1=options["betas"][0],
            beta2=options["betas"][1],
            weight_decay=options["weight_decay"],
            eps=options["eps"],
            amsgrad=options["amsgrad"],
            maximize=options["maximize"],
        )

    def _begin(self) -> None:
        state = self.optimizer.state[self.weight]
        state["step"] = torch.zeros((), dtype=torch.float32)
        names = MOMENTS if self.options["amsgrad"] else MOMENTS[:2]
        state |= {name: torch.zeros_like(self.weight) for name in names}

    def _options(self) -> dict[str, Any]:
        for group in self.optimizer.param_groups:
            if any(parameter is self.weight for parameter in group["params"]):
                return {name: group[name] for name in OPTIONS}
        raise LookupError("the embedding is in no group of the optimiser")

    @property
    def _rows_at_once(self) -> int:
        return max(1, BLOCK // self.width)


class _RowGradient(torch.autograd.Function):
    """Pass looked-up rows on; the gradient of the table holds the rows of the lookup alone, each once."""

    @staticmethod
    def forward(
        context: FunctionCtx, looked_up: Tensor, weight: Tensor, ids: Tensor, padding: int | None
    ) -> Tensor:
        context.save_for_backward(ids)
        context.shape, context.padding = weight.shape, padding  # type: ignore[attr-defined]
        return looked_up.view_as(looked_up)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[None, Tensor, None, None]:
        (ids,) = context.saved_tensors
        rows, places = torch.unique(ids, return_inverse=True)
        # The dense gradient's own function, over the rows of the lookup: it adds in the same order.
        values = torch.ops.aten.embedding_dense_backward(gradient, places, len(rows), -1, False)
        if context.padding is not None:
            values[rows == context.padding] = 0.0
        sparse = torch.sparse_coo_tensor(
            rows[None], values, context.shape, is_coalesced=True, check_invariants=False
        )
        return None, sparse, None, None
