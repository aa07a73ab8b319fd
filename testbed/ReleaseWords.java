import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;

/** Prints the names of a release's APIs and its error codes, a line each, fields separated by tabs. */
public final class ReleaseWords {

    public static void main(String[] none) {
        for (ApiKeys api : ApiKeys.values()) {
            System.out.println("api\t" + api.id + "\t" + api.name);
        }
        for (Errors error : Errors.values()) {
            boolean isError = error.exception() != null;
            String exception = isError ? error.exception().getClass().getSimpleName() : "";
            boolean retriable = error.exception() instanceof org.apache.kafka.common.errors.RetriableException;
            String text = error.message();
            System.out.println(String.join("\t", "error", "" + error.code(), error.name(), exception, "" + retriable, text));
        }
    }
}
