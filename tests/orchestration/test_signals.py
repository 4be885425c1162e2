"""Who ends the tests while a run is under way is told that they ended, not that a test has failed."""

import os
import signal

import dagster as dg
import pytest

from tests.orchestration.conftest import World


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_run_ends_the_test_that_started_it(world: World, sent: signal.Signals) -> None:
    @dg.op
    def stopped() -> None:
        os.kill(os.getpid(), sent)

    @dg.job(executor_def=dg.in_process_executor)
    def waits() -> None:
        stopped()

    with pytest.raises(KeyboardInterrupt):
        waits.execute_in_process(instance=world.instance, raise_on_error=False)
