/// What an agent is told of a session. What is nil stays as it is, or as the agent has it by default.
///
/// ```swift
/// var configuration = BackgroundSessionConfiguration()
/// configuration.wakes(device: token, topic: "com.example.app")
/// configuration.isDiscretionary = true
/// let session = try BackgroundSession("com.example.app.downloads", configuration)
/// ```
public struct BackgroundSessionConfiguration: Hashable, Sendable {
    /// The token of the device that is woken when all transfers have ended, in hexadecimal digits.
    public var device: String?
    /// The topic of that device.
    public var topic: String?
    /// Whether transfers wait for external power, a cool machine, and a network that is not metered. By default not.
    public var isDiscretionary: Bool?
    /// Whether the device is woken when all transfers have ended and nobody reads ``BackgroundSession/events``. By
    /// default it is; it needs `device` and `topic`.
    public var sendsLaunchEvents: Bool?
    /// Whether transfers go over a metered network, too. By default they do.
    public var allowsMetered: Bool?
    /// How long a server may send nothing before a transfer is tried again. By default a minute.
    public var requestTimeout: Duration?
    /// How long a transfer is tried before it has failed. By default seven days.
    public var resourceTimeout: Duration?
    /// How many connections there are to one server. By default six.
    public var connectionsPerHost: Int?
    /// True if an upload is finished when the server answers with success before it has read the whole file. By default
    /// such an upload fails with ``BackgroundTransferFailure/Reason/serverStoppedReading``.
    public var acceptsEarlyAnswers: Bool?

    /// Nothing is told: a session that exists stays as it is.
    public init() {}

    /// Names who is woken when all transfers have ended.
    ///
    /// - Parameters:
    ///   - device: the device's token, in hexadecimal digits.
    ///   - topic: its topic.
    public mutating func wakes(device: String, topic: String) {
        self.device = device
        self.topic = topic
        self.sendsLaunchEvents = true
    }

    /// As the agent is sent it.
    package var body: [UInt8] {
        var object = JSONObject()
        object.add("device", self.device)
        object.add("topic", self.topic)
        object.add("discretionary", self.isDiscretionary)
        object.add("sendsLaunchEvents", self.sendsLaunchEvents)
        object.add("allowsMetered", self.allowsMetered)
        object.add("acceptsEarlyAnswers", self.acceptsEarlyAnswers)
        object.add("requestTimeout", self.requestTimeout)
        object.add("resourceTimeout", self.resourceTimeout)
        object.add("connectionsPerHost", self.connectionsPerHost.map { Int64($0) })
        return object.bytes
    }
}
