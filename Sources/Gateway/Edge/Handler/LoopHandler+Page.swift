import Answers
import Bytes
import Dashboard
import HTTPTransport

extension LoopHandler {
    /// What the page may do: run and ask what this listener serves, and nothing else.
    private static let contentPolicy: StaticString =
        """
        default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
        base-uri 'none'; form-action 'none'; frame-ancestors 'none'
        """

    /// Answers with a file of the dashboard.
    func answerPage(_ stream: StreamID, _ name: String) throws(APIError) {
        guard let file = DashboardFile.find(name) else { throw .badPath }
        self.response.begin(status: 200)
        self.response.add("content-type", file.type)
        self.response.add("content-security-policy", Self.contentPolicy)
        self.response.add("x-content-type-options", "nosniff")
        self.response.add("referrer-policy", "no-referrer")
        self.response.add("cross-origin-opener-policy", "same-origin")
        // Another version of the gateway has another page.
        self.response.add("cache-control", "no-cache")
        file.bytes.withByteView { _ = self.loop.respond(stream, self.response, body: $0) }
    }
}
