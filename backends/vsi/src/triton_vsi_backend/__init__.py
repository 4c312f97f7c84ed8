"""A Triton backend for VeriSilicon's GPGPUs and NPUs.

Triton finds it by its entry point, as torch finds what torch.compile needs of it. Importing it does the same where they
do not, as Triton before 3.3: it costs nothing, and imports neither.
"""

from __future__ import annotations

from . import inductor, registration

registration.register()
inductor.arrange()
