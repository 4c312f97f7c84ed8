import pytest

pytest.skip("needs CUDA", allow_module_level=True)
