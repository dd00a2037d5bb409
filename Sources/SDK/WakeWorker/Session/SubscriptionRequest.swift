package import HTTPClient
import Wire

/// The parameters of a worker's subscription.
package struct SubscriptionRequest: Sendable {
    static let slots = 1...4096
    static let devicesMax = 64
    /// The permitted silence limits. The gateway sends data at least every 15 s, so a limit below 20 s would end
    /// healthy streams.
    static let silenceLimits = Duration.seconds(20)...Duration.seconds(300)

    /// The permitted stop limits. The minimum leaves enough time to deliver a result; the maximum is one day.
    static let stopLimits = Duration.seconds(5)...Duration.seconds(86_400)

    let endpoint: GatewayEndpoint
    let topic: String
    let slots: Int
    let devices: [String]
    let resources: BackgroundTaskResources
    let name: String
    package var timing = WorkerTiming()
    /// The maximum duration of a stop, in milliseconds.
    let stopMax: Int64

    /// - Throws: `badArgument` if the topic is empty, or if the number of slots or devices, the silence limit or the
    ///   stop limit is out of range.
    package init(
        _ endpoint: GatewayEndpoint,
        topic: String,
        slots: Int,
        devices: [String],
        resources: BackgroundTaskResources,
        name: String,
        silenceLimit: Duration,
        stopLimit: Duration
    ) throws(WakeWorkerError) {
        guard !topic.isEmpty else {
            throw WakeWorkerError(.badArgument, "the topic is empty; name the app's, such as com.example.app")
        }
        guard Self.slots.contains(slots) else {
            throw WakeWorkerError(.badArgument, "slots is \(slots); a worker takes 1 to 4096 wakes at once")
        }
        guard devices.count <= Self.devicesMax else {
            throw WakeWorkerError(
                .badArgument,
                "\(devices.count) devices are named; a worker names at most \(Self.devicesMax), or none for all"
            )
        }
        guard Self.silenceLimits.contains(silenceLimit) else {
            throw WakeWorkerError(
                .badArgument,
                "the silence limit is \(silenceLimit); take 20 to 300 seconds, as a gateway sends something every 15"
            )
        }
        guard Self.stopLimits.contains(stopLimit) else {
            throw WakeWorkerError(.badArgument, "the stop limit is \(stopLimit); take 5 to 86400 seconds")
        }
        self.endpoint = endpoint
        self.topic = topic
        self.slots = slots
        self.devices = devices
        self.resources = resources
        self.name = name
        self.timing.silenceMax = silenceLimit.milliseconds
        self.stopMax = stopLimit.milliseconds
    }

    var topicPath: String { "/v1/topics/\(URLPath.component(self.topic))" }

    /// Makes the request that opens a stream of wakes.
    ///
    /// - `wakes`: the query parameters that describe the wakes.
    func stream(_ wakes: [String]) throws(WakeWorkerError) -> HTTPRequest {
        var query = ["slots=\(self.slots)", "name=\(URLPath.component(self.name))"]
        query += self.devices.map { "device=\(URLPath.component($0))" }
        query += wakes
        query += self.resources.names.map { "resource=\($0)" }
        var request = try self.endpoint.request("GET", "\(self.topicPath)/wakes?\(query.joined(separator: "&"))")
        request.headers.append(("accept", "text/event-stream"))
        request.timeoutMilliseconds = nil
        request.isStreaming = true
        return request
    }

    /// Makes the request that sends the result of a wake.
    ///
    /// - `isTask`: true for the wake of a background task or session, whose result is success or failure.
    func result(
        _ result: BackgroundFetchResult,
        wake: String,
        isTask: Bool
    ) throws(WakeWorkerError) -> HTTPRequest {
        let outcome = isTask ? "{\"success\":\(result.isSuccess)}" : "{\"result\":\"\(result.rawValue)\"}"
        let body = Array(outcome.utf8)
        return try self.endpoint.request("POST", "/v1/wakes/\(URLPath.component(wake))", body: body)
    }

    /// Makes the request for more time. The time is rounded up to whole seconds, at least one.
    func extend(_ wake: String, milliseconds: Int64) throws(WakeWorkerError) -> HTTPRequest {
        let seconds = max(1, (milliseconds + 999) / 1000)
        let body = Array("{\"seconds\":\(seconds)}".utf8)
        return try self.endpoint.request("POST", "/v1/wakes/\(URLPath.component(wake))/extend", body: body)
    }

    /// Makes the request that returns a wake to the gateway without a result.
    func release(_ wake: String, _ release: WakeRelease) throws(WakeWorkerError) -> HTTPRequest {
        let body = Array("{\"reason\":\(JSONText.quoted(release.reason))}".utf8)
        return try self.endpoint.request("POST", "/v1/wakes/\(URLPath.component(wake))/release", body: body)
    }

    /// Makes the request that reports the progress of a continued task.
    func progress(_ progress: TaskProgress, wake: String) throws(WakeWorkerError) -> HTTPRequest {
        try self.endpoint.request("POST", "/v1/wakes/\(URLPath.component(wake))/progress", body: progress.json)
    }

    /// Makes the request that tells the gateway to send no more wakes on a stream.
    func drain(_ stream: String) throws(WakeWorkerError) -> HTTPRequest {
        try self.endpoint.request("POST", "/v1/streams/\(URLPath.component(stream))/drain")
    }
}

/// The timeouts and waits of a worker. Tests shorten them, and the command-line tool reports progress less often.
package struct WorkerTiming: Sendable {
    /// The time without data after which an open stream is ended, in milliseconds. The gateway sends a comment after
    /// 15 s of silence, so the worker has then missed two comments.
    package var silenceMax: Int64 = 40_000
    /// The range of the random wait after the end of an open stream, in milliseconds. It is wide because thousands of
    /// workers reconnect after a restart of the gateway.
    package var firstWaits: ClosedRange<Int64> = 750...2250
    /// The waits between attempts to open a stream.
    package var backoff = Backoff(firstMilliseconds: 2500, lastMilliseconds: 15_000)
    /// The waits between attempts to deliver a result.
    package var resultBackoff = Backoff(firstMilliseconds: 200, lastMilliseconds: 5000)
    /// The time after the deadline of a wake, in milliseconds, in which the gateway should report the expiration.
    /// Without this report, the worker requests more time, because the wake's command may have extended the deadline.
    /// If the gateway stays silent for the same time again, the worker treats the wake as expired.
    package var grace: Int64 = 2000
    /// The minimum interval between two progress reports of a wake, in milliseconds.
    package var progressInterval: Int64 = 250

    /// Creates the default timeouts and waits.
    package init() {}
}

extension BackgroundFetchResult {
    /// True if a background task with this result succeeded.
    var isSuccess: Bool { self != .failed }
}
