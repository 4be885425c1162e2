"""The fields of a record that a row can hold, under the names by which columns are given for them."""

from __future__ import annotations

ROW_FIELDS = ("key", "value", "timestamp", "headers", "partition", "offset")
