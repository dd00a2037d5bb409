import Foundation

/// The table in the article `Reasons.md`.
struct ReasonArticle {
    struct Row {
        let status: Int
        let reason: String
        /// What a client does about it.
        let remedy: String
        /// Suite and function of the test that produces it.
        let test: String
    }

    let rows: [Row]

    init() throws {
        let path = "Sources/Server/Gateway/Gateway.docc/Reasons.md"
        let text = try String(contentsOf: RunningGateway.root.appendingPathComponent(path), encoding: .utf8)
        self.rows = text.split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|", omittingEmptySubsequences: false).map {
                $0.trimmingCharacters(in: CharacterSet(charactersIn: " `"))
            }
            guard cells.count == 7, let status = Int(cells[1]) else { return nil }
            return Row(status: status, reason: cells[2], remedy: cells[4], test: cells[5])
        }
    }

    /// The rows that name a test.
    func rows(of test: String) -> [Row] { self.rows.filter { $0.test == test } }
}
