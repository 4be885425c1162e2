import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/**
 * A log as it stands, and as Kafka would choose to clean it now. Looking changes nothing, not even a checkpoint that is
 * due to be reset.
 */
record Observation(UnifiedLog log, Optional<Long> checkpoint, long nowMs) {
    private static final Method CLEANABLE_OFFSETS =
        hidden(LogCleanerManager.class, "cleanableOffsets", UnifiedLog.class, Optional.class, long.class);
    private static final Method MAX_COMPACTION_DELAY =
        hidden(LogCleanerManager.class, "maxCompactionDelay", UnifiedLog.class, long.class, long.class);

    /** Kafka shows what it chose only when it chose something; the same methods tell it at any time. */
    private static Method hidden(Class<?> owner, String name, Class<?>... parameters) {
        try {
            Method method = owner.getDeclaredMethod(name, parameters);
            method.setAccessible(true);
            return method;
        } catch (NoSuchMethodException error) {
            throw new IllegalStateException("another version of Kafka than this program was written for", error);
        }
    }

    ObjectNode toJson() throws Exception {
        ObjectNode state = JsonNodeFactory.instance.objectNode();
        state.put("log_start_offset", log.logStartOffset());
        state.put("log_end_offset", log.logEndOffset());
        state.put("last_stable_offset", log.lastStableOffset());
        state.put("active_base_offset", log.activeSegment().baseOffset());
        state.put("checkpoint", checkpoint.orElse(null));
        addSelection(state);
        ArrayNode segments = state.putArray("segments");
        ArrayNode records = state.putArray("records");
        for (LogSegment segment : log.logSegments()) {
            segments.addArray().add(segment.baseOffset()).add(segment.size()).add(segment.largestTimestamp());
            for (RecordBatch batch : segment.log().batches()) {
                if (!batch.isControlBatch()) {
                    addRecords(records, batch);
                }
            }
        }
        return state;
    }

    private void addSelection(ObjectNode state) throws Exception {
        Object offsets = CLEANABLE_OFFSETS.invoke(null, log, checkpoint, nowMs);
        long firstDirty = (long) hidden(offsets.getClass(), "firstDirtyOffset").invoke(offsets);
        long firstUncleanable = (long) hidden(offsets.getClass(), "firstUncleanableDirtyOffset").invoke(offsets);
        LogToClean chosen = new LogToClean(log, firstDirty, firstUncleanable, false);
        state.put("first_dirty_offset", firstDirty);
        state.put("first_uncleanable_dirty_offset", firstUncleanable);
        // Rounded down to a segment it may lie below the first dirty offset. Nothing is cleanable then, all the same.
        state.put("first_uncleanable_offset", Math.max(firstDirty, chosen.firstUncleanableOffset()));
        state.put("cleanable_ratio", chosen.totalBytes() == 0 ? 0 : chosen.cleanableRatio());
        state.put("max_compaction_delay_ms", (long) MAX_COMPACTION_DELAY.invoke(null, log, firstDirty, nowMs));
    }

    /** As arrays, for there are many: offset, key, value, timestamp, headers, delete horizon of a tombstone. */
    private static void addRecords(ArrayNode records, RecordBatch batch) {
        OptionalLong horizon = batch.deleteHorizonMs();
        for (Record record : batch) {
            ArrayNode row = records.addArray();
            row.add(record.offset()).add(text(record.key())).add(text(record.value())).add(record.timestamp());
            ArrayNode headers = row.addArray();
            for (Header header : record.headers()) {
                byte[] value = header.value();
                headers.addArray().add(header.key()).add(value == null ? null : text(ByteBuffer.wrap(value)));
            }
            row.add(horizon.isPresent() && !record.hasValue() ? (Long) horizon.getAsLong() : null);
        }
    }

    private static String text(ByteBuffer bytes) {
        return bytes == null ? null : StandardCharsets.ISO_8859_1.decode(bytes).toString();
    }
}
