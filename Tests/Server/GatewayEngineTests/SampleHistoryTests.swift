import Engine
import Foundation
import Gateway
import Policy
import Testing
import Wire

@Suite("The samples that charts are made of")
struct SampleHistoryTests {
    private func sample(_ second: Int) -> LiveSample {
        var books = Books()
        books.accepted = Int64(second) * 3
        return LiveSample(at: Int64(second) * 1000, books, rejected: 0, Dispatcher.WorkerCounts())
    }

    /// The moments of a series in seconds, as it is told.
    private func seconds(_ history: SampleHistory, every: Int) throws -> [Int] {
        var writer = JSONWriter()
        try #require(history[seconds: every]).write(to: &writer)
        let json = try JSONSerialization.jsonObject(with: Data(writer.buffer.view.array)) as? [String: Any]
        #expect(json?["fields"] as? [String] == LiveSample.fields)
        let rows = try #require(json?["samples"] as? [[NSNumber]])
        let accepted = try #require(LiveSample.fields.firstIndex(of: "accepted"))
        for row in rows { #expect(row[accepted].int64Value == row[0].int64Value / 1000 * 3) }
        return rows.map { $0[0].intValue / 1000 }
    }

    @Test("Each distance keeps its last samples, the oldest first, and never more than it may")
    func spans() throws {
        var history = SampleHistory()
        for second in 0..<100_000 { history.append(self.sample(second)) }
        for (every, countMax) in SampleHistory.spans {
            let last = 99_999 / every * every
            let expected = (0..<countMax).map { last - (countMax - 1 - $0) * every }
            #expect(try self.seconds(history, every: every) == expected)
        }
        #expect(history[seconds: 7] == nil)
    }

    @Test("A young history has what there was")
    func young() throws {
        var history = SampleHistory()
        #expect(try self.seconds(history, every: 1).isEmpty)
        for second in 0..<12 { history.append(self.sample(second)) }
        #expect(try self.seconds(history, every: 1) == Array(0..<12))
        #expect(try self.seconds(history, every: 10) == [0, 10])
    }

    @Test("A sample has what charts show of tasks, by kind and by hold, in the order of the fields")
    func tasks() throws {
        var books = Books()
        books.requests.waiting[.processing] = 3
        books.requests.inFlight[.continued] = 4
        books.requests.held[.power] = 2
        books.sessions.waiting = 9
        books.tasks.launched[.urlSession] = 5
        var history = SampleHistory()
        history.append(LiveSample(at: 1, books, rejected: 0, Dispatcher.WorkerCounts()))
        var writer = JSONWriter()
        try #require(history[seconds: 1]).write(to: &writer)
        let json = try JSONSerialization.jsonObject(with: Data(writer.buffer.view.array)) as? [String: Any]
        let row = try #require((json?["samples"] as? [[NSNumber]])?.first)
        let shown = zip(LiveSample.fields, row).filter { $0.0.hasPrefix("tasks.") && $0.1 != 0 }
        #expect(
            shown.map { "\($0.0) \($0.1)" } == [
                "tasks.waiting.processing 3", "tasks.waiting.urlSession 9", "tasks.inFlight.continued 4",
                "tasks.launched.urlSession 5", "tasks.held.power 2",
            ]
        )
        #expect(row.count == LiveSample.fields.count && Set(LiveSample.fields).count == row.count)
    }

    @Test("A desk lets in as many who watch as it may, and has a place again when one goes")
    func readers() {
        let desk = LiveDesk(readersMax: 2)
        #expect(!desk.isWatched)
        #expect(desk.readerCame() && desk.readerCame())
        #expect(!desk.readerCame())
        #expect(desk.isWatched)
        desk.readerWent()
        #expect(desk.readerCame())
    }
}
