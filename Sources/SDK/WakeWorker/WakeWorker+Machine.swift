import HTTPClient

extension WakeWorker {
    /// Tells the gateway the state of this Linux machine as a device's, until the task is cancelled.
    ///
    /// Battery, charger, thermal state, power saving and network are read from the kernel; what the machine does not
    /// tell is not reported. They are told at once, on change (when it has lasted a second, and at most every ten
    /// seconds), and again after each new subscription of ``run(_:)``, beside which this is meant to run.
    ///
    /// - Parameter deviceToken: the token of the device that this machine is.
    /// - Throws: ``WakeWorkerError`` when another try would come to the same: `refused` when the gateway knows no such
    ///   device, or does not let this worker report for it. A gateway that cannot be reached is no error; it is tried
    ///   again.
    ///
    /// ```swift
    /// async let reports: Void = worker.reportMachineConditions(for: token)
    /// ```
    public func reportMachineConditions(for deviceToken: String) async throws(WakeWorkerError) {
        try await self.reportMachineConditions(for: deviceToken, root: "/") { _ in false }
    }

    /// Reports what the machine below `root` says, with a say in what a refusal means.
    ///
    /// - `root`: the folder below which `/sys` and `/var` are read.
    /// - `goesOnAfter`: is told of each refusal, and says whether to go on: then the report is sent again when
    ///   something has changed, or the worker has subscribed again.
    package func reportMachineConditions(
        for deviceToken: String,
        root: String,
        goesOnAfter: @escaping @Sendable (WakeWorkerError) -> Bool
    ) async throws(WakeWorkerError) {
        let path = "/v1/devices/\(try Self.hexadecimal(deviceToken))/conditions"
        let report = MachineReport(self.request.endpoint, path: path, root: root, goesOnAfter: goesOnAfter)
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
}
