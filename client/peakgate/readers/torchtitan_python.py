"""A config of torchtitan that is a Python function: what it says beyond doubt, read without running it.

Of `Trainer.Config(...)` the calls that it is made of are read by their names (`TrainingConfig(seq_len=8192)`), of a function that begins
with another one (`config = llama3_8b()`) what it changes afterwards (`config.training.steps = 10`). A value that is no plain number, text,
list or product of numbers says nothing.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

from peakgate.readers import torchtitan_configs as configs
from peakgate.readers.files import FileError
from peakgate.readers.launch import Launch
from peakgate.readers.place import PYTHON, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

SECTIONS = {
    "TrainingConfig": "training",
    "Training": "training",
    "ParallelismConfig": "parallelism",
    "CompileConfig": "compile",
    "ActivationCheckpointConfig": "activation_checkpoint",
    "Validator.Config": "validation",
    "OptimizersContainer.Config": "optimizer",
}
"""Name of a dataclass -> the section of which it is."""

POLICIES = {"FullAC.Config": "full", "SelectiveAC.Config": "selective", "MemoryBudgetAC.Config": "memory_budget"}
CONVERTERS = {"Float8LinearConverter.Config": "float8", "MXFP8LinearConverter.Config": "mx"}
CHUNKED = ("ChunkedLossWrapper.Config", "ChunkedCELoss.Config")
"""Losses that make the logits in parts."""
OF_CONVERTERS = ("NVFP4LinearConverter", "LoRAConverter", "Float8GroupedMMConverter", "MXFP8GroupedMMConverter")
DEEPEST = 4
LONGEST = 1 << 18
"""Characters of a module that is read."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module: its functions by name, its file, the model whose registry it uses; `done`: what its functions have been found to say."""

    functions: dict[str, ast.FunctionDef]
    path: str
    family: str
    reading: Reading
    done: dict[str, Settings | None] = field(default_factory=dict)


def read(module: str, function: str, launch: Launch, reading: Reading) -> Settings | None:
    """The settings of a function of a module that is at hand; None where there is no such file or function."""
    found = _tree(module, launch)
    if found is None:
        return None
    tree, path = found
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if function not in functions:
        return None
    return _of_function(function, Module(functions, path, _family(tree, module), reading), 0)


def _family(tree: ast.Module, module: str) -> str:
    """The model whose registry the module uses: that of its import, or its own."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and not node.level and any(each.name == "model_registry" for each in node.names):
            return node.module or module
    return module


def _tree(module: str, launch: Launch) -> tuple[ast.Module, str] | None:
    folder = module.replace(".", "/")
    for path in (f"{folder}/config_registry.py", f"{folder}.py", f"torchtitan/models/{folder}/config_registry.py"):
        try:
            text = launch.files.text(path)
            if len(text) > LONGEST:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(text), path
        except (FileError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _of_function(name: str, module: Module, depth: int) -> Settings | None:
    """What a function says; of one that is not in the module, torchtitan's own of the name."""
    if name in module.done:
        return module.done[name]
    module.done[name] = None
    if name not in module.functions or depth > DEEPEST:
        module.done[name] = configs.of_registry(name)
        return module.done[name]
    settings, bases = Settings(), 0
    for node in _in_order(module.functions[name]):
        called = _begins_with(node)
        if called is not None and bases < DEEPEST and (base := _of_function(called, module, depth + 1)) is not None:
            settings, bases = settings.merged(base), bases + 1
        for key, stated in _said(node, module):
            settings.override(key, stated)
    module.done[name] = settings
    return settings


def _begins_with(node: ast.AST) -> str | None:
    """The function whose config a function changes or hands on; one that is called with more than a kernel's name may be another."""
    if not isinstance(node, ast.Assign | ast.Return) or not isinstance(node.value, ast.Call):
        return None
    call = node.value
    plain = not call.args and all(keyword.arg == "attn_backend" for keyword in call.keywords)
    return _name(call.func) if plain else None


def _in_order(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Assignments, calls and returns of a function as they stand."""
    nodes = [node for node in ast.walk(function) if isinstance(node, ast.Assign | ast.Call | ast.Return)]
    return iter(sorted(nodes, key=lambda node: (node.lineno, node.col_offset)))


def _said(node: ast.AST, module: Module) -> Iterator[tuple[str, Stated]]:
    place = Place(kind=PYTHON, key="", file=module.path, line=getattr(node, "lineno", 0))
    if isinstance(node, ast.Assign):
        target = _name(node.targets[0])
        known, value = _value(node.value)
        if target.count(".") == 2 and known:
            yield target.split(".", 1)[1], Stated(value, place)
        if target.endswith(".loss") and isinstance(node.value, ast.Call) and _name(node.value.func) == "CrossEntropyLoss.Config":
            yield "loss.implementation", Stated("full", place)
        return
    name = _name(node.func) if isinstance(node, ast.Call) else ""
    if not isinstance(node, ast.Call) or not name:
        return
    for dotted in (name, name.split(".", 1)[-1]):
        yield from _of_call(dotted, node, place, module.family) if dotted in KNOWN else ()
        if dotted in KNOWN:
            return
    if name.split(".")[0] in OF_CONVERTERS:
        module.reading.cannot_say(f"the converter {name.split('.')[0]}", place)


def _of_call(name: str, node: ast.Call, place: Place, module: str) -> Iterator[tuple[str, Stated]]:
    if name in POLICIES:
        yield "activation_checkpoint.mode", Stated(POLICIES[name], place)
        yield "activation_checkpoint.selective_ac_option", Stated("op", place)
    elif name in CHUNKED:
        yield "loss.implementation", Stated("chunked", place)
    elif name in CONVERTERS:
        yield "model.converters", Stated(CONVERTERS[name], place)
    elif name == "model_registry" and node.args:
        known, flavor = _value(node.args[0])
        if known:
            yield "model.name", Stated(module.rsplit(".", 1)[-1], place)
            yield "model.flavor", Stated(flavor, place)
    section = SECTIONS.get(name, "activation_checkpoint" if name in POLICIES else "")
    for keyword in node.keywords:
        known, value = _value(keyword.value)
        if section and keyword.arg and known:
            yield (
                f"{section}.{keyword.arg}",
                Stated(value, Place(kind=PYTHON, key=keyword.arg, file=place.file, line=keyword.value.lineno)),
            )


KNOWN = frozenset((*SECTIONS, *POLICIES, *CONVERTERS, *CHUNKED, "model_registry"))


def _name(node: ast.AST) -> str:
    """A dotted name; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _value(node: ast.AST, depth: int = 0) -> tuple[bool, object]:
    """Whether a value is plain, and the value."""
    if depth > DEEPEST:
        return False, None
    if isinstance(node, ast.Constant):
        return True, node.value
    if isinstance(node, ast.List | ast.Tuple):
        parts = [_value(each, depth + 1) for each in node.elts]
        return all(known for known, _ in parts), [value for _, value in parts]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        known, value = _value(node.operand, depth + 1)
        return (True, -value) if known and isinstance(value, int | float) else (False, None)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        (left_known, left), (right_known, right) = _value(node.left, depth + 1), _value(node.right, depth + 1)
        if left_known and right_known and isinstance(left, int) and isinstance(right, int) and abs(left * right) < 1 << 62:
            return True, left * right
    return False, None
