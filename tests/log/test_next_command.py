"""The commands that people are told to run next."""

from keptlog.log.words.next_command import last_argument, next_command


def test_options_end_before_a_name_that_begins_with_a_dash() -> None:
    assert next_command("clean", "-users-0") == "keptlog clean -- -users-0"
    assert next_command("topic delete", "-users", "--yes") == "keptlog topic delete --yes -- -users"


def test_any_other_name_stands_behind_its_command() -> None:
    assert next_command("topic delete", "users", "--yes") == "keptlog topic delete users --yes"
    assert next_command("purge", "") == "keptlog purge"


def test_a_name_at_the_end_of_a_command_is_no_option() -> None:
    assert (last_argument("-users-0"), last_argument("users-0")) == ("-- -users-0", "users-0")
