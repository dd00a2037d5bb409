import WakeWorker
package import Wire

/// What a worker says of itself on standard error, in the words of the command line.
package struct WorkerLog: Sendable {
    let location: GatewayLocation
    let commands: CommandThread

    func tell(_ event: WakeWorkerEvent) {
        switch event {
        case .subscribed: self.commands.log("subscribed at \(self.location.url)")
        case .disconnected(let reason, let wait):
            let (seconds, attoseconds) = wait.components
            let milliseconds = seconds * 1000 + attoseconds / 1_000_000_000_000_000
            self.commands.log("\(self.explain(reason)); subscribing again in \(milliseconds) ms")
        case .expired(let wake): self.commands.log("wake \(wake) has expired; its command is told to stop")
        case .dropped(let wake, _, let reason), .taskDropped(let wake, _, let reason):
            // That the wake has ended another way was told then.
            guard reason.code != .wakeEnded else { return }
            self.commands.log("the result of wake \(wake): \(self.explain(reason))")
        case .conditionUnknown(let name, let reason): self.commands.log("\(name) is not reported: \(reason)")
        case .progressRefused(let wake, let reason): self.progressFailed(wake, reason)
        case .refused(let wake, let kind): self.commands.log(Self.refusal(wake, kind))
        case .started, .lost, .handlerFailed, .released, .delivered, .taskDelivered, .stopping: break
        }
    }

    /// What is said of the first wake of a kind that is not handled.
    package static func refusal(_ wake: String, _ kind: String) -> String {
        "wake \(wake) is of the kind \(kind), and no option of this worker asks for it: neither it nor another of its "
            + "kind is answered; see the version of this program and the gateway's"
    }

    /// Why the time of a task's wake is over.
    func expired(_ wake: String, _ reason: ExpirationReason) {
        self.commands.log("wake \(wake) is over: \(Self.text(reason))")
    }

    /// What an expiration is for, with the gateway's word for it.
    package static func text(_ reason: ExpirationReason) -> String {
        switch reason {
        case .deadline: "deadline, its time has passed"
        case .progress: "progress, it has not advanced for too long"
        case .conditions: "conditions, those of its device no longer allow it"
        case .cancelled: "cancelled, by whoever submitted it"
        case .operator: "operator, who has ended it"
        case .lost: "lost, and launched again"
        }
    }

    func progressFailed(_ wake: String, _ error: WakeWorkerError) {
        self.commands.log("the progress of wake \(wake): \(self.explain(error))")
    }

    func refused(_ error: WakeWorkerError, _ device: String) {
        self.commands.log("the conditions of device \(device): \(self.explain(error))")
    }

    /// What went wrong, and what to do about it with the options of the command line.
    func explain(_ error: WakeWorkerError) -> String {
        error.cause.map(self.location.explain) ?? error.message
    }
}
