"""How often tests look for garbage."""

import gc


def look_less_for_garbage() -> None:
    """
    Look less often for garbage, and never in what there is already.

    IR has many cycles, and the modules of torch and Triton many objects: processes that
    interpret kernels save a fifth of their time, others a tenth.
    """
    gc.freeze()
    gc.set_threshold(1_000_000, 20, 100)
