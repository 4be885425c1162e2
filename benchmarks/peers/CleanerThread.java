import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * One thread of Apache Kafka's log cleaner, with a broker's defaults and without its throttle. Reads commands on stdin,
 * one a line with tabs between its words, and answers each with a line.
 *
 * <pre>
 * append  file, log folder, none|zstd                               a log from columns, see kafka_cleaner.py
 * open    log folder, now in ms, delete.retention.ms
 * clean   first dirty offset                                        to the end of the log that is open, and closes it
 * </pre>
 */
public final class CleanerThread {
    private static final int BATCH_BYTES = 16_384;
    private static final int SEGMENT_BYTES = 1 << 30;
    private static final int DEDUPE_BUFFER_BYTES = 128 << 20;
    private static final int IO_BUFFER_BYTES = 512 << 10;
    private static final int MAX_MESSAGE_BYTES = 1_048_588;
    private static final double LOAD_FACTOR = 0.9;
    private static final float ZSTD_RATIO = 0.45f;

    private final ManualTime time = new ManualTime(0);
    private final LogDirFailureChannel failures = new LogDirFailureChannel(1);
    private UnifiedLog log;

    private CleanerThread() {
    }

    public static void main(String[] arguments) throws Exception {
        CleanerThread thread = new CleanerThread();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t");
            switch (words[0]) {
                case "append" -> thread.append(Path.of(words[1]), Path.of(words[2]), words[3].equals("zstd"));
                case "open" -> thread.open(Path.of(words[1]), Long.parseLong(words[2]), words[3]);
                case "clean" -> thread.clean(Long.parseLong(words[1]));
                default -> throw new IllegalArgumentException(line);
            }
            System.out.println("done");
        }
    }

    private void open(Path folder, long nowMs, String deleteRetentionMs) throws IOException {
        time.set(nowMs);
        LogConfig config = new LogConfig(Map.of(
            "cleanup.policy", "compact",
            "segment.bytes", String.valueOf(SEGMENT_BYTES),
            "delete.retention.ms", deleteRetentionMs));
        log = UnifiedLog.create(folder.toFile(), config, 0, 0, new ManualTime.ImmediateScheduler(),
            new BrokerTopicStats(), time, 900_000, new ProducerStateManagerConfig(86_400_000, false), 600_000, failures,
            true, Optional.empty());
    }

    private void clean(long firstDirtyOffset) throws Exception {
        Throttler throttler = new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", time);
        Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(DEDUPE_BUFFER_BYTES), IO_BUFFER_BYTES / 2,
            MAX_MESSAGE_BYTES, LOAD_FACTOR, throttler, time, aborted -> { });
        long end = log.activeSegment().baseOffset();
        long cleaned = cleaner.clean(new LogToClean(log, firstDirtyOffset, end, false)).getKey();
        if (cleaned != end) {
            throw new IllegalStateException("the offset map is full at " + cleaned);
        }
        close();
    }

    /** The indexes get their real size, without which the log could not be opened again. */
    private void close() throws IOException {
        for (LogSegment segment : log.logSegments()) {
            segment.close();
        }
    }

    private void append(Path columns, Path folder, boolean isZstd) throws IOException {
        open(folder, 0, "86400000");
        Compression compression = isZstd ? Compression.zstd().level(1).build() : Compression.NONE;
        MemoryRecordsBuilder batch = null;
        try (DataInputStream tables = new DataInputStream(new BufferedInputStream(Files.newInputStream(columns)))) {
            while (true) {
                byte[] bytes = new byte[tables.readInt()];
                if (bytes.length == 0) {
                    break;
                }
                tables.readFully(bytes);
                Table table = new Table(ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN));
                for (int row = 0; row < table.rows; row++) {
                    table.read(row);
                    if (batch != null && !batch.hasRoomFor(table.timestamp, table.key, table.value, table.headers)) {
                        log.appendAsFollower(batch.build(), 0);
                        batch = null;
                    }
                    if (batch == null) {
                        batch = MemoryRecords.builder(ByteBuffer.allocate(BATCH_BYTES), RecordBatch.CURRENT_MAGIC_VALUE,
                            compression, TimestampType.CREATE_TIME, table.offset, RecordBatch.NO_TIMESTAMP, 0);
                        batch.setEstimatedCompressionRatio(isZstd ? ZSTD_RATIO : 1.0f);
                    }
                    batch.appendWithOffset(table.offset, table.timestamp, table.key, table.value, table.headers);
                }
            }
        }
        log.appendAsFollower(batch.build(), 0);
        log.updateHighWatermark(log.logEndOffset());
        log.roll();
        close();
    }

    /** The records of one table, read one after the other; kafka_cleaner.py has written them. */
    private static final class Table {
        private final ByteBuffer bytes;
        private final int rows;
        private final int[] starts = new int[8];
        private final int[] places = new int[8];
        private long offset;
        private long timestamp;
        private byte[] key;
        private byte[] value;
        private Header[] headers;

        /** Blocks: each has its length in bytes before it. */
        private Table(ByteBuffer bytes) {
            this.bytes = bytes;
            int position = 0;
            for (int block = 0; block < starts.length; block++) {
                starts[block] = position + Integer.BYTES;
                position = starts[block] + bytes.getInt(position);
            }
            rows = (starts[1] - Integer.BYTES - starts[0]) / Long.BYTES;
        }

        private void read(int row) {
            offset = bytes.getLong(starts[0] + row * Long.BYTES);
            timestamp = bytes.getLong(starts[1] + row * Long.BYTES);
            key = next(2, row);
            value = next(4, row);
            headers = new Header[bytes.getInt(starts[6] + row * Integer.BYTES)];
            for (int index = 0; index < headers.length; index++) {
                int nameLength = bytes.getInt(starts[7] + places[7]);
                places[7] += Integer.BYTES;
                byte[] name = slice(7, nameLength);
                int valueLength = bytes.getInt(starts[7] + places[7]);
                places[7] += Integer.BYTES;
                headers[index] = new RecordHeader(new String(name, StandardCharsets.UTF_8), slice(7, valueLength));
            }
        }

        private byte[] next(int block, int row) {
            int length = bytes.getInt(starts[block] + row * Integer.BYTES);
            return length < 0 ? null : slice(block + 1, length);
        }

        private byte[] slice(int block, int length) {
            byte[] found = new byte[length];
            bytes.get(starts[block] + places[block], found);
            places[block] += length;
            return found;
        }
    }
}
