import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.Scanner;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** Asks with Java's HttpClient for every line of standard input; ask_httpx.py says what comes and goes (`routes`). */
public final class RoutesJava {
    private static SSLContext context(String authority) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream file = Files.newInputStream(Path.of(authority))) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    public static void main(String[] arguments) throws Exception {
        HttpClient.Version version =
            arguments[0].equals("1") ? HttpClient.Version.HTTP_1_1 : HttpClient.Version.HTTP_2;
        // Left as it comes, it offers an upgrade to h2c with each request in cleartext.
        HttpClient client = HttpClient.newBuilder().sslContext(context(arguments[1])).build();
        Scanner lines = new Scanner(System.in);
        while (lines.hasNext()) {
            String method = lines.next();
            String url = lines.next();
            HttpRequest.BodyPublisher body = method.equals("POST")
                ? HttpRequest.BodyPublishers.ofString("{}") : HttpRequest.BodyPublishers.noBody();
            HttpRequest request =
                HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofSeconds(60)).method(method, body).build();
            HttpResponse<InputStream> answer = client.send(request, HttpResponse.BodyHandlers.ofInputStream());
            if (answer.version() != version) throw new IllegalStateException(url + ": " + answer.version());
            boolean isStream = answer.headers().firstValue("content-type").orElse("").startsWith("text/event-stream");
            try (InputStream content = answer.body()) {
                Object length = isStream && !method.equals("HEAD") ? "stream" : content.readAllBytes().length;
                System.out.println(method + " " + url + " " + answer.statusCode() + " " + length);
            }
        }
        System.exit(0);
    }
}
