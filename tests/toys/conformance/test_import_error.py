import no_such_module


def test_never_runs():
    no_such_module.call()
