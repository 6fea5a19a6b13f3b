"""Make tiny models of many architectures, with random weights, on which support is measured.

A row is a configuration, the numbers that make it small, and how its inputs are made. Models are classifiers
if transformers has one, otherwise base models. Weights and inputs are always the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
import transformers
from torch import Tensor
from transformers import AutoModelForSequenceClassification, PreTrainedConfig, PreTrainedModel

from heedmap.huggingface.loading import frozen
from heedmap.huggingface.logging import quiet

Family = Literal["encoder", "decoder", "encoder-decoder"]
LENGTHS = (9, 6, 4)  # of the texts in a batch
VOCABULARY, END, FIRST = (
    48,
    2,
    5,
)  # number of tokens; the end-of-text token; the first ordinary token


@dataclass(frozen=True)
class Architecture:
    """A row of the zoo: `name` as transformers calls the model type, and how to make one."""

    name: str
    config: str
    family: Family
    options: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None  # the class, if not the configuration's sequence classifier
    pads: Literal["right", "left"] = "right"
    pad: int = 0
    inputs: Literal["text", "pixels", "sound"] = "text"
    note: str | None = None

    def build(self, seed: int = 0) -> PreTrainedModel:
        """Build a model in eval mode; its weights are large enough for attention to matter."""
        config = self.configuration()
        with quiet(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            auto_class: Any = AutoModelForSequenceClassification
            model: PreTrainedModel = (
                auto_class.from_config(config)
                if self.model is None
                else getattr(transformers, self.model)(config)
            )
            with torch.no_grad():
                for name, weight in model.named_parameters():
                    if weight.ndim > 1 or "sink" in name:
                        weight.normal_(0.0, 0.15)
        return frozen(model)

    def configuration(self) -> PreTrainedConfig:
        """Make a new configuration: setting an attention implementation changes it."""
        common = {"pad_token_id": self.pad, "eos_token_id": END, "bos_token_id": 1}
        text = {**common, "vocab_size": VOCABULARY, "num_labels": 3}
        with quiet():
            config: PreTrainedConfig = getattr(transformers, self.config)(
                **{**({} if self.inputs == "pixels" else text), **self.options}
            )
        return config

    def tensors(self, seed: int = 0) -> dict[str, Tensor]:
        """Make inputs of the model: texts of `LENGTHS` tokens, padded on its side; or images, or sounds."""
        generator = torch.Generator().manual_seed(seed)
        if self.inputs == "pixels":
            return {"pixel_values": torch.randn(2, 3, 16, 16, generator=generator)}
        rows, longest = len(LENGTHS), max(LENGTHS)
        ids = torch.randint(FIRST, VOCABULARY, (rows, longest), generator=generator)
        place = torch.arange(longest)
        lengths = torch.tensor(LENGTHS)[:, None]
        mask = place < lengths if self.pads == "right" else place >= longest - lengths
        is_last = place == (lengths if self.pads == "right" else longest) - 1
        ids = ids.where(~is_last, torch.tensor(END)).where(mask, torch.tensor(self.pad))
        if self.inputs == "sound":
            sound = torch.randn(rows, 8, 16, generator=generator)
            return {"input_features": sound, "decoder_input_ids": ids}
        inputs = {"input_ids": ids, "attention_mask": mask.long()}
        if self.family == "encoder-decoder" and self.model is not None:
            inputs["decoder_input_ids"] = ids[:, :5].clamp(min=FIRST)
        return inputs


# Configurations name their sizes differently; several share each of these.
_BERT = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24,
    "max_position_embeddings": 40,
}  # fmt: skip
_GROUPED = {**_BERT, "num_key_value_heads": 2, "head_dim": 4}
_BART = {
    "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24,
    "max_position_embeddings": 40, "decoder_start_token_id": 2, "forced_eos_token_id": None,
}  # fmt: skip
_GPT = {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 40}
_T5 = {
    "d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4,
    "decoder_start_token_id": 0,
}  # fmt: skip
_DISTIL = {
    "dim": 16, "n_layers": 2, "n_heads": 4, "hidden_dim": 24, "max_position_embeddings": 40,
    "seq_classif_dropout": 0.0,
}  # fmt: skip
_VIT = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24,
    "image_size": 16, "patch_size": 4,
}  # fmt: skip
_GEMMA = {**_GROUPED, "query_pre_attn_scalar": 4, "sliding_window": 4}


def _encoder(name: str, config: str, options: Mapping[str, Any], **fields: Any) -> Architecture:
    return Architecture(name, config, "encoder", options, **fields)


def _decoder(name: str, config: str, options: Mapping[str, Any], **fields: Any) -> Architecture:
    return Architecture(name, config, "decoder", options, **fields)


def _both(name: str, config: str, options: Mapping[str, Any], **fields: Any) -> Architecture:
    return Architecture(name, config, "encoder-decoder", options, **fields)


ZOO: tuple[Architecture, ...] = (
    _encoder("bert", "BertConfig", _BERT),
    _encoder("roberta", "RobertaConfig", _BERT, pad=1),
    _encoder("xlm-roberta", "XLMRobertaConfig", _BERT, pad=1),
    _encoder("camembert", "CamembertConfig", _BERT, pad=1),
    _encoder("distilbert", "DistilBertConfig", _DISTIL),
    _encoder("electra", "ElectraConfig", {**_BERT, "embedding_size": 8}),
    _encoder("albert", "AlbertConfig", {**_BERT, "embedding_size": 8}),
    _encoder("ernie", "ErnieConfig", _BERT),
    _encoder("modernbert", "ModernBertConfig", {
        **_BERT, "cls_token_id": 3, "sep_token_id": 4, "local_attention": 4,
        "global_attn_every_n_layers": 2,
    }),
    _encoder("nomic_bert", "NomicBertConfig", _BERT),
    _encoder("esm", "EsmConfig", {**_BERT, "position_embedding_type": "rotary", "mask_token_id": 4}),
    _encoder("eurobert", "EuroBertConfig", _GROUPED),
    _encoder("vit", "ViTConfig", _VIT, model="ViTModel", inputs="pixels"),
    _decoder("gpt2", "GPT2Config", _GPT),
    _decoder("gpt_neox", "GPTNeoXConfig", _BERT),
    _decoder("llama", "LlamaConfig", _GROUPED, pads="left"),
    _decoder("qwen2", "Qwen2Config", _GROUPED, pads="left"),
    _decoder("qwen3", "Qwen3Config", _GROUPED, pads="left"),
    _decoder("mistral", "MistralConfig", {**_GROUPED, "sliding_window": 4}, pads="left"),
    _decoder("gemma2", "Gemma2Config", _GEMMA, pads="left"),
    _decoder("gemma3_text", "Gemma3TextConfig", _GEMMA, pads="left"),
    _decoder("phi3", "Phi3Config", {**_GROUPED, "original_max_position_embeddings": 40}, pads="left"),
    _decoder("olmo2", "Olmo2Config", _GROUPED, pads="left"),
    _decoder("smollm3", "SmolLM3Config", _GROUPED, pads="left"),
    _decoder("opt", "OPTConfig", {
        "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 24,
        "max_position_embeddings": 40, "word_embed_proj_dim": 16,
    }, pad=1),
    _decoder("gpt_oss", "GptOssConfig", {
        **_GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 4,
    }, pads="left"),
    _both("bart", "BartConfig", _BART, pad=1),
    _both("mbart", "MBartConfig", _BART, pad=1),
    _both("marian", "MarianConfig", _BART, model="MarianModel"),
    _both("t5", "T5Config", _T5),
    _both("mt5", "MT5Config", _T5),
    _both("whisper", "WhisperConfig", {
        **_BART, "num_mel_bins": 8, "max_source_positions": 8, "max_target_positions": 40,
        "suppress_tokens": [], "begin_suppress_tokens": None,
    }, model="WhisperModel", inputs="sound"),
    # Off the interface, as of transformers 5.23.
    _encoder("mpnet", "MPNetConfig", _BERT, pad=1),
    _encoder("deberta", "DebertaConfig", {
        **_BERT, "relative_attention": True, "pos_att_type": "c2p|p2c", "pooler_hidden_size": 16,
    }),
    _encoder("deberta-v2", "DebertaV2Config", {
        **_BERT, "relative_attention": True, "pos_att_type": "c2p|p2c", "position_buckets": 8,
        "pooler_hidden_size": 16, "share_att_key": True, "norm_rel_ebd": "layer_norm",
        "position_biased_input": False,
    }),
    _encoder("rembert", "RemBertConfig", {**_BERT, "input_embedding_size": 8, "output_embedding_size": 8}),
    _encoder("roformer", "RoFormerConfig", {**_BERT, "embedding_size": 16}),
    _encoder("big_bird", "BigBirdConfig", {**_BERT, "attention_type": "original_full"},
             note="with full attention, which it takes up at the first short text"),
    _encoder("megatron-bert", "MegatronBertConfig", _BERT),
    _encoder("squeezebert", "SqueezeBertConfig", {
        **_BERT, "embedding_size": 16, "q_groups": 2, "k_groups": 2, "v_groups": 2,
        "post_attention_groups": 1, "intermediate_groups": 2, "output_groups": 2,
    }),
    _encoder("convbert", "ConvBertConfig", {**_BERT, "embedding_size": 16, "head_ratio": 2}),
    _encoder("longformer", "LongformerConfig", {**_BERT, "attention_window": 4}, pad=1),
    _encoder("funnel", "FunnelConfig", {
        "block_sizes": [1, 1], "d_model": 16, "n_head": 4, "d_head": 4, "d_inner": 24,
    }),
    _encoder("xlm", "XLMConfig", {
        "emb_dim": 16, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 40, "n_words": VOCABULARY,
        "pad_index": 0,
    }),
    _encoder("xlnet", "XLNetConfig", {"d_model": 16, "n_layer": 2, "n_head": 4, "d_inner": 24}, pads="left"),
    _encoder("fnet", "FNetConfig", {
        "hidden_size": 16, "num_hidden_layers": 2, "intermediate_size": 24, "max_position_embeddings": 40,
    }),
    _decoder("bloom", "BloomConfig", {"hidden_size": 16, "n_layer": 2, "n_head": 4}, pads="left"),
    _decoder("falcon", "FalconConfig", {
        "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
    }, pads="left"),
    _decoder("gptj", "GPTJConfig", {**_GPT, "rotary_dim": 4}),
    _decoder("gpt_neo", "GPTNeoConfig", {
        "hidden_size": 16, "num_layers": 2, "num_heads": 4, "intermediate_size": 24,
        "max_position_embeddings": 40, "attention_types": [[["global", "local"], 1]], "window_size": 4,
    }),
    _decoder("codegen", "CodeGenConfig", {**_GPT, "rotary_dim": 4}, model="CodeGenModel"),
    _decoder("mpt", "MptConfig", {"d_model": 16, "n_heads": 4, "n_layers": 2, "max_seq_len": 40}, pads="left"),
    _both("led", "LEDConfig", {
        **_BART, "max_encoder_position_embeddings": 40, "max_decoder_position_embeddings": 40,
        "attention_window": 4,
    }, model="LEDModel", pad=1),
)  # fmt: skip


def architecture(name: str) -> Architecture:
    """Return the row of that name."""
    return next(row for row in ZOO if row.name == name)
