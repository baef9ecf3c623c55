"""Which library multiplies matrices while updates are compiled.

torch leaves float32 products to MKL, which makes no use of AVX-512 on processors of
AMD: from a certain size on oneDNN is twice as fast there. torch hands float32 products
to oneDNN only together with the permission to round to bfloat16. oneDNN makes use of
that where there is AMX; such processors are left to MKL, so that products stay float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import torch

BY_ONEDNN, BY_MKL = "bf16", "ieee"


@lru_cache
def has_fast_onednn() -> bool:
    """Returns whether oneDNN multiplies in float32, with AVX-512."""
    able = getattr(torch.cpu, "get_capabilities", dict)()
    return able.get("avx512_bw", False) and not able.get("amx_bf16", False)


@contextmanager
def multiplied_by(library: str) -> Iterator[None]:
    """Has float32 products computed by a library, where oneDNN is fast."""
    if not has_fast_onednn():
        yield
        return
    settings = torch.backends.mkldnn.matmul
    before = settings.fp32_precision
    settings.fp32_precision = library
    try:
        yield
    finally:
        settings.fp32_precision = before
