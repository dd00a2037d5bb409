import HTTPClient
import LinuxConditions

/// Tells the gateway the conditions of this machine, as those of each of some devices.
struct ConditionsDuty {
    private let watch: ConditionsWatch
    private let devices: [String]
    private var reporters: [ConditionsReporter]
    private var requests: [HTTPRequestID: Int] = [:]
    private var refusals: Set<String> = []

    /// - Parameter root: the folder below which `/sys` and `/var` are read.
    init(devices: [String], root: String) {
        self.watch = ConditionsWatch(root: root)
        self.devices = devices
        self.reporters = devices.map { _ in ConditionsReporter() }
    }

    /// What becomes readable when there is something to look at.
    var descriptors: [Int32] { self.watch.descriptors }

    /// When `due` has something to do, in milliseconds.
    var nextAt: Int64 { min(self.watch.nextAt, self.reporters.compactMap(\.nextAt).min() ?? .max) }

    mutating func connected(now: Int64) {
        self.refusals.removeAll()
        for index in self.reporters.indices { self.reporters[index].connected(now: now) }
    }

    mutating func disconnected() {
        for index in self.reporters.indices { self.reporters[index].disconnected() }
    }

    /// Reads the machine when it is time for it; the devices for which something is to be sent, and the JSON to send.
    mutating func due(now: Int64) -> [(device: String, body: String)] {
        if let conditions = self.watch.conditions(now: now) {
            for index in self.reporters.indices { self.reporters[index].conditionsRead(conditions, now: now) }
        }
        return self.reporters.indices.compactMap { index in
            self.reporters[index].timePassed(now: now).map { (self.devices[index], $0.json) }
        }
    }

    /// The report for `device` is on its way.
    mutating func sent(_ device: String, as request: HTTPRequestID) {
        self.requests[request] = self.devices.firstIndex(of: device)
    }

    /// A request has ended, of whomever.
    ///
    /// - Returns: what to log: a refusal that was not told since the last connection.
    mutating func requestEnded(
        _ request: HTTPRequestID,
        _ result: Result<HTTPResponse, HTTPClientError>,
        now: Int64
    ) -> String? {
        guard let index = self.requests.removeValue(forKey: request) else { return nil }
        guard case .success(let response) = result, response.status < 500, response.status != 429 else {
            self.reporters[index].reportFailed(now: now)
            return nil
        }
        guard !response.isSuccess else {
            self.reporters[index].reportConfirmed(now: now)
            return nil
        }
        self.reporters[index].reportRefused(now: now)
        let text = "the conditions of device \(self.devices[index]): \(GatewayAnswer.refusal(response))"
        return self.refusals.insert(text).inserted ? text : nil
    }
}
