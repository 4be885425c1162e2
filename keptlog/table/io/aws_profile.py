"""The endpoint of S3 that AWS's configuration file names for a profile: boto3 goes there by itself, Arrow does not.

    [profile lake]                        [services here]
    services = here                       s3 =
    endpoint_url = http://…                 endpoint_url = http://…       goes before that of all services

Most files name none, so it is looked for that word before botocore is imported.
"""

from __future__ import annotations

import os
from pathlib import Path

_WORD = "endpoint_url"


def endpoint_of_profile() -> str | None:
    """Null where none is named or is to be used, and where the file is none: boto3 tells what is wrong with it."""
    try:
        if _WORD not in Path(os.environ.get("AWS_CONFIG_FILE", "~/.aws/config")).expanduser().read_text():
            return None
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415  # boto3 is an extra
        from botocore.session import Session  # noqa: PLC0415  # as above
    except (OSError, ValueError, RuntimeError, ModuleNotFoundError):
        return None
    try:
        session = Session()
        if session.get_config_variable("ignore_configured_endpoint_urls"):
            return None
        profile = session.get_scoped_config()
        of_s3 = session.full_config.get("services", {}).get(profile.get("services"), {}).get("s3", {})
        named = of_s3.get(_WORD) or profile.get(_WORD)
    except (BotoCoreError, AttributeError):
        return None
    return str(named) if named else None
