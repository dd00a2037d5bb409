import HTTPClient
import LinuxConditions

/// Reports the conditions of this machine to the gateway as the conditions of one device.
///
/// `@unchecked Sendable`: accessed only on its `HTTPThread`. Other threads submit work to that thread.
final class MachineReport: HTTPAgent, @unchecked Sendable {
    /// The continuation of the report. It resumes with nil if the report was cancelled.
    typealias Ending = CheckedContinuation<WakeWorkerError?, Never>

    /// The URL path of the device's conditions.
    let path: String
    private let endpoint: GatewayEndpoint
    private let conditions: ReportedConditions
    private let root: String
    private let goesOnAfter: @Sendable (WakeWorkerError) -> Bool
    private let appStateFault: @Sendable (String?) -> Void
    private var watch: ConditionsWatch?
    private var reporter = ConditionsReporter()
    private var request: HTTPRequestID?
    private var isConnectionDoubtful = false
    /// The last reported reason why `appState` is unknown; nil if `appState` is known.
    private var fault: String?
    /// The callers that wait until no request is in flight.
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private var ending: Ending?
    private var isOver = false

    /// - Parameters:
    ///   - endpoint: the gateway that receives the reports.
    ///   - path: the URL path of the device's conditions.
    ///   - conditions: the conditions to report.
    ///   - root: the directory below which `/sys`, `/var` and `/run` are read.
    ///   - goesOnAfter: called for each refusal; returns true to continue. The report is then repeated when a condition
    ///     changes or the worker subscribes again.
    ///   - appStateFault: called with the reason if `appState` should be reported but is unknown. Called with nil when
    ///     it is known again.
    init(
        _ endpoint: GatewayEndpoint,
        path: String,
        conditions: ReportedConditions,
        root: String,
        goesOnAfter: @escaping @Sendable (WakeWorkerError) -> Bool,
        appStateFault: @escaping @Sendable (String?) -> Void
    ) {
        self.endpoint = endpoint
        self.path = path
        self.conditions = conditions
        self.root = root
        self.goesOnAfter = goesOnAfter
        self.appStateFault = appStateFault
    }

    func begin(_ ending: Ending, isConnected: Bool, on loop: HTTPLoop) {
        guard !self.isOver else { return ending.resume(returning: nil) }
        self.ending = ending
        self.watch = ConditionsWatch(
            hardware: self.conditions.contains(.hardware),
            appState: self.conditions.contains(.appState),
            root: self.root
        )
        self.connectionChanged(isConnected, on: loop)
    }

    /// Stops reporting `appState`, and resumes the caller as soon as no report is in flight.
    func leaveAppState(to caller: CheckedContinuation<Void, Never>, on loop: HTTPLoop) {
        self.watch?.endAppState()
        self.reporter.endAppState()
        self.tell(nil)
        if self.request == nil { caller.resume() } else { self.waiting.append(caller) }
        self.settle(on: loop)
    }

    /// Records whether the gateway can be reached.
    func connectionChanged(_ isConnected: Bool, on loop: HTTPLoop) {
        if isConnected { self.reporter.connected(now: loop.now) } else { self.reporter.disconnected() }
        self.settle(on: loop)
    }

    /// Ends the report. `failure` is nil if the report was cancelled.
    func end(_ failure: WakeWorkerError?, on loop: HTTPLoop) {
        guard !self.isOver else { return }
        self.isOver = true
        loop.watch([], for: self)
        loop.setMoment(nil, for: self)
        if let request = self.request { loop.cancel(request) }
        self.requestEnded()
        self.watch = nil
        self.ending?.resume(returning: failure)
        self.ending = nil
    }

