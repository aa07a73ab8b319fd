import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Writes the same records whenever it is asked to: the number of a record decides its key, value and timestamp.
 *
 * <p>Arguments: bootstrap servers, topic, partitions, records of each partition, bytes of a value, timestamp of the
 * first record in ms since 1970, and, for a copy that was tampered with, the number of the record where that is. Then
 * partition 0 misses this record, partition 1 has it twice, partition 2 has another value in it, and partition 3 has
 * it behind the next one.
 */
public final class Records {
    private static final int NOBODY = -1;

    public static void main(String[] args) throws Exception {
        var topic = args[1];
        int partitions = Integer.parseInt(args[2]);
        int count = Integer.parseInt(args[3]);
        int bytes = Integer.parseInt(args[4]);
        long startMs = Long.parseLong(args[5]);
        int fault = args.length > 6 ? Integer.parseInt(args[6]) : NOBODY;
        Map<String, Object> settings =
                Map.of("bootstrap.servers", args[0], "acks", "all", "linger.ms", 20, "batch.size", 200_000);
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int number = 0; number < count; number++) {
                for (int partition = 0; partition < partitions; partition++) {
                    for (int chosen : chosen(partition, number, fault)) {
                        boolean altered = partition == 2 && number == fault;
                        var key = Integer.toString(chosen).getBytes(StandardCharsets.US_ASCII);
                        producer.send(new ProducerRecord<>(
                                topic, partition, startMs + chosen, key, value(key, bytes, altered)));
                    }
                }
            }
        }
    }

    private static int[] chosen(int partition, int number, int fault) {
        if (fault == NOBODY || number < fault || number > fault + 1) {
            return new int[] {number};
        }
        boolean here = number == fault;
        return switch (partition) {
            case 0 -> here ? new int[] {} : new int[] {number};
            case 1 -> here ? new int[] {number, number} : new int[] {number};
            case 3 -> new int[] {here ? number + 1 : number - 1};
            default -> new int[] {number};
        };
    }

    private static byte[] value(byte[] key, int bytes, boolean altered) {
        var value = Arrays.copyOf(key, bytes);
        value[bytes - 1] = (byte) (altered ? 1 : 0);
        return value;
    }
}
