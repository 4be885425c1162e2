import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.TimestampType;

/** Writes logs in message formats v0 and v1 with Kafka's own classes, and beside them the records as it reads them. */
public final class LegacyLogs {
    private static final long FIRST_MS = 1_500_000_000_000L;

    public static void main(String[] args) throws Exception {
        for (byte magic : new byte[] {RecordBatch.MAGIC_VALUE_V0, RecordBatch.MAGIC_VALUE_V1}) {
            for (CompressionType type : List.of(
                    CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4)) {
                write(Path.of(args[0], "v" + magic + "." + type.name + "-0"), magic, type);
            }
        }
    }

    private static void write(Path folder, byte magic, CompressionType type) throws Exception {
        Files.createDirectories(folder);
        ByteBuffer all = ByteBuffer.allocate(1 << 20);
        long offset = 0;
        for (int batch = 0; batch < 4; batch++) {
            boolean isAppendTime = magic > 0 && batch == 3;
            MemoryRecordsBuilder builder = MemoryRecords.builder(
                    ByteBuffer.allocate(1 << 16),
                    magic,
                    Compression.of(type).build(),
                    isAppendTime ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME,
                    offset,
                    FIRST_MS + 999_999);
            for (int number = 0; number < 5; number++) {
                // The third batch has gaps, as a clean leaves them.
                offset += batch == 2 ? 3 : 1;
                byte[] key = number == 4 ? null : ("key-" + number).getBytes();
                byte[] value = number == 3 ? null : number == 2 ? new byte[0] : ("value " + offset + " ").repeat(9).getBytes();
                builder.appendWithOffset(offset, FIRST_MS + offset * 1000, key, value);
            }
            all.put(builder.build().buffer());
        }
        all.flip();
        try (FileOutputStream log = new FileOutputStream(folder.resolve("00000000000000000000.log").toFile())) {
            log.getChannel().write(all.duplicate());
        }
        try (PrintStream expected = new PrintStream(folder.resolveSibling(folder.getFileName() + ".jsonl").toFile())) {
            for (RecordBatch batch : MemoryRecords.readableRecords(all).batches()) {
                int kind = batch.timestampType() == TimestampType.LOG_APPEND_TIME ? 1 : 0;
                batch.forEach(record -> expected.printf(
                        "[%d, %d, %d, %s, %s, []]%n", record.offset(), record.timestamp(), kind,
                        encoded(record.key()), encoded(record.value())));
            }
        }
    }

    private static String encoded(ByteBuffer buffer) {
        if (buffer == null) {
            return "null";
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return '"' + Base64.getEncoder().encodeToString(bytes) + '"';
    }
}
