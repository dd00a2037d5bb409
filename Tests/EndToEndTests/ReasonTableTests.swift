import Foundation
import Testing
import WakeGateTestKit
import Wire

/// The article names the test that produces each reason. These tests verify the table.
@Suite(
    "Every reason of APNs is in the article, with the test that produces it",
    .serialized,
    .timeLimit(.minutes(15))
)
struct ReasonTableTests {
    /// The reasons that this suite produces, in this order on one gateway.
    private static let produced = ["DeviceTokenNotForTopic", "Forbidden", "TooManyRequests", "Unregistered"]

    private let topic = "com.example.reasons"
    private let token = String(repeating: "4ea5", count: 16)

    @Test("The article has exactly the statuses and reasons of the code, in the code's order")
    func complete() throws {
        let article = try ReasonArticle()
        #expect(article.rows.map(\.reason) == APNSReason.allCases.map(\.rawValue))
        #expect(article.rows.map(\.status) == APNSReason.allCases.map(\.status))
        #expect(Set(article.rows.map(\.remedy)) == ["fix", "delete", "retry", "reconnect"])
        // A removed device token is never pushed to again. A push that may be retried later has a status that says so.
        for row in article.rows {
            #expect((row.remedy == "retry") == [429, 500, 503].contains(row.status), "\(row.reason)")
            #expect(row.status != 410 || row.remedy == "delete", "\(row.reason)")
        }
        let counted = try #require(RunningGateway().stats().value("pushes", "rejected") as? [String: Any])
        #expect(Set(article.rows.map(\.reason)) == Set(counted.keys))
    }

    @Test("Every test that the article names exists, and mentions the reason")
    func tests() throws {
        for row in try ReasonArticle().rows {
            let parts = row.test.split(separator: ".")
            let text = try Checkout.text("Tests/EndToEndTests/\(parts[0]).swift")
            #expect(text.contains("func \(parts[1])("), "\(row.test)")
            #expect(text.contains(row.reason), "\(row.test) and \(row.reason)")
        }
    }

    @Test("The article and the tests of malformed pushes list the same reasons")
    func malformed() throws {
        let rows = try ReasonArticle().rows(of: "MalformedPushTests.table")
        #expect(Set(rows.map(\.reason)) == Set(MalformedPushTests.cases.map(\.reason)))
        for row in rows {
            #expect(MalformedPushTests.cases.allSatisfy { $0.reason != row.reason || $0.status == row.status })
        }
        #expect(Set(try ReasonArticle().rows(of: "ReasonTableTests.answer").map(\.reason)).isSubset(of: Self.produced))
    }

    @Test("Each answer has its status and reason, and is counted")
    func answer() throws {
        let gateway = try RunningGateway(["--set", "limits.devicesMax=1"])
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        for reason in Self.produced {
            let refused = try self.produce(reason, gateway)
            #expect(refused.reason == reason)
            #expect(refused.status == APNSReason(rawValue: reason)?.status)
            #expect(try gateway.stats().integer("pushes", "rejected", reason) == 1)
        }
    }

    @Test("A connection that is idle for too long receives a GOAWAY in the format of APNs")
    func idle() throws {
        let gateway = try RunningGateway(["--set", "limits.idleSeconds=1"])
        let ended = try gateway.hearing().finish()
        #expect(ended.output == "settings\ngoaway 0 0 {\"reason\":\"IdleTimeout\"}\n", "\(ended.errors)")
    }

    /// Produces a reason on a gateway that knows one device.
    private func produce(_ reason: String, _ gateway: RunningGateway) throws -> Answer {
        switch reason {
        case "DeviceTokenNotForTopic":
            return try gateway.push(self.token, topic: "com.example.other")
        case "Forbidden":
            let url = "http://\(gateway.plain)/3/device/\(self.token)"
            return try Answer.curl(["--silent", "--noproxy", "*", "-H", "Host: attacker.example", "-d", "{}", url])
        case "TooManyRequests":
            return try gateway.push(String(repeating: "5c", count: 32), topic: self.topic)
        case "Unregistered":
            #expect(try gateway.edge("/v1/devices/\(self.token)", "-X", "DELETE").status == 204)
            let refused = try gateway.push(self.token, topic: self.topic)
            #expect(try #require(refused.integer("timestamp")) > 1_700_000_000_000)
            return refused
        default:
            throw ChildProcess.Failure(description: "nothing here produces \(reason)")
        }
    }
}

/// The table in the article `Reasons.md`.
struct ReasonArticle {
    struct Row {
        let status: Int
        let reason: String
        /// The remedy that a client should apply.
        let remedy: String
        /// The suite and the function of the test that produces the reason.
        let test: String
    }

    let rows: [Row]

    init() throws {
        self.rows = try Checkout.article("Reasons").split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|", omittingEmptySubsequences: false).map {
                $0.trimmingCharacters(in: CharacterSet(charactersIn: " `"))
            }
            guard cells.count == 7, let status = Int(cells[1]) else { return nil }
            return Row(status: status, reason: cells[2], remedy: cells[4], test: cells[5])
        }
    }

    /// Returns the rows that name a test.
    func rows(of test: String) -> [Row] { self.rows.filter { $0.test == test } }
}
