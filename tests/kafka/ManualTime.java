import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;

/** A clock that stands still until a script sets it, and a scheduler that goes by it. */
final class ManualTime implements Time {
    private long nowMs;

    ManualTime(long nowMs) {
        this.nowMs = nowMs;
    }

    void set(long nowMs) {
        this.nowMs = nowMs;
    }

    @Override
    public long milliseconds() {
        return nowMs;
    }

    @Override
    public long nanoseconds() {
        return TimeUnit.MILLISECONDS.toNanos(nowMs);
    }

    @Override
    public void sleep(long ms) {
        nowMs += ms;
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
        throw new UnsupportedOperationException("a script runs in one thread: nobody could wake it");
    }

    /** Runs what is to be done once at once: files are deleted without delay. Nothing periodic ever runs. */
    static final class ImmediateScheduler implements Scheduler {
        @Override
        public void startup() {
        }

        @Override
        public void shutdown() {
        }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs < 0) {
                task.run();
            }
            return null;
        }

        @Override
        public void resizeThreadPool(int size) {
        }
    }
}
