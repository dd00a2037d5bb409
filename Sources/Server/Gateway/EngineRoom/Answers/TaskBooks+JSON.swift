import Engine
import Policy
import Wire

extension TaskBooks {
    /// Appends an object of what was counted of requests.
    ///
    /// - `results`: how many wakes of requests ended so.
    func write(results: (TaskOutcome) -> Int64, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("submitted")
        writer.integer(self.submitted.sum)
        writer.key("refused")
        writer.counts(TaskRefusal.allCases.map { ($0.rawValue, self.refused[$0]) })
        writer.key("replaced")
        writer.integer(self.replaced)
        writer.key("cancelled")
        writer.integer(self.cancelled)
        writer.key("discarded")
        writer.counts(DiscardReason.ofTasks.map { ($0.rawValue, self.discarded[$0]) })
        writer.key("results")
        writer.counts(TaskOutcome.allCases.map { ($0.rawValue, results($0)) })
        writer.key("waiting")
        writer.integer(self.waiting.sum)
        writer.key("inFlight")
        writer.integer(self.inFlight.sum)
        writer.endObject()
    }
}

extension SessionBooks {
    /// Appends an object of what was counted of finished transfers.
    ///
    /// - `results`: how many wakes of sessions ended how.
    func write(results: PerCase<TaskOutcome>, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("finished")
        writer.integer(self.finished)
        writer.key("refused")
        writer.integer(self.refused)
        writer.key("completed")
        writer.integer(self.completed)
        writer.key("discarded")
        writer.counts(DiscardReason.ofTasks.map { ($0.rawValue, self.discarded[$0]) })
        writer.key("results")
        writer.counts(TaskOutcome.allCases.map { ($0.rawValue, results[$0]) })
        writer.key("waiting")
        writer.integer(self.waiting)
        writer.key("inFlight")
        writer.integer(self.inFlight)
        writer.endObject()
    }
}
