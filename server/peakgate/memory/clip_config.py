"""The config.json of a model of two towers, one of text and one of pictures.

Source: transformers models/clip/configuration_clip.py, whose defaults stand here.
"""

from __future__ import annotations

from collections.abc import Mapping

from peakgate.memory.encoder_config import ACTIVATIONS, EncoderExtras
from peakgate.memory.job import Transformer

Config = Mapping[str, object]

TEXT = {
    "vocab_size": 49408,
    "hidden_size": 512,
    "intermediate_size": 2048,
    "num_hidden_layers": 12,
    "num_attention_heads": 8,
    "max_position_embeddings": 77,
}
PICTURES = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "image_size": 224,
    "patch_size": 32,
    "num_channels": 3,
}
PROJECTION = 512
VISION_SIZES = {
    "vision_h": "hidden_size",
    "vision_f": "intermediate_size",
    "vision_a": "num_attention_heads",
    "image": "image_size",
    "patch": "patch_size",
    "channels": "num_channels",
}
"""Sizes of the picture's tower by their symbol in the architecture."""


def is_clip(config: Config) -> bool:
    """Whether the model has two towers."""
    return config.get("model_type") == "clip"


def read_clip(config: Config) -> tuple[Transformer, EncoderExtras, float]:
    """The text's dimensions, the sizes of the pictures' tower, and the dropout of attention."""
    text, pictures = _part(config, "text_config", TEXT), _part(config, "vision_config", PICTURES)
    transformer = Transformer(
        block="clip",
        layers=text["num_hidden_layers"],
        hidden_size=text["hidden_size"],
        heads=text["num_attention_heads"],
        ffn_hidden_size=text["intermediate_size"],
        vocab_size=text["vocab_size"],
        tied_embeddings=False,
        max_positions=text["max_position_embeddings"],
        encoder_layers=pictures["num_hidden_layers"],
    )
    sizes = {symbol: pictures[key] for symbol, key in VISION_SIZES.items()}
    projection = config.get("projection_dim")
    sizes["projection"] = projection if isinstance(projection, int) else PROJECTION
    extras = EncoderExtras(sizes=tuple(sorted(sizes.items())), roles=(("act", _activation(config)),))
    return transformer, extras, _dropout(config)


def default_sizes() -> dict[str, int]:
    """Sizes of the tower of pictures when nothing is said."""
    return {symbol: PICTURES[key] for symbol, key in VISION_SIZES.items()} | {"projection": PROJECTION}


def _part(config: Config, name: str, defaults: Mapping[str, int]) -> dict[str, int]:
    part = config.get(name)
    stated = part if isinstance(part, Mapping) else {}
    return {key: value if isinstance(value := stated.get(key), int) and value > 0 else default for key, default in defaults.items()}


def _activation(config: Config) -> str:
    part = config.get("vision_config")
    named = str(part.get("hidden_act", "quick_gelu")) if isinstance(part, Mapping) else "quick_gelu"
    return "quick_gelu" if named == "quick_gelu" else ACTIVATIONS.get(named, "gelu")


def _dropout(config: Config) -> float:
    part = config.get("text_config")
    value = part.get("attention_dropout", 0.0) if isinstance(part, Mapping) else 0.0
    return float(value) if isinstance(value, int | float) else 0.0
