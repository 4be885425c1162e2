import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.PreCleanStats;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * One log of one script. Times are ms, sizes bytes; of keys and values each character is one byte (ISO 8859-1).
 *
 * <pre>
 * create          config, now_ms                        first of every script
 * append          records: [{key, value, timestamp, headers?}], one batch; producer? makes it part of a transaction,
 *                 with idempotent? only of that producer's sequence
 *                 base_offset?, last_offset? and the records' offset: as a follower gets it from a leader that has
 *                 cleaned its log, with gaps before, between and behind the records, and with records without a key;
 *                 a record with batch_base begins another batch there, the one before ends at its previous_last
 *                 segment_base? closes an active segment that has something; the next one begins there
 * end_transaction producer, commit
 * roll                                                  close the active segment
 * clock           now_ms
 * clean           max_keys?, range?: [first dirty, end] without a range Kafka decides whether and what; says "cleaned"
 * retain                                                retention; says how many segments were "deleted"
 * delete_records  offset                                moves the log start offset
 * alter           config                                these settings change, the others stay
 * checkpoint      offset                                as if a clean had ended there
 * </pre>
 *
 * The high watermark is the log end offset after whatever appends, unless that says "high_watermark": false.
 */
final class ScriptedLog implements AutoCloseable {
    private static final double LOAD_FACTOR = 0.9;
    private static final int BYTES_OF_A_SLOT = 24;
    private static final int KEYS_FOR_ALL = 10_000;
    private static final int BUFFER_BYTES = 1 << 16;
    private static final short EPOCH = 0;
    private static final int LEADER_EPOCH = 0;
    private static final short TRANSACTION_VERSION = 1;

    /**
     * Indexes are created at full size; a small one costs less, and no script fills it. The offset index has no entry,
     * since a pass that begins at one of them may miss the end of a transaction (test_transactions.py).
     */
    private static final Map<String, String> DEFAULTS = Map.of(
        "segment.index.bytes", "65536",
        "index.interval.bytes", String.valueOf(Integer.MAX_VALUE),
        "message.timestamp.after.max.ms", String.valueOf(Long.MAX_VALUE));

    private final ManualTime time;
    private final Map<String, String> settings = new HashMap<>(DEFAULTS);
    private final Map<Long, Integer> nextSequence = new HashMap<>();
    private final UnifiedLog log;
    private final LogCleanerManager manager;
    private final Throttler throttler;

    ScriptedLog(Path home, JsonNode create) throws IOException {
        time = new ManualTime(create.get("now_ms").asLong());
        LogDirFailureChannel failures = new LogDirFailureChannel(1);
        log = UnifiedLog.create(new File(home.toFile(), "t-0"), config(create), 0, 0,
            new ManualTime.ImmediateScheduler(), new BrokerTopicStats(), time, 900_000,
            new ProducerStateManagerConfig(86_400_000, false), 600_000, failures, true, Optional.empty());
        ConcurrentMap<TopicPartition, UnifiedLog> logs = new ConcurrentHashMap<>(Map.of(log.topicPartition(), log));
        manager = new LogCleanerManager(List.of(home.toFile()), logs, failures);
        throttler = new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", time);
        touch();
    }

    ObjectNode apply(JsonNode operation) throws Exception {
        ObjectNode outcome = JsonNodeFactory.instance.objectNode();
        switch (operation.get("op").asText()) {
            case "append" -> append(operation);
            case "end_transaction" -> endTransaction(operation);
            case "roll" -> log.roll();
            case "clock" -> time.set(operation.get("now_ms").asLong());
            case "clean" -> outcome.put("cleaned", clean(operation));
            case "retain" -> outcome.put("deleted", log.deleteOldSegments());
            case "delete_records" -> log.maybeIncrementLogStartOffset(operation.get("offset").asLong(),
                LogStartOffsetIncrementReason.ClientRecordDeletion);
            case "alter" -> log.updateConfig(config(operation));
            case "checkpoint" -> checkpoint(operation.get("offset").asLong());
            default -> throw new IllegalArgumentException("no such operation");
        }
        touch();
        return outcome;
    }

    ObjectNode observe() throws Exception {
        Optional<Long> checkpoint = Optional.ofNullable(manager.allCleanerCheckpoints().get(log.topicPartition()));
        return new Observation(log, checkpoint, time.milliseconds()).toJson();
    }

    /** A file's modification time stands in where a segment has no timestamp; here it is the script's clock. */
    private void touch() throws IOException {
        LogSegment active = log.activeSegment();
        if (!active.log().file().setLastModified(time.milliseconds())) {
            throw new IOException("can't set the time of " + active.log().file());
        }
    }

    private LogConfig config(JsonNode operation) {
        operation.path("config").properties().forEach(each -> settings.put(each.getKey(), each.getValue().asText()));
        return new LogConfig(settings);
    }

    private void append(JsonNode operation) throws IOException {
        if (operation.has("base_offset")) {
            replicate(operation);
        } else {
            produce(operation);
        }
        moveHighWatermark(operation);
    }

    private void moveHighWatermark(JsonNode operation) throws IOException {
        if (operation.path("high_watermark").asBoolean(true)) {
            log.updateHighWatermark(log.logEndOffset());
        }
    }

