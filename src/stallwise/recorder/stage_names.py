"""Which stage a span of the user's is, by its name: one table. A span of any other name is a part of whatever it lies in.

Names are compared without case, and with blanks, dashes, dots and slashes as underscores: "Grad-Sync" is `grad_sync`.
"""

from __future__ import annotations

from typing import Dict, Optional

from stallwise.recorder import schema

NAMES = {
    schema.BATCH_WAIT: "batch_wait data_wait input_wait data data_time data_loading dataloader data_loader load_data loader "
    "loading input next_batch get_batch fetch_batch load_batch batch_generator wait_for_batch wait_for_data",
    schema.H2D: "h2d to_device to_gpu to_cuda host_to_device copy_to_device move_to_device batch_to_device "
    "transfer_to_device transfer_batch_to_device h2d_copy copy_h2d",
    schema.FORWARD: "forward fwd forward_pass fwd_pass forward_compute forward_step model_forward loss compute_loss loss_fn",
    schema.BACKWARD: "backward bwd backward_pass bwd_pass backward_compute backward_step backprop backpropagation "
    "loss_backward",
    schema.GRADIENT_SYNC: "gradient_sync grad_sync gradients_sync grads_sync sync_gradients sync_grads sync "
    "gradient_synchronization gradient_exchange exchange_gradients allreduce all_reduce grad_allreduce grad_all_reduce "
    "gradient_allreduce gradient_all_reduce grads_all_reduce allreduce_grads all_reduce_grads allreduce_gradients "
    "all_reduce_gradients grad_reduce reduce_grads reduce_gradients reduce_scatter grad_reduce_scatter "
    "grads_reduce_scatter nccl_allreduce ddp_sync communication comm",
    schema.OPTIMIZER: "optimizer optim opt optimizer_step optim_step opt_step optimiser optimiser_step optimizer_update "
    "weight_update update_weights",
    schema.CHECKPOINT: "checkpoint ckpt checkpointing save_checkpoint save_ckpt checkpoint_save save_model",
    schema.EVALUATION: "evaluation eval evaluate validation validate val_loop run_eval",
}
STAGE_OF: Dict[str, str] = {name: stage for stage, names in NAMES.items() for name in names.split()}
_PLAIN = str.maketrans(" -./", "____")
_MOST_KNOWN = 1000  # names that carry a number ("step 17") must not fill the memory
_known: Dict[str, Optional[str]] = dict(STAGE_OF)


def stage_of(name: str) -> Optional[str]:
    """The stage, or None."""
    try:
        return _known[name]
    except KeyError:
        stage = STAGE_OF.get(name.strip().lower().translate(_PLAIN))
        if len(_known) < _MOST_KNOWN:
            _known[name] = stage
        return stage
