import Foundation
import Gateway
import HTTPTransport
import Testing
import WakeGateTestKit

@Suite("The article about bounds")
struct BoundsArticleTests {
    private func article() throws -> String {
        let path = "Sources/Server/Gateway/Gateway.docc/Bounds.md"
        return String(decoding: try Data(contentsOf: Checkout.root.appendingPathComponent(path)), as: UTF8.self)
    }

    /// A number with its thousands apart.
    private static func text(_ number: Int) -> String {
        let digits = String(number)
        return String(
            digits.enumerated().flatMap { index, digit in
                index > 0 && (digits.count - index) % 3 == 0 ? [",", digit] : [digit]
            }
        )
    }

    /// The row of a bound, as the article has it.
    private static func row(_ limit: GatewayLimit) -> String {
        "| `\(limit.name)` | \(self.text(limit.defaultValue)) | \(limit.unit) | \(limit.reason) |"
    }

    @Test("Its table has every bound of the code with its default, unit and reason, in the code's order, and no other")
    func table() throws {
        let rows = try self.article().split(separator: "\n").map(String.init).filter { $0.hasPrefix("| `") }
        let wanted = GatewayLimit.all.map { Self.row($0) }
        #expect(rows == wanted, "the table should be:\n\(wanted.joined(separator: "\n"))")
    }

    @Test("It says what becomes of who passes each bound")
    func consequences() throws {
        let section = try #require(self.article().components(separatedBy: "## What happens past a bound").last)
        for name in GatewayLimit.countedNames { #expect(section.contains("`\(name)`"), "\(name)") }
    }
}