    func received(_ event: HTTPEvent, on loop: HTTPLoop) {
        guard case .ended(let id, let result) = event, id == self.request else { return }
        self.requestEnded()
        let failure = self.endpoint.failure(of: result)
        self.isConnectionDoubtful = failure?.error.code == .timedOut
        if let failure, failure.isPassing {
            // An answer 429 certainly changed nothing.
            self.reporter.reportFailed(now: loop.now, mayHaveArrived: (try? result.get())?.status != 429)
        } else if let failure {
            self.refused(failure.error, on: loop)
        } else {
            self.reporter.reportConfirmed(now: loop.now)
        }
        self.settle(on: loop)
    }

    func momentReached(on loop: HTTPLoop) { self.settle(on: loop) }

    private func requestEnded() {
        self.request = nil
        for caller in self.waiting { caller.resume() }
        self.waiting = []
    }

    private func refused(_ error: WakeWorkerError, on loop: HTTPLoop) {
        guard self.goesOnAfter(error) else { return self.end(error, on: loop) }
        self.reporter.reportRefused(now: loop.now)
    }

    /// Reads the machine's conditions if a reading is due, and sends a report if one is due.
    private func settle(on loop: HTTPLoop) {
        guard !self.isOver, let watch = self.watch else { return }
        let now = loop.now
        if let conditions = watch.conditions(now: now) {
            self.reporter.conditionsRead(conditions, now: now)
            self.tell(watch.appStateFault(now: now))
        }
        if let changes = self.reporter.timePassed(now: now) { self.send(changes, on: loop) }
        guard !self.isOver else { return }
        loop.watch(watch.descriptors, writable: watch.writableDescriptors, for: self)
        loop.setMoment(min(watch.nextAt, self.reporter.nextAt ?? .max), for: self)
    }

    private func tell(_ fault: String?) {
        guard fault != self.fault else { return }
        self.fault = fault
        self.appStateFault(fault)
    }

    private func send(_ changes: MachineConditions, on loop: HTTPLoop) {
        do throws(WakeWorkerError) {
            var request = try self.endpoint.request("PATCH", self.path, body: Array(changes.json.utf8))
            request.isFresh = self.isConnectionDoubtful
            do throws(HTTPClientError) {
                self.request = try loop.start(request, for: self)
            } catch {
                throw self.endpoint.error(error)
            }
        } catch {
            if error.isPassing {
                self.reporter.reportFailed(now: loop.now)
            } else {
                self.refused(error, on: loop)
            }
        }
    }
}

/// All reports of machine conditions that a worker makes, and the worker's subscription state.
///
/// `@unchecked Sendable`: accessed only on its `HTTPThread`. Other threads submit work to that thread.
final class MachineReports: @unchecked Sendable {
    private var reports: [MachineReport] = []
    /// True while the worker is subscribed, and nil while it does not run. If the value is false, no reports are sent.
    private var isSubscribed: Bool?
    /// The reason why `appState` is unknown that was last sent to the worker's events.
    private var reportedFault: String?

    func begin(_ report: MachineReport, _ ending: MachineReport.Ending, on loop: HTTPLoop) {
        self.reports.append(report)
        report.begin(ending, isConnected: self.isSubscribed ?? true, on: loop)
    }

    /// Returns the reports of the device whose conditions have the URL path `path`.
    func of(path: String) -> [MachineReport] { self.reports.filter { $0.path == path } }

    /// Returns true if a fault should be reported. A fault that several devices share is reported once.
    func isNews(_ fault: String?) -> Bool {
        defer { self.reportedFault = fault }
        return fault != nil && fault != self.reportedFault
    }

    func remove(_ report: MachineReport) {
        self.reports.removeAll { $0 === report }
    }

    /// Applies a change of the subscription: the worker has subscribed (true), has lost its stream (false), or has
    /// stopped (nil).
    func subscriptionChanged(_ isSubscribed: Bool?, on loop: HTTPLoop) {
        let wasConnected = self.isSubscribed ?? true
        self.isSubscribed = isSubscribed
        let isConnected = isSubscribed ?? true
        // Both true and nil allow reports, so a change between them has no effect.
        guard isConnected != wasConnected else { return }
        for report in self.reports { report.connectionChanged(isConnected, on: loop) }
    }
}
