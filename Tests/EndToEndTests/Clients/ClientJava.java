import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * Java's HttpClient with a provider token of its own making, or a client certificate: the scenes of scenes.py, which
 * describes the argument. After a push without an answer it goes on with another HttpClient, and across a restart it
 * pushes one by one: in JDK 17 the threads of one at times lock each other out for good when connections end while
 * others begin, whatever the server does.
 */
public final class ClientJava {
    record Answer(int status, String reason, String timestamp) {
        String name() {
            return reason == null ? "" + status : status + " " + reason;
        }
    }

    private final String settings;
    private final SSLContext context;
    private HttpClient client;
    private final String proof;
    private Duration patience = Duration.ofSeconds(60);

    private ClientJava(String settings) throws Exception {
        this.settings = settings;
        this.context = context();
        this.proof = hasToken() ? "bearer " + providerToken() : null;
        renew();
    }

    private void renew() {
        client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_2).sslContext(context).build();
    }

    private boolean hasToken() {
        return find(settings, "\"key\":\\s*\"([^\"]*)") != null;
    }

    /** The first group of a pattern in the settings, or the whole of a member's value. */
    private static String find(String text, String pattern) {
        Matcher matcher = Pattern.compile(pattern).matcher(text);
        return matcher.find() ? matcher.group(1) : null;
    }

    private String setting(String name) {
        return find(settings, "\"" + name + "\":\\s*\"?([^\",}\\]]*)").replace("\\/", "/");
    }

    private SSLContext context() throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (var file = Files.newInputStream(Path.of(setting("ca")))) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(hasToken() ? null : keyManagers(), factory.getTrustManagers(), null);
        return context;
    }

    private KeyManager[] keyManagers() throws Exception {
        Path file = Path.of(setting("certificate"));
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (var pem = Files.newInputStream(file)) {
            Certificate certificate = CertificateFactory.getInstance("X.509").generateCertificate(pem);
            store.setKeyEntry("client", key(file), new char[0], new Certificate[] {certificate});
        }
        KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        factory.init(store, new char[0]);
        return factory.getKeyManagers();
    }

    /** The private key in a PEM file, whatever else stands there. */
    private static PrivateKey key(Path file) throws Exception {
        String pem = find(Files.readString(file), "-----BEGIN PRIVATE " + "KEY-----([^-]*)").replaceAll("\\s", "");
        return KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(pem)));
    }

    /** Java's plain ES256 signature is DER, not the 64 bytes of a JWT; Apple takes it, and some clients send it. */
    private String providerToken() throws Exception {
        Base64.Encoder encoder = Base64.getUrlEncoder().withoutPadding();
        String header = "{\"alg\":\"ES256\",\"kid\":\"" + setting("keyID") + "\"}";
        String claims = "{\"iss\":\"" + setting("team") + "\",\"iat\":" + System.currentTimeMillis() / 1000 + "}";
        String signed = encoder.encodeToString(header.getBytes(StandardCharsets.UTF_8)) + "."
            + encoder.encodeToString(claims.getBytes(StandardCharsets.UTF_8));
        Signature signature = Signature.getInstance("SHA256withECDSA");
        signature.initSign(key(Path.of(setting("key"))));
        signature.update(signed.getBytes(StandardCharsets.US_ASCII));
        return signed + "." + encoder.encodeToString(signature.sign());
    }

    private static String token(int number) {
        return String.format("%064x", number);
    }

    private CompletableFuture<Answer> push(String device) {
        URI uri = URI.create("https://" + setting("host") + ":" + setting("port") + "/3/device/" + device);
        HttpRequest.Builder request = HttpRequest.newBuilder(uri)
            .timeout(patience)
            .header("apns-topic", setting("topic"))
            .header("apns-push-type", "background")
            .header("apns-priority", "5")
            .POST(HttpRequest.BodyPublishers.ofString("{\"aps\":{\"content-available\":1}}"));
        if (proof != null) request.header("authorization", proof);
        return client.sendAsync(request.build(), HttpResponse.BodyHandlers.ofString())
            .thenApply(response -> new Answer(
                response.version() == HttpClient.Version.HTTP_2 ? response.statusCode() : -1,
                find(response.body(), "\"reason\":\"([^\"]*)\""),
                find(response.body(), "\"timestamp\":([0-9]+)")))
            .exceptionally(error -> new Answer(0, null, null));
    }

    private List<Answer> pushAll(List<String> devices) {
        return devices.stream().map(this::push).toList().stream().map(CompletableFuture::join).toList();
    }

    private static List<String> tokens(int first, int count) {
        List<String> devices = new ArrayList<>();
        for (int number = first; number < first + count; number++) devices.add(token(number));
        return devices;
    }

    private static void show(String scene, List<Answer> answers, String timestamp) {
        TreeMap<String, Integer> counts = new TreeMap<>();
        for (Answer answer : answers) counts.merge("\"" + answer.name() + "\"", 1, Integer::sum);
        String members = counts.toString().replace('=', ':');
        System.out.println("{\"scene\":\"" + scene + "\",\"answers\":" + members + ",\"timestamp\":" + timestamp + "}");
    }

    /** Pushes without a pause until the gateway was restarted, which the end of standard input tells. */
    private void restart() throws Exception {
        CountDownLatch restarted = new CountDownLatch(1);
        Thread thread = new Thread(() -> {
            try {
                System.in.readAllBytes();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            restarted.countDown();
        });
        thread.setDaemon(true);
        thread.start();
        show("before the restart", pushAll(tokens(1, 20)), null);
        // What was sent on a connection that ended may stay without an answer, and without an error.
        patience = Duration.ofSeconds(10);
        List<Answer> taken = new ArrayList<>();
        boolean isLast = false;
        while (!isLast) {
            isLast = restarted.getCount() == 0;
            for (String device : tokens(1, 20)) {
                Answer answer = push(device).join();
                for (int attempt = 0; answer.status() != 200; attempt++) {
                    if (attempt == 100 || answer.status() != 0 && answer.status() != 503) {
                        throw new IllegalStateException(answer.name());
                    }
                    // The gateway ends, and takes nothing before it is there again.
                    restarted.await();
                    renew();
                    answer = push(device).join();
                }
                taken.add(answer);
            }
        }
        show("restart", taken, null);
    }

    private void play(String scene) throws Exception {
        switch (scene) {
            case "one" -> show(scene, pushAll(tokens(1, 1)), null);
            case "unregistered" -> {
                Answer answer = push(setting("unregistered")).join();
                show(scene, List.of(answer), answer.timestamp());
            }
            case "malformed" -> show(scene, pushAll(List.of("abcd")), null);
            case "thousand" -> {
                List<Answer> answers = new ArrayList<>();
                for (int first = 0; first < 1000; first += 100) answers.addAll(pushAll(tokens(1000 + first, 100)));
                show(scene, answers, null);
            }
            case "restart" -> restart();
            default -> throw new IllegalArgumentException(scene);
        }
    }

    public static void main(String[] arguments) throws Exception {
        ClientJava client = new ClientJava(arguments[0]);
        String scenes = find(arguments[0], "\"scenes\":\\s*\\[([^\\]]*)\\]");
        for (String scene : scenes.replaceAll("[\" ]", "").split(",")) client.play(scene);
        System.exit(0);
    }
}
