"""Client settings come from a file and the environment, and what they keep secret is never shown."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig
from keptlog.home import client_settings
from keptlog.kafka_client.settings import REFUSED, ClientSettings

PASSWORD = "correct horse"  # noqa: S105  # that is what it is about


def settings(**values: str) -> ClientSettings:
    return ClientSettings.load({name.replace("_", "."): value for name, value in values.items()}, {})


def test_the_environment_wins_over_the_file_and_an_option_over_both(tmp_path: Path) -> None:
    (tmp_path / "kafka.properties").write_text("# ours\nbootstrap.servers = a:1\nsasl.username=u\nsasl.password=x\n")
    environment = {"KEPTLOG_KAFKA_SASL_PASSWORD": PASSWORD, "KEPTLOG_KAFKA_BOOTSTRAP_SERVERS": "b:2", "HOME": "/"}
    loaded = client_settings(tmp_path, environment=environment)
    assert loaded.bootstrap == "b:2"
    given = loaded.at("c:3").for_admin()
    assert [given[name] for name in ("bootstrap.servers", "sasl.username", "sasl.password")] == ["c:3", "u", PASSWORD]
    assert loaded.at(None) is loaded


def test_another_file_takes_the_place_of_the_homes(tmp_path: Path) -> None:
    (tmp_path / "kafka.properties").write_text("bootstrap.servers=a:1\n")
    (tmp_path / "other").write_text("client.rack=r\n")
    assert client_settings(tmp_path, tmp_path / "other", {}).names == ("client.rack",)
    with pytest.raises(InvalidConfig, match="can't be read: No such file"):
        client_settings(tmp_path, tmp_path / "missing", {})


def test_a_file_that_is_named_from_where_one_stands_is_the_same_for_tasks_that_stand_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Spark server's workers stand where that was started: brokers were looked at, and nothing could be read."""
    monkeypatch.chdir(tmp_path)
    given = settings(ssl_ca_location="certs/ca.pem", ssl_key_location="/etc/key.pem", client_id="certs/ca.pem")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    values = given.at("a:1").for_admin()
    assert values["ssl.ca.location"] == f"{tmp_path}/certs/ca.pem"
    assert values["ssl.key.location"] == "/etc/key.pem"
    certificates = settings(ssl_ca_location="probe", https_ca_location="", bootstrap_servers="a:1").for_admin()
    assert (certificates["ssl.ca.location"], certificates["https.ca.location"]) == ("probe", "")


def test_a_home_without_a_file_has_no_settings_and_no_broker(tmp_path: Path) -> None:
    nothing = client_settings(tmp_path, environment={})
    assert nothing.bootstrap is None
    with pytest.raises(InvalidConfig, match="give it as bootstrap"):
        nothing.for_consumer()


def test_settings_show_names_and_no_values_wherever_they_go() -> None:
    secret = settings(sasl_password=PASSWORD, bootstrap_servers="a:1")
    for shown in (repr(secret), str(secret), f"{[secret]}"):
        assert "sasl.password" in shown
        assert PASSWORD not in shown
    there = pickle.loads(pickle.dumps(secret))  # noqa: S301  # our own
    assert there.for_consumer()["sasl.password"] == PASSWORD


def test_secrets_are_taken_out_of_texts_and_other_values_are_not() -> None:
    secret = settings(sasl_password=PASSWORD, ssl_key_password=f"{PASSWORD} battery", client_rack="rack-1")
    assert secret.hide(f"{PASSWORD} battery at rack-1, {PASSWORD}") == "[hidden] at rack-1, [hidden]"


@pytest.mark.parametrize("told", ["correct  horse", "correct horse", "correct\nhorse"])
def test_a_secret_is_taken_out_whatever_spaces_it_has_and_is_told_with(told: str) -> None:
    secret = settings(sasl_password=PASSWORD.replace(" ", "  "))
    assert secret.hide(f"not  allowed:\n{told}") == "not allowed: [hidden]"


def test_what_librdkafka_tells_of_a_setting_from_its_first_wrong_word_on_is_taken_out() -> None:
    secret = settings(sasl_oauthbearer_config="principal=a scope=planted extension_x=secret")
    assert secret.hide("Unrecognized config beginning at: scope=planted extension_x=secret") == (
        "Unrecognized config beginning at: [hidden]"
    )


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_setting_that_would_break_a_promise_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        ClientSettings.load({name: "secret"}, {}, where="conf/kafka.properties")
    assert REFUSED[name] in str(refused.value)
    assert "conf/kafka.properties" in str(refused.value)
    assert "=secret" not in str(refused.value)


def test_a_refused_setting_of_the_environment_is_named_as_it_is_there() -> None:
    with pytest.raises(InvalidConfig, match="KEPTLOG_KAFKA_GROUP_ID"):
        ClientSettings.load({}, {"KEPTLOG_KAFKA_GROUP_ID": "g"})


@pytest.mark.parametrize("name", ["error_cb", "", "SASL.PASSWORD", "log_level"])
def test_what_can_be_no_setting_is_refused(name: str) -> None:
    with pytest.raises(InvalidConfig, match="no setting of librdkafka"):
        ClientSettings.load({name: "1"}, {})


def test_a_line_that_is_no_setting_is_named_by_its_number_alone(tmp_path: Path) -> None:
    """It may be the rest of a password."""
    (tmp_path / "kafka.properties").write_text(f"bootstrap.servers=a:1\n{PASSWORD}\n")
    with pytest.raises(InvalidConfig, match="line 2 is not name=value") as refused:
        client_settings(tmp_path, environment={})
    assert PASSWORD not in str(refused.value)


def test_what_consumers_must_have_is_not_the_users_to_change() -> None:
    consumer = settings(bootstrap_servers="a:1", check_crcs="false").for_consumer()
    assert consumer["isolation.level"] == "read_committed"
    assert consumer["enable.auto.commit"] is False
    assert consumer["auto.offset.reset"] == "error"
    assert consumer["check.crcs"] == "false"
