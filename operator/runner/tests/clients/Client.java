// prints: hello web.example
// prints: hello web.example
// prints: java.net.UnknownHostException: other.example
// prints: own
import com.sun.net.httpserver.HttpServer;
import java.net.*;
import java.net.http.*;

public class Client {
    public static void main(String[] words) throws Exception {
        var request = HttpRequest.newBuilder(URI.create("http://web.example/hello")).build();
        System.out.print(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body());
        System.out.print(new String(new URL("http://web.example/hello").openStream().readAllBytes()));
        try {
            new URL("http://other.example/").openStream();
        } catch (UnknownHostException error) {
            System.out.println(error);
        }
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, 4);
            exchange.getResponseBody().write("own\n".getBytes());
            exchange.close();
        });
        server.start();
        System.out.print(new String(new URL("http://127.0.0.1:" + server.getAddress().getPort() + "/").openStream().readAllBytes()));
        System.exit(0);
    }
}
