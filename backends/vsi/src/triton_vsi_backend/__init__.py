"""A Triton backend for VeriSilicon's GPGPUs and NPUs.

Triton finds it by its entry point, and torch finds the registration for torch.compile in the same way. Releases without
entry points, such as Triton before 3.3, need an import of this package. The import is cheap: it imports neither.
"""

from __future__ import annotations

from foundry_core.triton_hooks import import_order

from . import inductor, registration

import_order.install(__name__, "compiler", "driver")
registration.register()
inductor.register_on_import()