    private void replicate(JsonNode operation) throws IOException {
        if (operation.has("segment_base") && log.activeSegment().size() > 0) {
            log.roll(Optional.of(operation.get("segment_base").asLong()));
        }
        ByteArrayOutputStream batches = new ByteArrayOutputStream();
        List<JsonNode> records = new ArrayList<>();
        long base = operation.get("base_offset").asLong();
        for (JsonNode record : operation.get("records")) {
            if (record.has("batch_base") && !records.isEmpty()) {
                write(batches, operation, records, base, record.get("previous_last").asLong());
                records.clear();
                base = record.get("batch_base").asLong();
            }
            records.add(record);
        }
        write(batches, operation, records, base, operation.get("last_offset").asLong());
        log.appendAsFollower(MemoryRecords.readableRecords(ByteBuffer.wrap(batches.toByteArray())), LEADER_EPOCH);
    }

    /** One batch as it comes from a leader, behind those that come with it. */
    private void write(ByteArrayOutputStream batches, JsonNode operation, List<JsonNode> records, long base, long last) {
        boolean hasProducer = operation.has("producer");
        long producer = operation.path("producer").asLong(RecordBatch.NO_PRODUCER_ID);
        int sequence = hasProducer ? sequence(producer, (int) (last - base + 1)) : RecordBatch.NO_SEQUENCE;
        short epoch = hasProducer ? EPOCH : RecordBatch.NO_PRODUCER_EPOCH;
        try (MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(BUFFER_BYTES),
            RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE, TimestampType.CREATE_TIME, base, time.milliseconds(),
            producer, epoch, sequence, hasProducer && !isIdempotent(operation), LEADER_EPOCH)) {
            for (JsonNode record : records) {
                builder.appendWithOffset(record.get("offset").asLong(), record(record));
            }
            builder.overrideLastOffset(last);
            ByteBuffer written = builder.build().buffer();
            batches.write(written.array(), written.arrayOffset() + written.position(), written.remaining());
        }
    }

    private int sequence(long producer, int count) {
        return nextSequence.merge(producer, count, Integer::sum) - count;
    }

    private static boolean isIdempotent(JsonNode operation) {
        return operation.path("idempotent").asBoolean();
    }

    private void produce(JsonNode operation) throws IOException {
        JsonNode records = operation.get("records");
        SimpleRecord[] batch = new SimpleRecord[records.size()];
        for (int index = 0; index < batch.length; index++) {
            batch[index] = record(records.get(index));
        }
        log.appendAsLeader(asProduced(operation, batch), 0);
    }

    private MemoryRecords asProduced(JsonNode operation, SimpleRecord[] batch) {
        if (!operation.has("producer")) {
            return MemoryRecords.withRecords(Compression.NONE, batch);
        }
        long producer = operation.get("producer").asLong();
        int sequence = sequence(producer, batch.length);
        return isIdempotent(operation)
            ? MemoryRecords.withIdempotentRecords(Compression.NONE, producer, EPOCH, sequence, batch)
            : MemoryRecords.withTransactionalRecords(Compression.NONE, producer, EPOCH, sequence, batch);
    }

    private static SimpleRecord record(JsonNode record) {
        JsonNode named = record.path("headers");
        Header[] headers = new Header[named.size()];
        for (int index = 0; index < headers.length; index++) {
            headers[index] = new RecordHeader(named.get(index).get(0).asText(), bytes(named.get(index).get(1)));
        }
        return new SimpleRecord(record.get("timestamp").asLong(), bytes(record.get("key")), bytes(record.get("value")), headers);
    }

    private static byte[] bytes(JsonNode text) {
        return text == null || text.isNull() ? null : text.asText().getBytes(StandardCharsets.ISO_8859_1);
    }

    private void endTransaction(JsonNode operation) throws IOException {
        ControlRecordType type = operation.get("commit").asBoolean() ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        MemoryRecords marker = MemoryRecords.withEndTransactionMarker(time.milliseconds(),
            operation.get("producer").asLong(), EPOCH, new EndTransactionMarker(type, 0));
        log.appendAsLeader(marker, 0, AppendOrigin.COORDINATOR, RequestLocal.noCaching(), VerificationGuard.SENTINEL,
            TRANSACTION_VERSION);
        moveHighWatermark(operation);
    }

    private boolean clean(JsonNode operation) throws Exception {
        JsonNode range = operation.path("range");
        Optional<LogToClean> chosen = range.isArray()
            ? Optional.of(new LogToClean(log, range.get(0).asLong(), range.get(1).asLong(), false))
            : manager.grabFilthiestCompactedLog(time, new PreCleanStats());
        if (chosen.isEmpty()) {
            return false;
        }
        SkimpyOffsetMap map = offsetMap(operation.path("max_keys").asInt(KEYS_FOR_ALL));
        Cleaner cleaner = new Cleaner(0, map, BUFFER_BYTES, BUFFER_BYTES, LOAD_FACTOR, throttler, time, aborted -> { });
        long end = cleaner.clean(chosen.get()).getKey();
        if (range.isArray()) {
            checkpoint(end);
        } else {
            manager.doneCleaning(log.topicPartition(), log.parentDirFile(), end);
        }
        return true;
    }

    private static SkimpyOffsetMap offsetMap(int maxKeys) throws Exception {
        int slots = maxKeys;
        while ((int) (slots * LOAD_FACTOR) < maxKeys) {
            slots++;
        }
        return new SkimpyOffsetMap(slots * BYTES_OF_A_SLOT);
    }

    private void checkpoint(long offset) {
        manager.updateCheckpoints(log.parentDirFile(), Optional.of(Map.entry(log.topicPartition(), offset)), Optional.empty());
    }

    @Override
    public void close() {
        manager.removeMetrics();
        log.closeHandlers();
    }
}
