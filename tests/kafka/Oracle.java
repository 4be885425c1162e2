import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/**
 * What Apache Kafka itself does with a log: reads scripts on stdin, runs them through Kafka's own classes, and writes
 * the states that it saw on stdout. One script and one answer are one line of JSON each:
 *
 * <pre>
 * {"operations": [{"op": "create", "config": {...}, "now_ms": 1}, {"op": "append", ...}, {"op": "clean", ...}]}
 * {"states": [{...}, {...}]}            a state for each operation with "observe": true
 * {"error": "operation 3, append: ..."} Kafka refused, or the script makes no sense
 * </pre>
 *
 * {@link ScriptedLog} says what an operation does. One process runs any number of scripts, each on a log of its own in
 * a folder that goes with it.
 */
public final class Oracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Oracle() {
    }

    public static void main(String[] arguments) throws IOException {
        Path folder = Path.of(arguments[0]);
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader scripts = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = scripts.readLine(); line != null; line = scripts.readLine()) {
            answers.println(JSON.writeValueAsString(run(JSON.readTree(line).get("operations"), folder)));
            answers.flush();
        }
    }

    private static ObjectNode run(JsonNode operations, Path folder) throws IOException {
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode states = answer.putArray("states");
        Path home = Files.createTempDirectory(folder, "log");
        int index = 0;
        try (ScriptedLog log = new ScriptedLog(home, operations.get(0))) {
            for (; index < operations.size(); index++) {
                JsonNode operation = operations.get(index);
                ObjectNode outcome = index == 0 ? JSON.createObjectNode() : log.apply(operation);
                if (operation.path("observe").asBoolean()) {
                    states.add(outcome.setAll(log.observe()));
                }
            }
        } catch (Exception error) {
            String name = operations.path(index).path("op").asText("close");
            return JSON.createObjectNode().put("error", "operation " + index + ", " + name + ": " + error);
        } finally {
            delete(home);
        }
        return answer;
    }

    private static void delete(Path folder) throws IOException {
        try (Stream<Path> found = Files.walk(folder)) {
            List<Path> children = found.sorted(Comparator.reverseOrder()).toList();
            for (Path path : children) {
                Files.deleteIfExists(path);
            }
        }
    }
}
