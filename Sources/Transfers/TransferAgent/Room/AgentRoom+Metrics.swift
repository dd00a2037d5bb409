import Platform
import Wire

/// What Prometheus reads.
extension AgentRoom {
    func metrics() -> [UInt8] {
        var text = MetricText()
        let counts = self.book.counts
        text.begin("sessions", "gauge", "Sessions that are remembered.")
        text.add("sessions", "", self.book.sessionNames.count)
        text.begin("transfers", "gauge", "Transfers that are remembered, by state.")
        for state in TransferState.allCases { text.add("transfers", "state=\"\(state.name)\"", counts[state]) }
        text.begin("held", "gauge", "Whether discretionary transfers would wait, by cause.")
        var asked = TransferSession()
        asked.isDiscretionary = true
        let hold = self.machine.conditions.hold(of: asked)
        for cause in [TransferHold.power, .lowPower, .thermal, .metered] {
            text.add("held", "cause=\"\(cause.rawValue)\"", hold == cause ? 1 : 0)
        }
        text.begin("attempts_total", "counter", "Attempts that were begun.")
        text.add("attempts_total", "", self.tally.attempts)
        text.begin("retries_total", "counter", "Attempts that failed and are made again.")
        text.add("retries_total", "", self.tally.retries)
        text.begin("failures_total", "counter", "Transfers that have failed, by reason.")
        for reason in TransferFault.reasons {
            text.add("failures_total", "reason=\"\(reason)\"", self.tally.failures[reason] ?? 0)
        }
        text.begin("received_bytes_total", "counter", "Bytes that downloads received, as attempts ended.")
        text.add("received_bytes_total", "", Int(self.tally.received))
        text.begin("sent_bytes_total", "counter", "Bytes that uploads sent, as attempts ended.")
        text.add("sent_bytes_total", "", Int(self.tally.sent))
        text.begin("taken_total", "counter", "Files that were taken.")
        text.add("taken_total", "", self.tally.taken)
        text.begin("expired_untaken_total", "counter", "Files that nobody took in time.")
        text.add("expired_untaken_total", "", self.tally.expiredUntaken)
        text.begin("state_bytes", "gauge", "Bytes of the files in the state folder.")
        text.add("state_bytes", "", Int(self.files.used))
        text.begin("outbox_waiting", "gauge", "Finished sessions that the gateway is still to be told of.")
        text.add("outbox_waiting", "", self.outbox.count)
        text.begin("wakes_delivered_total", "counter", "Finished sessions that the gateway took.")
        text.add("wakes_delivered_total", "", self.tally.delivered)
        text.begin("wakes_refused_total", "counter", "Finished sessions that the gateway refused for good.")
        text.add("wakes_refused_total", "", self.tally.refusedWakes)
        text.begin("commits_total", "counter", "Commits to the state folder.")
        text.add("commits_total", "", self.tally.commits)
        text.begin("failed_commits_total", "counter", "Commits that failed, and were tried again.")
        text.add("failed_commits_total", "", self.tally.failedCommits)
        text.begin("listeners", "gauge", "Streams of events.")
        text.add("listeners", "", self.listeners.count)
        let figures = ProcessFigures.read()
        text.begin("resident_bytes", "gauge", "Memory of the process that is not swapped out.")
        text.add("resident_bytes", "", Int(figures.residentBytes))
        text.begin("start_time_milliseconds", "gauge", "When the agent started, in milliseconds since 1970.")
        text.add("start_time_milliseconds", "", Int(self.startedAt))
        return Array(text.text.utf8)
    }
}

/// Metrics in the text format of Prometheus.
private struct MetricText {
    private(set) var text = ""
    private static let prefix = "wakegate_transfers_"

    mutating func begin(_ name: String, _ type: String, _ help: String) {
        self.text += "# HELP \(Self.prefix)\(name) \(help)\n# TYPE \(Self.prefix)\(name) \(type)\n"
    }

    mutating func add(_ name: String, _ labels: String, _ value: Int) {
        self.text += "\(Self.prefix)\(name)\(labels.isEmpty ? "" : "{\(labels)}") \(value)\n"
    }
}
