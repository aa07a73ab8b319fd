// Reads lines "LeaderAndIsr VERSION BODY-IN-HEX"; writes the message as Kafka's own classes read it, as JSON, and
// then, in hex, the bytes that they make of that JSON.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.HexFormat;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

public class Convert {
    public static void main(String[] words) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ", -1);
            short version = Short.parseShort(parts[1]);
            String name = "org.apache.kafka.common.message." + parts[0] + "RequestData";
            Class<?> data = Class.forName(name);
            ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(parts[2]));
            Message read = (Message) data.getConstructor().newInstance();
            read.read(new ByteBufferAccessor(bytes), version);
            if (bytes.hasRemaining()) throw new IllegalStateException(bytes.remaining() + " bytes are left of " + line);
            Class<?> converter = Class.forName(name + "JsonConverter");
            JsonNode json = (JsonNode) converter.getMethod("write", data, short.class).invoke(null, read, version);
            Method back = converter.getMethod("read", JsonNode.class, short.class);
            Message again = (Message) back.invoke(null, json, version);
            ByteBuffer written = MessageUtil.toByteBuffer(again, version);
            byte[] body = new byte[written.remaining()];
            written.get(body);
            System.out.println(json);
            System.out.println(HexFormat.of().formatHex(body));
        }
    }
}
