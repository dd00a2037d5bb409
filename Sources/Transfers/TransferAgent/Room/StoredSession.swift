import Wire

/// A session as it is stored.
struct StoredSession {
    let name: String
    let session: TransferSession
    /// The number of ended transfers whose end is not known to have reached a follower or the gateway.
    let untold: Int
    /// Whether it stands for one that cannot be read.
    let isUnreadable: Bool

    init(name: String, session: TransferSession, untold: Int, isUnreadable: Bool = false) {
        self.name = name
        self.session = session
        self.untold = untold
        self.isUnreadable = isUnreadable
    }

    var stored: [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.key("name")
        json.string(self.name)
        json.optional("device", self.session.device)
        json.optional("topic", self.session.topic)
        json.key("discretionary")
        json.bool(self.session.isDiscretionary)
        json.key("sendsLaunchEvents")
        json.bool(self.session.sendsLaunchEvents)
        json.key("allowsMetered")
        json.bool(self.session.allowsMetered)
        json.key("acceptsEarlyAnswers")
        json.bool(self.session.acceptsEarlyAnswers)
        json.key("requestTimeout")
        json.integer(self.session.requestTimeout)
        json.key("resourceTimeout")
        json.integer(self.session.resourceTimeout)
        json.key("connectionsPerHost")
        json.integer(self.session.connectionsPerHost)
        json.key("untold")
        json.integer(self.untold)
        json.endObject()
        return json.buffer.view.array
    }

    init?(stored: [UInt8]) {
        guard let value = try? JSONReader.read(String(decoding: stored, as: UTF8.self)), let name = value["name"]?.text
        else { return nil }
        var session = TransferSession()
        session.device = value["device"]?.text
        session.topic = value["topic"]?.text
        session.isDiscretionary = value["discretionary"]?.flag ?? false
        session.sendsLaunchEvents = value["sendsLaunchEvents"]?.flag ?? true
        session.allowsMetered = value["allowsMetered"]?.flag ?? true
        session.acceptsEarlyAnswers = value["acceptsEarlyAnswers"]?.flag ?? false
        session.requestTimeout = value["requestTimeout"]?.integer ?? session.requestTimeout
        session.resourceTimeout = value["resourceTimeout"]?.integer ?? session.resourceTimeout
        session.connectionsPerHost = Int(value["connectionsPerHost"]?.integer ?? 6)
        self.init(name: name, session: session, untold: Int(value["untold"]?.integer ?? 0))
    }
}
