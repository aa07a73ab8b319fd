import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.Charset;

/**
 * Runs the main methods of Kafka's command-line tools one after the other, in one Java that has their classes loaded.
 *
 * A request on standard input is a number of words, the first of which is the name of a class, and the words, each with
 * its length; an answer is an exit code, standard output and standard error. `testbed/tool_host.py` is the other end.
 * Kafka's tools end through `Exit`, which its own tests replace in the same way.
 */
public final class ToolHost {

    /** Unwinds a tool that has asked for the end of its process. */
    private static final class Ended extends Error {
        Ended() {
            super(null, null, false, false);
        }
    }

    /** Leads to a buffer of the running tool. Scala keeps the stream that it found first, so that it cannot be replaced. */
    private static final class Switched extends OutputStream {
        private volatile OutputStream target = OutputStream.nullOutputStream();

        @Override
        public void write(int one) throws IOException {
            target.write(one);
        }

        @Override
        public void write(byte[] some, int offset, int length) throws IOException {
            target.write(some, offset, length);
        }
    }

    private static final Switched OUT = new Switched();
    private static final Switched ERR = new Switched();
    private static volatile Integer exitCode;

    public static void main(String[] none) throws Exception {
        DataInputStream requests = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream answers = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)));
        System.setIn(InputStream.nullInputStream());
        System.setOut(new PrintStream(OUT, true));
        System.setErr(new PrintStream(ERR, true));
        onExit();
        while (true) {
            String[] words;
            try {
                words = read(requests);
            } catch (EOFException end) {
                Runtime.getRuntime().halt(0);
                return;
            }
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            int code = run(words, out, err);
            answers.writeInt(code);
            write(answers, out.toByteArray());
            write(answers, err.toByteArray());
            answers.flush();
        }
    }

    /** Kafka 4.4 has its `Exit` in another package, so that no class of Kafka's is named before it is found. */
    private static void onExit() throws ReflectiveOperationException {
        Class<?> exit;
        try {
            exit = Class.forName("org.apache.kafka.common.utils.internals.Exit");
        } catch (ClassNotFoundException older) {
            exit = Class.forName("org.apache.kafka.common.utils.Exit");
        }
        Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
        Object ours = Proxy.newProxyInstance(procedure.getClassLoader(), new Class<?>[] {procedure}, (self, method, given) -> {
            if (exitCode == null) {
                exitCode = (Integer) given[0];
            }
            // A process would be gone: what a `catch` or a `finally` on the way out prints is printed no more.
            silence();
            throw new Ended();
        });
        exit.getMethod("setExitProcedure", procedure).invoke(null, ours);
    }

    private static int run(String[] words, OutputStream out, OutputStream err) {
        String[] arguments = new String[words.length - 1];
        System.arraycopy(words, 1, arguments, 0, arguments.length);
        exitCode = null;
        OUT.target = out;
        ERR.target = err;
        try {
            Class<?> tool = Class.forName(words[0], true, ClassLoader.getSystemClassLoader());
            tool.getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            if (exitCode == null) {
                // As Java itself tells of what nobody catches.
                System.err.print("Exception in thread \"main\" ");
                thrown.getCause().printStackTrace();
                exitCode = 1;
            }
        } catch (ReflectiveOperationException missing) {
            System.err.println("Error: Could not find or load main class " + words[0]);
            exitCode = 1;
        } finally {
            silence();
        }
        return exitCode == null ? 0 : exitCode;
    }

    private static void silence() {
        OUT.target = OutputStream.nullOutputStream();
        ERR.target = OutputStream.nullOutputStream();
    }

    private static String[] read(DataInputStream requests) throws IOException {
        // In the encoding in which Java reads the words of a command line.
        Charset charset = Charset.forName(System.getProperty("sun.jnu.encoding"));
        String[] words = new String[requests.readInt()];
        for (int place = 0; place < words.length; place++) {
            words[place] = new String(requests.readNBytes(requests.readInt()), charset);
        }
        return words;
    }

    private static void write(DataOutputStream answers, byte[] text) throws IOException {
        answers.writeInt(text.length);
        answers.write(text);
    }
}
