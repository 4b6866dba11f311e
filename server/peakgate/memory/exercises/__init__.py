"""The lesson's five exercises, answered by the memory model: `docs/tutorial.md` goes through them.

Source of the exercises and of the symbols: ML Systems, Lesson 6, section 10 ("Practice"). No formula of the lesson is written down
here; each function describes a job in the textbook's terms and reads the answer off the model. Sizes are in bytes.

Symbols: s sequence length, b micro-batch in sequences, h hidden size, a attention heads, L layers, V vocabulary size, psi parameters,
K bytes a parameter that the optimizer keeps, k layers that share a checkpoint.
"""

from peakgate.memory.exercises.activations import activation_bytes
from peakgate.memory.exercises.fixes import Fix, cheapest_fix, largest_micro_batch
from peakgate.memory.exercises.lesson import MODES, lesson_job
from peakgate.memory.exercises.parameters import model_params, params_per_layer
from peakgate.memory.exercises.saved_tensors import SavedTensor, saved_tensors
from peakgate.memory.exercises.states import gpus_for_states, model_state_bytes
from peakgate.memory.exercises.timeline import Moment, activation_peak, best_k, step_timeline

__all__ = [
    "MODES",
    "Fix",
    "Moment",
    "SavedTensor",
    "activation_bytes",
    "activation_peak",
    "best_k",
    "cheapest_fix",
    "gpus_for_states",
    "largest_micro_batch",
    "lesson_job",
    "model_params",
    "model_state_bytes",
    "params_per_layer",
    "saved_tensors",
    "step_timeline",
]
