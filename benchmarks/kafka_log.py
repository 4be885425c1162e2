"""How fast Kafka's log directories are read and imported, on one core, in MB of uncompressed log.

Scan and read are the two passes; import is all that a task does: scan, read, and write Parquet.

    python -m benchmarks.kafka_log

The first line pays for what is loaded on first use. Batches of one record are the worst case: what a batch costs is
then not shared, and is more than what its record costs.
"""

from __future__ import annotations

import random
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from keptlog.engine.attempt import Attempt
from keptlog.engine.ingest_tasks import IngestTask
from keptlog.log.record import Record
from keptlog.log.topic_partition import TopicPartition
from keptlog.sources.kafka_log.reader import read_segment
from keptlog.sources.kafka_log.segments import segments_to_read
from keptlog.sources.kafka_log.tasks import LogPart
from keptlog.sources.kafka_log.transactions import scan_log
from tests.local_log import LocalFiles
from tests.sources.kafka_log.encoder import CODECS, BatchOptions, batch, write_segment

LOG_BYTES = 50_000_000


def main() -> None:
    dice = random.Random(1)
    pa.set_cpu_count(1)
    print(
        f"{'codec':8} {'bytes':>6} {'batch':>6} {'headers':>8} {'scan MB/s':>10} {'read MB/s':>10} {'import MB/s':>11}"
    )
    for codec in CODECS:
        measure(dice, codec, value_bytes=180, batch_records=80)
    measure(dice, "none", value_bytes=180, batch_records=80, headers=2)
    for value_bytes, batch_records in ((80, 160), (1000, 16), (1000, 1), (180, 1)):
        measure(dice, "none", value_bytes, batch_records)


def measure(dice: random.Random, codec: str, value_bytes: int, batch_records: int, headers: int = 0) -> None:
    # Words as JSON would hold them, so that codecs have something to do.
    words = [b"name", b"street", b"city", *(b"%06d" % dice.randrange(10**6) for _ in range(50))]

    def value() -> bytes:
        return b" ".join(dice.choices(words, k=value_bytes // 6))[:value_bytes]

    some = (("source", b"crm"),) * headers
    records = [
        Record(n, b"key-%08d" % dice.randrange(10**8), value(), 10**12 + n, headers=some) for n in range(batch_records)
    ]
    plain_bytes = len(batch(records))
    encoded = batch(records, BatchOptions(codec=codec))
    batches = LOG_BYTES // plain_bytes

    def moved() -> Iterator[bytes]:
        # No checksum covers the base offset.
        return (struct.pack(">q", number * batch_records) + encoded[8:] for number in range(batches))

    with tempfile.TemporaryDirectory() as folder:
        write_segment(Path(folder), 0, moved())
        segments = segments_to_read(Path(folder))
        started = time.process_time()
        scan = scan_log(segments)
        scanned = time.process_time()
        count = sum(table.num_rows for table in read_segment(segments[0], 0, scan))
        ended = time.process_time()
        part = LogPart(TopicPartition("t", 0), tuple(segments), scan.between(0, count), 0, count, skip_corrupt=False)
        written = IngestTask(part, f"{folder}/here", 2**30).run(Attempt(LocalFiles(), "run", 0, "0"))
        imported = time.process_time()
    assert count == batches * batch_records == sum(segment["record_count"] for segment in written["segments"])
    megabytes = batches * plain_bytes / 1e6
    rates = f"{megabytes / (scanned - started):10.0f} {megabytes / (ended - scanned):10.0f}"
    rates += f" {megabytes / (scanned - started + imported - ended):7.0f}"
    print(f"{codec:8} {value_bytes:6} {batch_records:6} {headers:8} {rates}")


if __name__ == "__main__":
    main()
