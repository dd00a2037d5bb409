import HTTPClient

extension WakeWorker {
    /// Tells the gateway the state of this Linux machine as a device's, until the task is cancelled.
    ///
    /// Battery, charger, thermal state, power saving and network are read from the kernel; whether somebody uses the
    /// machine is asked of logind, when ``ReportedConditions/appState`` is named. What the machine does not tell is not
    /// reported. They are told at once, on change (when it has lasted a second, and at most every ten seconds), and
    /// again after each new subscription of ``run(_:)``, beside which this is meant to run.
    ///
    /// A caller who reports `appState` with ``report(_:for:)`` is taken at their word: this reports that device's
    /// `appState` no more, until it is called anew. Where logind cannot be asked,
    /// ``WakeWorkerEvent/conditionUnknown(name:reason:)`` says why, and `appState` is the caller's to report.
    ///
    /// - Parameters:
    ///   - deviceToken: the token of the device that this machine is.
    ///   - conditions: which are reported; by default those of the hardware.
    /// - Throws: ``WakeWorkerError`` when another try would come to the same: `refused` when the gateway knows no such
    ///   device, or does not let this worker report for it; `badArgument` when no condition is named. A gateway that
    ///   cannot be reached is no error; it is tried again.
    ///
    /// ```swift
    /// async let reports: Void = worker.reportMachineConditions(for: token)
    /// ```
    public func reportMachineConditions(
        for deviceToken: String,
        _ conditions: ReportedConditions = .hardware
    ) async throws(WakeWorkerError) {
        try await self.reportMachineConditions(for: deviceToken, conditions, root: "/") { _ in false }
    }

    /// Reports what the machine below `root` says, with a say in what a refusal means.
    ///
    /// - `root`: the folder below which `/sys`, `/var` and `/run` are read.
    /// - `goesOnAfter`: is told of each refusal, and says whether to go on: then the report is sent again when
    ///   something has changed, or the worker has subscribed again.
    package func reportMachineConditions(
        for deviceToken: String,
        _ conditions: ReportedConditions,
        root: String,
        goesOnAfter: @escaping @Sendable (WakeWorkerError) -> Bool
    ) async throws(WakeWorkerError) {
        let path = "/v1/devices/\(try GatewayCaller.hexadecimal(deviceToken))/conditions"
        guard !conditions.read.isEmpty else {
            throw WakeWorkerError(.badArgument, "no condition is named; report .hardware, .appState or both")
        }
        let report = MachineReport(
            self.request.endpoint,
            path: path,
            conditions: conditions.read,
            root: root,
            goesOnAfter: goesOnAfter
        ) { [reports = self.reports, events = self.eventSource] fault in
            guard reports.isNews(fault), let fault else { return }
            events.yield(.conditionUnknown(name: "appState", reason: fault))
        }
        let failure = await withTaskCancellationHandler {
            await withCheckedContinuation { ending in
                self.thread.submit { [reports = self.reports] in reports.begin(report, ending, on: $0) }
            }
        } onCancel: {
            self.thread.submit { report.end(nil, on: $0) }
        }
        self.thread.submit { [reports = self.reports] _ in reports.remove(report) }
        if let failure { throw failure }
    }

    /// Has the caller say `appState` of the device with its conditions at `path`; nothing else can arrive after that.
    func takeAppState(path: String) async {
        let reports = await withCheckedContinuation { found in
            self.thread.submit { [reports = self.reports] _ in found.resume(returning: reports.of(path: path)) }
        }
        for report in reports {
            await withCheckedContinuation { caller in
                self.thread.submit { report.leaveAppState(to: caller, on: $0) }
            }
        }
    }
}
