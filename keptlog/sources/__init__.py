"""What brings records in, in its own order: as ``NewRecord``, or as tables where they keep their offsets.

    files.py             files of several formats, one after the other as if they were one
    folder_files.py      the files that a folder means, in the order in which they were written
    formats.py           what a file holds, and how its name tells it
    line_files.py        the lines of a file that holds text, whatever it was packed in
    json_lines.py        records as JSON lines, in and out
    other_lines.py       what a line may be that is no such record
    exact_json.py        JSON whose numbers stay as they were written
    debezium.py          records from change events
    change_tables.py     of which table a change event is
    unavailable.py       values that a change event does not have
    parquet.py           records from Parquet: a row is a record
    parquet_columns.py   columns of many types as the fields of records
    row_fields.py        the fields that a row can hold, by name
    place.py             where the reading of files is, for messages

Brokers and their log directories have a folder each. A source knows nothing of the table.
"""
