import Engine
import HTTPClient

/// One topic's webhook at work.
package struct Webhook {
    let topic: String
    let configuration: WebhookConfiguration
    let slots: Int
    /// What is posted to.
    let url: String
    let settings: HTTPClientSettings
    let secret: [UInt8]?
    var breaker = WebhookBreaker()
    var status: WebhookStatus
    /// What the engine was told last.
    var published: WebhookStatus
    /// The wakes it holds, as the dispatcher counts them.
    var held = 0
    /// The requests that are under way.
    var open = 0
    /// The requests whose wakes ended before them, the oldest end first; others that have been answered since.
    var outlived: [HTTPRequestID] = []
    /// What the engine knows it by, once it is subscribed.
    var number: UInt32 = 0
    /// The engine has answered its subscription.
    var isAnswered = false
    /// Another configuration has taken its place: it ends once it holds no wake.
    var isRetired = false
    /// The engine was told that it has ended: a wake that comes all the same was on its way, and is lost with it.
    var hasEnded = false

    /// - Throws: `CredentialError` when the secret cannot be read.
    init(topic: String, _ configuration: WebhookConfiguration) throws(CredentialError) {
        guard let url = HTTPURL(configuration.url) else {
            throw CredentialError(message: "topics.\(topic).webhook.url is no URL; write an https URL")
        }
        self.topic = topic
        self.configuration = configuration
        self.slots = configuration.slots
        self.url = configuration.url
        self.settings = configuration.settings(for: url)
        var secret: [UInt8]?
        if let file = configuration.secretFile { secret = try WebhookSecret.read(file) }
        self.secret = secret
        self.status = WebhookStatus(url: url.shown, slots: configuration.slots)
        self.published = self.status
    }

    /// Whether the other one would do all that this one does.
    func isSame(as other: Webhook) -> Bool {
        self.topic == other.topic && self.configuration == other.configuration && self.secret == other.secret
    }

    /// Whether nothing is to come any more that is about it.
    var isOver: Bool { self.hasEnded && self.isAnswered && self.open == 0 }

    /// How many wakes it may hold now.
    var slotsNow: Int {
        guard !self.isRetired else { return 0 }
        return switch self.breaker.state {
        case .active: self.slots
        case .resting: 0
        case .probing: 1
        }
    }
}
