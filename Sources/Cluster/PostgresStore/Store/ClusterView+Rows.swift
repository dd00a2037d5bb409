import Engine
import Policy
import Wire

extension ClusterView {
    /// - Parameter results: of the statements of a report: its own two, clock, members, dead, ready, due, totals.
    init(results: [PostgresRows], time: inout PolicyTime) {
        let (clock, members, dead) = (results[2], results[3], results[4])
        let (ready, due, totals) = (results[5], results[6], results[7])
        var total = Books()
        for row in 0..<totals.count {
            if let books = Books(stored: totals.bytes(row, 0)) { total += books }
        }
        let now = time.moment(wall: clock.int64(0, 0), shift: clock.int64(0, 1), rows: 0)
        self.init(
            now: now,
            wall: PolicyTime.wall(now, shift: clock.int64(0, 1)),
            members: (0..<members.count).map { row in
                let report = GatewayReport(stored: members.bytes(row, 3)) ?? GatewayReport(name: "", version: "")
                return Member(
                    number: GatewayNumber(rawValue: members.int32(row, 0)),
                    since: members.int64(row, 1),
                    reportedAt: members.int64(row, 2),
                    report: report
                )
            },
            dead: (0..<dead.count).map { GatewayNumber(rawValue: dead.int32($0, 0)) },
            ready: (0..<ready.count).map { row in
                let topic = TopicIndex(rawValue: UInt32(bitPattern: ready.int32(row, 0)))
                return (topic, Instant(milliseconds: ready.int64(row, 1)))
            },
            nextDue: due.count == 1 ? Instant(milliseconds: due.int64(0, 0)) : nil,
            deviceCount: Int(clamping: total.stock.devices)
        )
    }
}
